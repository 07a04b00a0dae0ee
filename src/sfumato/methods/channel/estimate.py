"""Estimate the distribution of the true values from a disguised file, in all records or in strata of plain columns.

The methods are inversion, weighted least squares and EM, with standard errors and intervals. A linear estimate is
B·counts/N with B M = 1, so it is unbiased whatever the true shares are. For n reports B is the inverse. For more
reports, B weights them by a reference distribution, and it is the best such estimate if that is the true one.

The module also has matrices of randomized response that need no search: Warner's, uniform perturbation, FRAPP and GRR.
All four are one family: a diagonal p, and the rest shared equally. They differ in the name of their parameter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings, EngineOptions
from sfumato.data.source import SUFFIX, Source, mark_of
from sfumato.data.value_counts import Tally, require, tally
from sfumato.errors import DataError, InputError, nearest
from sfumato.measures.channel import SINGULAR, information
from sfumato.methods.channel.draw import check_known
from sfumato.methods.channel.prior import label_of
from sfumato.plans.channel import Channel, load_channels, product

STILL = 1e-10
ITERATIONS = 20_000


@dataclass(frozen=True, eq=False)
class Recovered:
    """Shares as estimated (`raw`, possibly negative) and projected to the simplex, with standard errors and intervals.

    `error` refers to the population that the records were drawn from, `error_to_file` to the shares of the file.
    """

    method: str
    raw: Floats
    shares: Floats
    error: Floats
    error_to_file: Floats
    low: Floats
    high: Floats


def inversion_matrix(matrix: Floats) -> Floats:
    """Return B for a square matrix: its inverse.

    >>> inversion_matrix(np.array([[0.75, 0.25], [0.25, 0.75]])).tolist()
    [[1.5, -0.5], [-0.5, 1.5]]
    """
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"a matrix of {matrix.shape[0]} reports and {matrix.shape[1]} categories has no inverse",
            expected="as many reports as categories",
            remedy='method = "wls" or method = "em"',
        )
    _require_regular(matrix, np.full(matrix.shape[1], 1.0 / matrix.shape[1]))
    return np.asarray(np.linalg.inv(matrix))


def weighted_matrix(matrix: Floats, reference: Floats) -> Floats:
    """Return B for any matrix: (MᵀWM)⁻¹MᵀW with the weights 1/(M·reference)."""
    used = matrix @ reference > 0
    _require_regular(matrix, reference)
    weighted = matrix[used] / (matrix[used] @ reference)[:, None]
    backwards = np.zeros(matrix.T.shape)
    backwards[:, used] = np.linalg.solve(weighted.T @ matrix[used], weighted.T)
    return backwards


def _require_regular(matrix: Floats, reference: Floats) -> None:
    if np.linalg.eigvalsh(information(matrix, reference))[0] < SINGULAR:
        raise InputError(
            "the matrix is singular: different truths give the same reports, so they cannot be distinguished",
            expected="a matrix that distinguishes all categories",
            remedy="another channel; no method can recover what this one hides",
        )


def linear(method: str, inverse: Floats, matrix: Floats, counts: Floats, level: float = 0.95) -> Recovered:
    """Return the estimate B·counts/N of a linear method, where `inverse` is the B of a channel's matrix."""
    records = max(float(counts.sum()), 1.0)
    reports = counts / records
    raw = inverse @ reports
    second = inverse**2 @ reports
    degrees = max(records - 1.0, 1.0)
    error = np.sqrt(np.maximum(second - raw**2, 0.0) / degrees)
    # For a fixed file only the disguise is random: Var = (B diag(p*) Bᵀ − diag(f))/N.
    to_file = np.sqrt(np.maximum(second - np.clip(raw, 0.0, 1.0), 0.0) / degrees)
    low, high = intervals(inverse, matrix, counts, raw, level)
    return Recovered(method, raw, projected(raw), error, to_file, low, high)


