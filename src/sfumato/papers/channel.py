"""Figures 4 and 5 of the OptRR paper (Huang and Du 2008): Warner, OptRR, square matrices and the certified bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from sfumato.base.arrays import Floats
from sfumato.measures import channel
from sfumato.methods.channel.estimate import em, warner
from sfumato.methods.channel.exact import ExactSearch
from sfumato.methods.channel.matrices import square_matrices
from sfumato.methods.channel.optrr import Archive, OptrrSettings, optrr
from sfumato.samples.samples import sample
from sfumato.study import ChannelSettings, read

RECORDS = 10_000
BINS = 10
LEVELS = 9
EM_DRAWS = 20


@dataclass(frozen=True, eq=False)
class Case:
    """One panel of the paper: a prior, a bound on posteriors, and the lowest privacies it reports."""

    figure: str
    name: str
    prior: Floats
    delta: float
    paper_warner: float | None = None
    paper_optrr: float | None = None
    with_em: bool = False


@dataclass(frozen=True)
class Level:
    """The errors of each method at one level of privacy, and with EM if requested; None if not reached."""

    privacy: float
    warner: float | None
    optrr: float | None
    square: float | None
    certified: float
    em_warner: float | None = None
    em_optrr: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Panel:
    """The result for a case. The curves are (privacy, error)."""

    case: Case
    warner: Floats
    archive: Archive
    levels: tuple[Level, ...]
    uncovered: float
    worst_against_warner: float | None
    curves: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        return {
            "figure": self.case.figure,
            "prior": self.case.name,
            "delta": self.case.delta,
            "warner_from": float(self.warner[0, 0]),
            "paper_warner_from": self.case.paper_warner,
            "optrr_from": float(self.archive.privacy[0]),
            "optrr_to": float(self.archive.privacy[-1]),
            "paper_optrr_from": self.case.paper_optrr,
            "warner_uncovered": self.uncovered,
            "worst_optrr_to_warner": self.worst_against_warner,
            "levels": [level.as_dict() for level in self.levels],
        }


def normal_prior() -> Floats:
    """Return N(0, 1) on ten equal bins of [−3, 3]."""
    edges = np.linspace(-3, 3, BINS + 1)
    shares = np.diff([0.5 * (1 + math.erf(edge / math.sqrt(2))) for edge in edges])
    return np.asarray(shares / shares.sum())


def gamma_prior() -> Floats:
    """Return the gamma distribution with shape 1 and scale 2 on ten equal bins of [0, 6]."""
    shares = -np.diff(np.exp(-np.linspace(0, 6, BINS + 1) / 2))
    return np.asarray(shares / shares.sum())


def adult_priors() -> dict[str, Floats]:
    """Return shares of attributes of the 30,162 complete rows of Adult, with age in ten bins of equal width."""
    table = read(sample("adult-complete")).table()
    priors = {}
    for column, domain in enumerate(table.domains):
        counts = np.bincount(table.codes[column], table.counts, minlength=len(domain.labels))
        if domain.name == "age":
            ages = np.array([float(label) for label in domain.labels])
            edges = np.linspace(ages[counts > 0].min(), ages[counts > 0].max(), BINS + 1)
            counts = np.histogram(ages, edges, weights=counts)[0]
        counts = counts[counts > 0]
        priors[domain.name] = counts / counts.sum()
    return priors


def cases() -> list[Case]:
    """Return the panels of figures 4 and 5."""
    bell, adult = normal_prior(), adult_priors()
    lowest = {0.6: (0.6, 0.4), 0.7: (0.5, 0.3), 0.8: (0.4, 0.22), 0.9: (0.22, 0.17)}
    listed = [Case(f"4, δ = {d}", "normal", bell, d, *low) for d, low in lowest.items()]
    listed.append(Case("5a and 5d", "gamma(1, 2)", gamma_prior(), 0.75, with_em=True))
    listed.append(Case("5b", "uniform", np.full(BINS, 1 / BINS), 0.75))
    listed += [Case("5c", f"Adult {name}", adult[name], 0.75) for name in ("age", "workclass", "marital-status")]
    return listed


def reproduce_channel(
    generations: int = OptrrSettings.generations,
    sweeps: int = 2,
    seed: int = 1,
    progress: Callable[[int, int], object] | None = None,
    only: list[Case] | None = None,
) -> Iterator[Panel]:
    """Yield each panel when it is done."""
    chosen = cases() if only is None else only
    for number, case in enumerate(chosen):
        with threadpool_limits(1):
            yield _panel(case, generations, sweeps, seed)
        if progress is not None:
            progress(number + 1, len(chosen))


def warner_curve(prior: Floats, delta: float) -> Floats:
    """Return privacy, error and p of Warner's matrices that keep δ, on a grid of 0.001, by rising privacy."""
    n, points = len(prior), []
    for p in np.arange(math.ceil(1000 / n) + 1, 1001) / 1000:
        matrix = warner(n, float(p))
        if channel.worst_posterior(matrix, prior) <= delta + 1e-12:
            error = channel.error(matrix, prior, RECORDS)
            if error < np.inf:
                points.append((channel.privacy(matrix, prior), error, float(p)))
    return np.array(sorted(points))


