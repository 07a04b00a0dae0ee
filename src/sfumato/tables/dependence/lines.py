"""Numbers that follow from one or two others by a sum: y = a + b·x, y = a + b·x₁ + c·x₂, exactly or nearly.

A total and a part tell the other part, a date of birth tells the age, a rounded copy the number: there hardly a value
occurs twice, so counting finds nothing. Lines are looked for on many small sets of rows, because a wrong cell among
thousands bends a fit to all of them, while most small sets hold none; the lines that fit most sets are then fitted to
the nine tenths of the rows that lie closest to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.runtime.arrays import Codes, Flags, Floats
from sfumato.sources.engines.engine import Engine
from sfumato.tables.dependence.counts import Guess

SETS = 32  # small sets of rows, half of them drawn from rows that miss the same columns
SIZE = 12  # rows of a set
FITS = 0.98  # the share of the variance that a line must explain in a set
MOST = 0.4  # the share of the sets in which it must
BETTER = 0.2  # the share of the sets without a fit that a second column must mend
KEPT = 50  # lines of a column that are looked at further
ROWS = 4_000  # rows that a line is fitted to
TRIES = 30  # small fits
NEAR = 0.9  # the share of rows, the closest ones, that it is fitted to
LOOSE = 0.02  # of the range in which nine tenths of a column lie: near enough


@dataclass(frozen=True)
class Line:
    """`target` is about `start` plus each of `names` times its slope."""

    target: str
    names: tuple[str, ...]
    start: float
    slopes: tuple[float, ...]

    def at(self, columns: Sequence[Floats]) -> Floats:
        values = np.full(len(columns[0]), self.start)
        for slope, column in zip(self.slopes, columns, strict=True):
            values += slope * column
        return values

    def sql(self, numbers: Sequence[str]) -> str:
        parts = [f"{_number(b)} * {x}" for b, x in zip(self.slopes, numbers, strict=True)]
        return " + ".join([_number(self.start), *parts])


def _number(value: float) -> str:
    """A number that every engine reads as a floating one."""
    text = repr(float(value))
    return f"({text})" if "e" in text else f"({text}e0)"


def tolerances(values: Floats) -> tuple[float, ...]:
    """How near is near enough: exact (for whole numbers the rounding), and a fiftieth of the usual range."""
    low, high = (float(v) for v in np.quantile(values, (0.05, 0.95)))
    if low == high:
        low, high = float(values.min()), float(values.max())
    whole = bool((values == np.floor(values)).all())
    exact = 0.5 if whole else 1e-6 * (high - low)
    loose = LOOSE * (high - low)
    return (exact, loose) if loose > exact else (exact,)


def likely_lines(
    columns: Sequence[Floats], target: Floats, allowed: Flags, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Which of the columns, or which two of them, fit the target in most small sets of rows; the best first.

    Cells that are not finite are missing. `allowed[i, j]` says whether a pair may be looked at, `allowed[i, i]` whether
    one column alone may.
    """
    data = np.vstack(columns)
    sets = _sets(np.isfinite(data), np.isfinite(target), rng)
    fitted = np.zeros((len(data), len(data)), dtype=np.int32)
    tried = np.zeros_like(fitted)
    for rows in sets:
        explained = _explained(data[:, rows], target[rows])
        tried += np.isfinite(explained)
        fitted += np.nan_to_num(explained, nan=0.0) >= FITS
    share = np.where(tried >= 3, fitted / (tried + 1), 0.0)  # one set more, so that few sets count for less
    alone = np.maximum(np.diag(share)[:, None], np.diag(share)[None, :])
    pairs = share - alone > BETTER * (1 - alone)
    share = np.triu(np.where(allowed & (pairs | np.eye(len(data), dtype=np.bool_)), share, 0.0))  # a pair stands once
    best = np.argsort(-share, axis=None, kind="stable")[: KEPT + len(data)]
    chosen: list[tuple[int, ...]] = []
    for index in best.tolist():
        i, j = divmod(index, len(data))
        if share[i, j] >= MOST:
            chosen.append((i,) if i == j else (i, j))
    return sorted(chosen, key=len)[: KEPT + len(data)]