def intervals(inverse: Floats, matrix: Floats, counts: Floats, raw: Floats, level: float) -> tuple[Floats, Floats]:
    """Return score intervals: all shares f under which the estimate is plausible, so a count of zero is no certainty.

    If category k has the share f and the others keep their proportions, the reports are distributed as f·M_k + (1 −
    f)·m. The variance of B_k·reports is then (a + b·f − f²)/N with a = B_k²·m and b = B_k²·(M_k − m). Without a
    disguise this is Wilson's interval. An estimate outside 0 and 1 is taken as 0 or 1 for the far end.
    """
    records = max(float(counts.sum()), 1.0)
    spread = NormalDist().inv_cdf(0.5 + level / 2) ** 2 / records
    others = np.tile(projected(raw), (len(raw), 1))
    np.fill_diagonal(others, 0.0)
    total = others.sum(axis=1, keepdims=True)
    even = (1.0 - np.eye(len(raw))) / (len(raw) - 1)
    mixed = matrix @ np.where(total > 0, others / np.where(total > 0, total, 1.0), even).T
    square = inverse**2
    least = np.einsum("ky,yk->k", square, mixed)
    slope = np.einsum("ky,yk->k", square, matrix) - least

    def end(estimate: Floats, sign: float) -> Floats:
        middle = 2.0 * estimate + spread * slope
        under = middle**2 - 4.0 * (1.0 + spread) * (estimate**2 - spread * least)
        return np.asarray((middle + sign * np.sqrt(np.maximum(under, 0.0))) / (2.0 * (1.0 + spread)))

    low, high = end(np.minimum(raw, 1.0), -1.0), end(np.maximum(raw, 0.0), 1.0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def linear_error(inverse: Floats | None, matrix: Floats, shares: Floats, records: int) -> float:
    """Return the mean squared error of a linear estimate of shares, against the population; infinite if there is none.

    >>> linear_error(np.eye(2), np.eye(2), np.array([0.5, 0.5]), 100)
    0.0025
    """
    if inverse is None:
        return math.inf
    variance = inverse**2 @ (matrix @ shares) - shares**2
    return float(variance.sum() / (len(shares) * records))


def em(matrix: Floats, counts: Floats, level: float = 0.95) -> Recovered:
    """Return the maximum likelihood distribution, by EM: P'ⱼ = Σᵢ p*ᵢ·M[i,j]Pⱼ/Σ_l M[i,l]P_l.

    This is equation 3 of the paper (docs/readings.md, 3.2).
    """
    records = max(float(counts.sum()), 1.0)
    reports = counts / records
    seen = reports > 0
    rows, shares = matrix[seen], np.full(matrix.shape[1], 1.0 / matrix.shape[1])
    for _ in range(ITERATIONS):
        fresh = shares * (rows.T @ (reports[seen] / (rows @ shares)))
        moved = float(np.abs(fresh - shares).max())
        shares = fresh
        if moved < STILL:
            break
    inside = np.maximum(shares, 1e-9)
    inside = inside / inside.sum()
    expected = matrix @ inside
    used = expected > 0
    curvature = (matrix[used] / expected[used, None]).T @ matrix[used]
    variance = np.diag(np.linalg.pinv(curvature, rcond=1e-12, hermitian=True))
    error = np.sqrt(np.maximum(variance - shares**2, 0.0) / records)
    to_file = np.sqrt(np.maximum(variance - shares, 0.0) / records)
    try:
        inverse = weighted_matrix(matrix, inside)
    except InputError:  # no report distinguishes some true values, so their shares are unknown
        return Recovered("em", shares, shares, error, to_file, np.zeros_like(shares), np.ones_like(shares))
    low, high = intervals(inverse, matrix, counts, shares, level)
    return Recovered("em", shares, shares, error, to_file, low, high)


def projected(raw: Floats) -> Floats:
    """Return the nearest distribution.

    >>> projected(np.array([0.7, 0.5, -0.2])).round(3).tolist()
    [0.6, 0.4, 0.0]
    """
    falling = np.sort(raw)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(raw) + 1)
    shift = excess[np.flatnonzero(falling > excess)[-1]]
    return np.asarray(np.maximum(raw - shift, 0.0))


METHODS = ("auto", "inversion", "wls", "em")
MOST_STRATA = 10_000


@dataclass(frozen=True, eq=False)
class Stratum:
    """One combination of values of the plain columns (or all records), and its estimate."""

    values: tuple[str, ...]
    records: int
    recovered: Recovered
    most_likely: Recovered


