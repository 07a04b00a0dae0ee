"""Matrices within the limits of a study, from the engine that it names, and the lower bounds for comparison.

Where other columns are released, ε is limited unless the study sets ε or `given`. A bound that holds under the shares
of the whole table may fail under the shares of a group, such as women. A limit on ε holds for every group: whatever is
known of a person, a report changes the odds of a category by a factor of at most e^ε. From a share p the posterior is
at most max(δ, g·p) if e^ε ≤ odds(max(δ, g·p)) / odds(p). The least of these values over all p is at p = δ/g:
(g − δ)/(1 − δ).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.base.progress import Progress
from sfumato.data.engine import open_engine
from sfumato.data.value_counts import require
from sfumato.errors import InputError, UnreachableError
from sfumato.measures import channel
from sfumato.methods.channel.draw import Rows
from sfumato.methods.channel.estimate import grr
from sfumato.methods.channel.exact import MOST_CATEGORIES, ExactSearch, LocalSearch, Optimum, refuse_privacy
from sfumato.methods.channel.given import cell_counts
from sfumato.methods.channel.optrr import Archive, OptrrSettings, optrr
from sfumato.methods.channel.prior import Prior, capped_rays, coarse, complete_columns, output_name, set_name, unit_of
from sfumato.methods.channel.square import CellLimit, InvariantSearch, SquareSearch, SquareSettings
from sfumato.study import ChannelSettings, Study
from sfumato.study.sections import PolicySettings

LEAST = 0.01  # least ε of a search
MOST_CELLS = 64  # largest number of cells with separate limits
SEEDING = 2_000  # generations of OptRR whose archive the square engine starts from
BOUND_LEVELS = 16
CAPPED_CATEGORIES = 12
CLOSE = 1e-6  # tolerance of a requested privacy
ROUNDING = 1e-12
MOST_EPSILON = 12.0  # of a start; with more the true value is reported almost always
CORRECTIONS = 8
DESIGNS = {
    "exact": "the shares of the table",
    "coarse": "the shares of the table, rounded",
    "uniform": "equal shares",
    "given": "shares from elsewhere",
}


def safe_epsilon(delta: float, gain: float) -> float:
    """Return the largest ε with which max(δ, g·p) holds whatever else is known; infinite if δ allows everything.

    >>> round(safe_epsilon(0.75, 1.5), 6) == round(math.log(3), 6)
    True
    """
    return math.log((gain - delta) / (1.0 - delta)) if delta < 1 else math.inf


def rule_delta(policy: PolicySettings, delta: float | None) -> float:
    """Return δ of the rule `response`: that of the design, and at most that of the policy."""
    return policy.response_posterior if delta is None else min(delta, policy.response_posterior)


def used_settings(study: Study, prior: Prior | None = None) -> ChannelSettings:
    """Return the settings that a search uses, with a limit on ε where other columns are released.

    The exact engine then limits ε alone, so that its optimum is proven. The limit on ε implies the limits δ and gain of
    the study. The `prior` is needed for that case only.
    """
    settings = study.channel
    if not settings.keep or settings.epsilon is not None or settings.given or settings.engine == "optrr":
        return settings
    policy = study.policy
    epsilon = min(safe_epsilon(rule_delta(policy, settings.delta), policy.response), policy.response_epsilon)
    alone = settings.engine == "exact" and not settings.invariant and not settings.privacy
    if alone and settings.gain is not None:
        epsilon = min(epsilon, math.log(settings.gain))
    if alone and settings.delta is not None and prior is not None:
        # The share of the design differs from the true one by a factor of at most 1 + step in the odds.
        top = float(prior.designed.max())
        factor = 1.0 + settings.step if settings.designed_for == "coarse" else 1.0
        epsilon = min(epsilon, math.log(max(_odds(settings.delta) / (_odds(top) * factor), 1e-300)))
    if epsilon < LEAST:
        raise UnreachableError(
            f"no ε above {LEAST:g} keeps the limits for whatever the columns {', '.join(settings.keep)} reveal",
            expected="delta well above the largest share, or a policy that allows a gain above 1",
            remedy=f"given = [{', '.join(repr(name) for name in settings.keep)}] under [channel] searches for these "
            "columns alone, or leave keep out",
        )
    changed: dict[str, object] = {"epsilon": epsilon}
    if alone:
        changed |= {"delta": None, "gain": None}
    elif settings.delta is None:
        changed["delta"] = settings.most_posterior
    return settings.model_copy(update=changed)


@dataclass(frozen=True, eq=False)
class GivenCells:
    """The cells of the columns in `given`: a limit for each large one, and the numbers of all and of small ones."""

    limits: tuple[CellLimit, ...]
    cells: int
    small: int
    epsilon: float  # the ε that implies all limits


def given_cells(study: Study, prior: Prior) -> GivenCells | None:
    """Return the limits of a matrix for records with the same values of the columns in `given`.

    Where the design rounds the shares, the shares of the cells are rounded too, and the limits are tightened by the
    effect of rounding on the odds.
    """
    settings, policy = study.channel, study.policy
    if not settings.given:
        return None
    with open_engine(study.engine, study.engine_options) as engine:
        source, complete = study.opened(), tuple(complete_columns(study, settings.columns))
        require(source, settings.given)
        rows = Rows(engine, source, "raw", complete, unit_of(study)).attach()
        counts = cell_counts(rows, [(prior.columns, prior.cells)], settings.given)
    large = np.flatnonzero(counts.sizes >= policy.response_records)
    delta, step = rule_delta(policy, settings.delta), settings.step if settings.designed_for == "coarse" else 0.0
    limits, epsilon, least = [], math.inf, policy.response_records
    for row in counts.table(large):
        shares = np.zeros(len(row))
        shares[row > 0] = coarse(row[row > 0] / row.sum(), step) if step else row[row > 0] / row.sum()
        top = float(shares.max())
        wide = max(delta, policy.response * top / (1.0 + step))
        if wide >= 1.0:
            continue
        cap = wide / (wide + (1.0 - wide) * (1.0 + step))
        if _odds(cap) < _odds(top) * math.exp(LEAST):
            raise UnreachableError(
                f"the shares given {', '.join(settings.given)} allow no privacy between {top:.3f} and {cap:.3f}",
                expected="a larger delta or allowed gain, or a design closer to the true shares",
                remedy=f"coarsen = {settings.step / 10:g} under [channel], or leave given out and set keep",
            )
        limits.append(CellLimit(shares / prior.designed, cap))
        epsilon = min(epsilon, math.log(_odds(cap) / _odds(top)))
    if len(limits) > MOST_CELLS:
        raise InputError(
            f"{', '.join(settings.given)} make {len(limits)} combinations with {least} records or more",
            expected=f"at most {MOST_CELLS} combinations with limits of their own",
            remedy="fewer columns in given; keep bounds ε for any number of combinations",
        )
    return GivenCells(tuple(limits), len(counts.names), len(counts.names) - len(large), epsilon)


def _odds(share: float) -> float:
    return share / (1.0 - share) if share < 1 else math.inf


@dataclass(frozen=True, eq=False)
class Candidate:
    """A matrix, the names of its outputs if they are not the categories, and its own lower bound if there is one."""

    matrix: Floats
    names: tuple[str, ...] | None = None
    bound: float | None = None


def designed_for_text(settings: ChannelSettings) -> str:
    """Return the limits of a design as text."""
    text = DESIGNS[settings.designed_for]
    return f"{text} to powers of {1 + settings.step:g}" if settings.designed_for == "coarse" else text


def matrices_of(
    prior: Prior, settings: ChannelSettings, progress: Progress, cells: GivenCells | None = None
) -> list[Candidate]:
    """Return the optimum at each ε up to the one requested, or the matrices within δ and the limit on the gain."""
    if settings.local:
        local, proven = LocalSearch(prior.designed), is_proven(prior, settings)

        def least(epsilon: float) -> Candidate:
            optimum = local.at(epsilon)
            names = tuple(set_name(row, prior.categories) for row in optimum.matrix)
            return Candidate(optimum.matrix, names, optimum.lower_bound if proven else None)

        return list(_by_level(np.linspace(0.0, settings.epsilon or 0.0, settings.points + 1)[1:], least, progress))
    return list(_engine_matrices(prior, settings, progress, cells))


def is_proven(prior: Prior, settings: ChannelSettings) -> bool:
    """Return whether the matrices that are found are proven to be optimal for the shares of the table."""
    exact = settings.engine == "exact" and not settings.invariant and prior.design is None
    return exact and (settings.epsilon is None or settings.local)


def _by_level(levels: Floats, find: Callable[[float], Candidate], progress: Progress) -> Iterator[Candidate]:
    for step, level in enumerate(levels.tolist()):
        yield find(level)
        if progress(step + 1, len(levels)):
            return


def design_limits(settings: ChannelSettings) -> tuple[float, float | None]:
    """Return δ and gain for the design, such that all shares that are rounded to it keep the limits of the settings.

    Rounding changes the ratio of two shares by a factor of at most 1 + step. The odds of a category given a report, and
    the gain, change by the same factor at most.

    >>> design_limits(ChannelSettings(delta=0.75, coarsen=0.5))
    (0.6666666666666666, None)
    """
    delta, gain = settings.most_posterior, settings.gain
    if settings.designed_for != "coarse":
        return delta, gain
    factor = 1.0 + settings.step
    return delta / (delta + (1.0 - delta) * factor), None if gain is None else gain / factor


def levels_of(shares: Floats, settings: ChannelSettings, span: tuple[float, float]) -> Floats:
    """Return the levels of privacy to search: evenly over the range, and those requested.

    The ceiling is left out where it is tied, and where an engine needs a strictly feasible point.
    """
    low, high = span
    for wanted in settings.privacy:
        refuse_privacy(wanted, span, settings.most_posterior, 1e-9)
    open_end = int(np.sum(shares > shares.max() - 1e-6)) > 1
    open_end |= settings.engine == "square" or settings.epsilon is not None or settings.invariant
    even = np.linspace(low, high, settings.points + open_end)[: settings.points]
    return np.unique(np.clip(np.append(even, settings.privacy), low, high))


def _limits(prior: Prior, settings: ChannelSettings) -> tuple[float, float | None]:
    """Return δ and gain for the design. Raise if no channel can keep them."""
    channel.attainable(prior.shares, settings.most_posterior)
    channel.require_room(prior.shares, settings.most_posterior)
    delta, gain = design_limits(settings)
    if prior.designed.max() >= delta or (gain is not None and gain <= 1.0):
        raise UnreachableError(
            f"no channel designed for {designed_for_text(settings)} keeps delta and gain for all shares that round so",
            expected="a design closer to the true shares, or wider limits",
            remedy=f"coarsen = {settings.step / 10:g} under [channel], or a higher delta or gain",
        )
    return delta, gain


def _engine_matrices(
    prior: Prior, settings: ChannelSettings, progress: Progress, cells: GivenCells | None
) -> Iterator[Candidate]:
    """Yield the matrices that the engine finds for the shares of the design, level by level."""
    delta, gain = _limits(prior, settings)
    shares = prior.designed
    span = channel.attainable(shares, delta)
    if settings.invariant:
        invariant = InvariantSearch(shares, channel.caps_of(shares, delta, gain), settings.epsilon)
        levels = levels_of(shares, settings, span)
        yield from _by_level(levels, lambda level: Candidate(invariant.at(level)), progress)
    elif settings.engine == "exact":
        search = ExactSearch(shares, delta, gain, _candidates(shares, settings, delta, gain))
        proven = is_proven(prior, settings)

        def best(level: float) -> Candidate:
            optimum = _at_level(search, level, prior, settings)
            names = tuple(output_name(row, prior.categories) for row in optimum.posteriors)
            return Candidate(optimum.matrix, names, optimum.lower_bound if proven else None)

        yield from _by_level(levels_of(shares, settings, search.range), best, progress)
    elif settings.engine == "square":
        seeding = OptrrSettings(generations=SEEDING, seed=settings.seed, records=prior.records)
        archive = optrr(shares, delta, seeding) if settings.epsilon is None and cells is None else None
        if cells is not None:
            span = (_least_privacy(shares, delta, settings, span, cells), span[1])
        levels = levels_of(shares, settings, span)
        yield from map(Candidate, square_matrices(shares, delta, settings, levels, archive, progress, cells))
    elif settings.epsilon is not None:
        raise InputError(
            "OptRR cannot cap ε", expected="an engine that can", remedy='engine = "square" under [channel]'
        )
    else:
        chosen = OptrrSettings(generations=settings.generations, seed=settings.seed, records=prior.records)
        archive = optrr(shares, delta, chosen, progress)
        numbers = [archive.best_at(float(level)) for level in levels_of(shares, settings, span)]
        yield from (Candidate(archive.matrices[number]) for number in dict.fromkeys(numbers) if number is not None)


def _at_level(search: ExactSearch, level: float, prior: Prior, settings: ChannelSettings) -> Optimum:
    """Return the optimum at a level of privacy; a requested level is reached on the true shares."""
    optimum, aim = search.at(level), level
    if prior.design is None or np.abs(np.array(settings.privacy or (np.inf,)) - level).min() > ROUNDING:
        return optimum
    for _ in range(CORRECTIONS):
        short = level - channel.privacy(optimum.matrix, prior.shares)
        if abs(short) < CLOSE / 10:
            break
        aim = min(max(aim + short, search.range[0]), search.range[1] - 1e-3 * (search.range[1] - search.range[0]))
        optimum = search.at(aim)
    return optimum


def square_matrices(
    shares: Floats,
    delta: float,
    settings: ChannelSettings,
    levels: Floats,
    archive: Archive | None,
    progress: Progress,
    cells: GivenCells | None = None,
) -> list[Floats]:
    """Return the square engine's matrix for each level, or None; levels in between prepare those near the ceiling.

    With limits for cells, one start is randomized response with an ε that keeps them all, because it is feasible.
    """
    low, high = float(1.0 - delta), float(1.0 - shares.max())
    between = high - (high - low) * 0.1 * 0.55 ** np.arange(6)
    wanted = np.unique(np.append(levels, between[between > low]))
    seeds: list[list[Floats]] = [[] for _ in wanted]
    if archive is not None:
        for number, level in enumerate(wanted):
            best = archive.best_at(float(level))
            if best is not None:
                seeds[number].append(archive.matrices[best])
    limits = () if cells is None else cells.limits
    if cells is not None:
        for own in seeds:
            own.append(_safe_start(len(shares), settings, cells))
    chosen = SquareSettings(sweeps=settings.sweeps, seed=settings.seed)
    matrices = SquareSearch(shares, delta, wanted, chosen, settings.epsilon, limits).run(seeds, progress)
    near = [np.abs(levels - level).min() < ROUNDING for level in wanted]
    return [matrix for matrix, kept in zip(matrices, near, strict=True) if matrix is not None and kept]


def _safe_start(categories: int, settings: ChannelSettings, cells: GivenCells) -> Floats:
    """Return generalized randomized response with the largest ε that keeps every limit whatever the shares are."""
    most = min(cells.epsilon, settings.epsilon if settings.epsilon is not None else math.inf)
    return grr(categories, min(most, MOST_EPSILON))


def _least_privacy(
    shares: Floats, delta: float, settings: ChannelSettings, span: tuple[float, float], cells: GivenCells
) -> float:
    """Return the privacy of the best matrix under the limits for cells and ε; lower levels add no matrix."""
    chosen = SquareSettings(sweeps=0, seed=settings.seed)
    search = SquareSearch(shares, delta, [span[0]], chosen, settings.epsilon, cells.limits)
    found = search.run([[_safe_start(len(shares), settings, cells)]])[0]
    least = span[0] if found is None else channel.privacy(found, shares)
    return min([max(least, span[0]), *settings.privacy])


def _candidates(shares: Floats, settings: ChannelSettings, delta: float, gain: float | None) -> Floats | None:
    if settings.epsilon is None:
        return None
    if len(shares) > CAPPED_CATEGORIES:
        raise InputError(
            f"{len(shares)} categories are too many for the exact engine with a cap on ε and other limits",
            expected=f"at most {CAPPED_CATEGORIES}, or ε as the only limit",
            remedy='engine = "square" under [channel], or leave delta and gain out',
        )
    return capped_rays(shares, channel.caps_of(shares, delta, gain), settings.epsilon)


def bounds_of(prior: Prior, settings: ChannelSettings) -> Callable[[float, float], float] | None:
    """Return the lower bound for points without their own proof, as a function of their privacy and ε.

    Bounds that were proved at a few levels hold at all levels. A bound for δ and gain and a bound for ε both hold, so
    the larger one does.
    """
    if len(prior.shares) > MOST_CATEGORIES or is_proven(prior, settings):
        return None
    local = LocalSearch(prior.shares)
    if settings.local:
        return lambda _, epsilon: local.at(epsilon).lower_bound
    search = ExactSearch(prior.shares, settings.most_posterior, settings.gain)
    for level in np.linspace(*search.range, BOUND_LEVELS + 1)[:-1]:
        search.at(float(level))
    least = 0.0 if settings.epsilon is None else local.at(settings.epsilon).lower_bound
    return lambda privacy, _: max(search.lower_bound(privacy), least)