def _sets(present: Flags, known: Flags, rng: np.random.Generator) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    rows = np.flatnonzero(known)
    if len(rows) < SIZE:
        return []
    sets = [rng.choice(rows, SIZE, replace=False) for _ in range(SETS // 2)]
    _, which, counts = np.unique(present[:, rows], axis=1, return_inverse=True, return_counts=True)
    which = which.ravel()
    large = np.flatnonzero(counts >= SIZE)
    if len(large):
        for pattern in rng.choice(large, SETS // 2, p=counts[large] / counts[large].sum()):
            sets.append(rng.choice(rows[which == pattern], SIZE, replace=False))
    return sets


def _explained(data: Floats, target: Floats) -> Floats:
    """R² of the target on each pair of columns; on the diagonal, on each column alone. NaN where it is not defined."""
    y = target - target.mean()
    spread = float(np.sqrt(y @ y))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        x = data - data.mean(axis=1, keepdims=True)
        length = np.sqrt((x * x).sum(axis=1, keepdims=True))
        x = np.where(length > 1e-9 * np.abs(data).max(axis=1, keepdims=True), x / length, np.nan)
        if not spread > 1e-9 * np.abs(target).max():
            return np.full((len(data), len(data)), np.nan)
        r = x @ (y / spread)
        between = x @ x.T
        free = 1 - between**2
        both = (r[:, None] ** 2 - 2 * r[:, None] * r[None, :] * between + r[None, :] ** 2) / free
        both = np.where(free > 1e-6, both, np.nan)
        np.fill_diagonal(both, r**2)
    return both


def fit(names: Sequence[str], target: str, columns: Sequence[Floats], values: Floats, rng: np.random.Generator) -> Line:
    """The line that most rows lie near: the best of many small fits, then fitted again to what lies closest.

    What counts is how many rows lie near, not how far off the others are: where one of two columns is nearly always 0,
    a line that ignores it fits nine tenths of the rows without any error.
    """
    data = np.column_stack([np.ones(len(values)), *columns])
    scale = np.maximum(np.abs(data).max(axis=0), 1e-300)
    scaled = data / scale
    near = tolerances(values)

    def hits(slopes: Floats) -> int:
        off_by = np.abs(values - scaled @ slopes)
        return sum(int((off_by <= one).sum()) for one in near)

    line, best = np.zeros(data.shape[1]), -1
    for _ in range(TRIES):
        rows = rng.choice(len(values), min(SIZE, len(values)), replace=False)
        slopes = np.linalg.lstsq(scaled[rows], values[rows], rcond=None)[0]
        if hits(slopes) > best:
            line, best = slopes, hits(slopes)
    for _ in range(5):
        off_by = np.abs(values - scaled @ line)
        rows = np.flatnonzero(off_by <= max(float(np.quantile(off_by, NEAR)), near[-1]))
        slopes = np.linalg.lstsq(scaled[rows], values[rows], rcond=None)[0]
        if hits(slopes) <= best:
            break
        line, best = slopes, hits(slopes)
    line = line / scale
    return Line(target, tuple(names), float(line[0]), tuple(float(b) for b in line[1:]))


def guess_on_line(line: Line, columns: Sequence[Floats], values: Floats, label: Codes, near: float) -> Guess:
    """How many values lie within `near` of the line, and how many of the best constant of their label."""
    right = int((np.abs(values - line.at(columns)) <= near).sum())
    return Guess(len(values), right, max(_constant(values, label, near, offset) for offset in (0.0, near)))


def _constant(values: Floats, label: Codes, near: float, offset: float) -> int:
    bins = np.floor((values + offset) / (2 * near))
    keys = np.unique(np.column_stack([label, bins]), axis=0, return_counts=True)
    largest = np.zeros(int(label.max()) + 1 if len(label) else 0, dtype=np.int64)
    np.maximum.at(largest, keys[0][:, 0].astype(np.int64), keys[1])
    return int(largest.sum())


def count_on_line(engine: Engine, rows: str, line: Line, numbers: Sequence[str], value: str, near: float) -> Guess:
    """`guess_on_line` on a query's rows, which have a label g, by the engine."""
    cells = [f"{value} AS y", *(f"{x} AS x{i}" for i, x in enumerate(numbers)), "g"]
    engine.run(f"CREATE OR REPLACE TEMP TABLE lined AS SELECT {', '.join(cells)} FROM ({rows}) AS a")
    names = [f"x{i}" for i in range(len(numbers))]
    whole = " AND ".join(f"{name} IS NOT NULL" for name in ("y", *names))
    off = f"abs(y - ({line.sql(names)}))"
    tried, right = engine.rows(
        f"SELECT count(*), count(CASE WHEN {off} <= {_number(near)} THEN 1 END) FROM lined WHERE {whole}"
    )[0]
    base = 0
    for offset in (0.0, near):
        bins = f"floor((y + {_number(offset)}) / {_number(2 * near)})"
        counted = f"SELECT g, {bins} AS b, count(*) AS n FROM lined WHERE {whole} GROUP BY g, {bins}"
        best = f"SELECT g, max(n) AS m FROM ({counted}) AS t GROUP BY g"
        base = max(base, int(engine.rows(f"SELECT CAST(coalesce(sum(m), 0) AS BIGINT) FROM ({best}) AS u")[0][0]))
    return Guess(int(tried), int(right), base)