@dataclass(frozen=True, eq=False)
class Estimate:
    """The estimated distribution of the true values, by strata."""

    channel: Channel
    by: tuple[str, ...]
    level: float
    strata: tuple[Stratum, ...]
    dropped: int

    @property
    def records(self) -> int:
        return sum(stratum.records for stratum in self.strata)

    def as_dict(self) -> dict[str, object]:
        """Return what `sfumato channel estimate --json` prints; counts are shares times the records of the stratum."""
        return {
            "columns": list(self.channel.columns),
            "records": self.records,
            "dropped": self.dropped,
            "method": self.strata[0].recovered.method,
            "level": self.level,
            "by": list(self.by),
            "strata": [self._said(stratum) for stratum in self.strata],
        }

    def _said(self, stratum: Stratum) -> dict[str, object]:
        found = stratum.recovered
        figures = {
            "share": found.shares,
            "unbiased": found.raw,
            "standard_error": found.error,
            "standard_error_to_file": found.error_to_file,
            "low": found.low,
            "high": found.high,
            "most_likely": stratum.most_likely.shares,
            "count": found.shares * stratum.records,
        }
        return {
            "values": dict(zip(self.by, stratum.values, strict=True)),
            "records": stratum.records,
            "categories": [
                {"category": name} | {figure: float(values[category]) for figure, values in figures.items()}
                for category, name in enumerate(self.channel.categories)
            ],
        }


def disguised_file(path: Path) -> Path:
    """Return the path of the disguised file: the path itself, or the file in a release folder or its public part."""
    if not path.is_dir() or mark_of(path).is_file():  # a file in parts is a folder with a mark
        return path
    for folder in (path / "public", path):
        marks = sorted(folder.glob(f"*{SUFFIX}"))
        if len(marks) == 1:
            return marks[0].with_name(marks[0].name.removesuffix(SUFFIX))
    raise InputError(f"{path} holds no disguised file", expected="a disguised file, or the folder of its release")


def channels_of(path: Path) -> list[Channel]:
    """Return the channels that made a disguised file, from the mark next to it."""
    mark = mark_of(path)
    if not mark.is_file():
        raise InputError(
            f"{path.name} has no channel file beside it",
            expected=f"{mark.name}, or another channel file",
            remedy="name its channel",
        )
    return load_channels(mark)


def estimate(
    path: str | Path,
    channels: Sequence[Channel] = (),
    *,
    by: Sequence[str] = (),
    method: str = "auto",
    level: float = 0.95,
    settings: DataSettings | None = None,
    options: EngineOptions | None = None,
) -> Estimate:
    """Estimate the distribution of the true values from a disguised file; several channels yield their cross-table.

    Args:
        path: the disguised file.
        channels: the channels that disguised it; by default those next to the file.
        by: columns within whose values the shares are estimated.
        method: the method of estimation; by default the best that the channel allows.
        level: the confidence level of the intervals.
        settings: how the file is read.
        options: memory limit and threads of the engine.

    Returns:
        Shares with intervals.
    """
    _refuse(method, level)
    path = disguised_file(Path(path))
    channels = list(channels) or channels_of(path)
    own = [channel.name for channel in channels]
    source = _source(path, own, settings)
    require(source, [*own, *by])
    if set(own) & set(by):
        raise InputError("a disguised column cannot be a stratum", expected="plain columns as strata")
    with open_engine(options=options) as engine:
        counted_cells = tally(engine, source, [*own, *by], own)
        for channel in channels:
            check_known(engine, source, channel, counted_cells, reports=True)
    whole = product(channels)
    inverse = _inverse(whole, method)
    strata = []
    for values, counts in _counts(channels, counted_cells):
        likely = em(whole.matrix, counts, level)
        chosen = likely if inverse is None else linear(*inverse, whole.matrix, counts, level)
        strata.append(Stratum(values, int(counts.sum()), chosen, likely))
    if not strata:
        raise DataError(f"{path.name} has no rows with a report", expected="a disguised file")
    return Estimate(whole, tuple(by), level, tuple(strata), counted_cells.dropped)