def _panel(case: Case, generations: int, sweeps: int, seed: int) -> Panel:
    prior, delta = case.prior, case.delta
    curve = warner_curve(prior, delta)
    archive = optrr(prior, delta, OptrrSettings(generations=generations, seed=seed, records=RECORDS))
    inside = (curve[:, 0] >= archive.privacy[0]) & (curve[:, 0] <= archive.privacy[-1])
    ratios = archive.error[np.searchsorted(archive.privacy, curve[inside, 0] - 1e-12)] / curve[inside, 1]
    exact = ExactSearch(prior, delta)
    low, high = exact.range
    wanted = np.linspace(low, high, LEVELS + 1)[:LEVELS]
    settings = ChannelSettings(delta=delta, sweeps=sweeps, seed=seed)
    squares = square_matrices(prior, delta, settings, wanted, archive, lambda *_: None)
    held = [(channel.privacy(m, prior), channel.error(m, prior, RECORDS)) for m in squares]
    levels = tuple(_level(case, float(level), curve, archive, held, exact, seed) for level in wanted)
    return Panel(
        case,
        curve,
        archive,
        levels,
        float(np.mean(~inside)),
        float(ratios.max()) if len(ratios) else None,
        {
            "Warner": [(p, e) for p, e, _ in curve.tolist()],
            "OptRR": list(zip(archive.privacy.tolist(), archive.error.tolist(), strict=True)),
            "square": sorted(held),
            "certified": [(level.privacy, level.certified) for level in levels],
        },
    )


def _level(
    case: Case,
    privacy: float,
    curve: Floats,
    archive: Archive,
    squares: list[tuple[float, float]],
    exact: ExactSearch,
    seed: int,
) -> Level:
    bound = channel.error_of(exact.at(privacy).lower_bound, case.prior, RECORDS)
    at = int(np.searchsorted(curve[:, 0], privacy - 1e-9))
    by_warner = curve[at] if at < len(curve) and privacy >= curve[0, 0] - 1e-9 else None
    position = archive.best_at(privacy) if privacy >= archive.privacy[0] else None
    best = min((e for p, e in squares if p >= privacy - 1e-7), default=None)
    with_em: list[float | None] = [None, None]
    if case.with_em:
        matrices = [
            None if by_warner is None else warner(len(case.prior), float(by_warner[2])),
            None if position is None else archive.matrices[position],
        ]
        with_em = [None if m is None else _em_error(m, case.prior, seed) for m in matrices]
    return Level(
        privacy,
        None if by_warner is None else float(by_warner[1]),
        None if position is None else float(archive.error[position]),
        best,
        bound,
        *with_em,
    )


def _em_error(matrix: Floats, prior: Floats, seed: int) -> float:
    """Return the mean squared error of EM over a few files of 10,000 randomized answers."""
    counts = np.random.default_rng(seed).multinomial(RECORDS, matrix @ prior, size=EM_DRAWS)
    return float(np.mean([(em(matrix, c.astype(np.float64)).shares - prior) ** 2 for c in counts]))