def _refuse(method: str, level: float) -> None:
    if method not in METHODS:
        raise InputError(f'unknown method "{method}"', expected="a method", remedy=nearest(method, METHODS))
    if not 0.5 <= level < 1:
        raise InputError(f"the level is {level:g}", expected="a level from 0.5 to below 1", remedy="level = 0.95")


def _source(path: Path, own: Sequence[str], settings: DataSettings | None) -> Source:
    """Return the disguised file as a source.

    The format that Sfumato writes is tried first, because reports such as "a | b" look like separators.
    """
    if settings is None and path.suffix not in (".parquet", ".pq"):
        ours = open_source(DataSettings(path=str(path), separator=","))
        if set(own) <= set(ours.names):
            return ours
    return open_source(settings or DataSettings(path=str(path)))


def _inverse(channel: Channel, method: str) -> tuple[str, Floats] | None:
    square = channel.matrix.shape[0] == channel.matrix.shape[1]
    if method == "em":
        return None
    if method == "inversion" or (method == "auto" and square):
        return "inversion", inversion_matrix(channel.matrix)
    reference = channel.reference if channel.reference is not None else np.full(channel.size, 1.0 / channel.size)
    return "wls", weighted_matrix(channel.matrix, reference)


def _counts(channels: Sequence[Channel], counted_cells: Tally) -> list[tuple[tuple[str, ...], Floats]]:
    """Return the counts of the reports (of their product) in each stratum, in the order of the strata."""
    places = [{name: y for y, name in enumerate(channel.outputs)} for channel in channels]
    shape = tuple(len(channel.outputs) for channel in channels)
    gathered: dict[tuple[str, ...], Floats] = {}
    for cell, count in zip(counted_cells.cells, counted_cells.counts, strict=True):
        values = tuple(label_of([value]) for value in cell[len(channels) :])
        if values not in gathered:
            if len(gathered) == MOST_STRATA:
                raise InputError(
                    f"there are more than {MOST_STRATA:,} strata", expected="strata of plain columns with few values"
                )
            gathered[values] = np.zeros(shape)
        gathered[values][tuple(places[i][cell[i]] for i in range(len(channels)))] += count
    return [(values, gathered[values].ravel()) for values in sorted(gathered)]


def warner(categories: int, truth: float) -> Floats:
    """Return the matrix that reports the truth with probability p, each other category with (1 − p)/(n − 1).

    >>> warner(3, 0.5)
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    _within("the probability of the truth", truth, 0.0, 1.0)
    matrix = np.full((categories, categories), (1.0 - truth) / (categories - 1))
    np.fill_diagonal(matrix, truth)
    return matrix


def uniform_perturbation(categories: int, retention: float) -> Floats:
    """Return the matrix that keeps a value with probability q and else draws any: Warner's with p = q + (1 − q)/n.

    >>> bool(np.allclose(uniform_perturbation(4, 0.2), warner(4, 0.4)))
    True
    """
    _within("the probability of keeping a value", retention, 0.0, 1.0)
    return warner(categories, retention + (1.0 - retention) / categories)


def frapp(categories: int, ratio: float) -> Floats:
    """Return the matrix in which the truth is λ times as likely as any other: Warner's with p = λ/(λ + n − 1).

    >>> bool(np.allclose(frapp(4, 3.0), warner(4, 0.5)))
    True
    """
    _within("the ratio", ratio, 1.0, math.inf)
    return warner(categories, ratio / (ratio + categories - 1))


def grr(categories: int, epsilon: float) -> Floats:
    """Return generalized randomized response with ε of local differential privacy: FRAPP with λ = e^ε.

    >>> bool(np.allclose(grr(4, math.log(3)), frapp(4, 3.0)))
    True
    """
    _within("epsilon", epsilon, 0.0, 500.0)
    return frapp(categories, math.exp(epsilon))


FAMILIES = {"warner": warner, "uniform_perturbation": uniform_perturbation, "frapp": frapp, "grr": grr}


def response_matrix(family: str, categories: int, parameter: float) -> Floats:
    """Return a matrix by the name of its family."""
    if family not in FAMILIES:
        raise InputError(f'unknown family "{family}"', expected="a family", remedy=nearest(family, FAMILIES))
    return FAMILIES[family](categories, parameter)


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} is {value:g}", expected=f"a number from {low:g} to {high:g}")
