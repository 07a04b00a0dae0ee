"""Counts of correct guesses of one column from others, on rows in memory and by the engine on all rows.

The guess for a row is the most frequent value among *other* rows with the same given values. If the row itself counted,
a column with many values would seem to reveal everything, because each value occurs once or twice. Rows with a unique
value are not counted. A guess is wrong where there is a tie, or where no other row has the same label.

Numbers may follow from one or two others by a sum: y = a + b·x, y = a + b·x₁ + c·x₂, exactly or nearly. A total and a
part reveal the other part, a date of birth reveals the age, and a rounded copy the number. Such values hardly repeat,
so counting finds nothing. Lines are fitted to many small sets of rows, because one wrong cell changes a fit to
thousands of rows, while most small sets have none. The lines that fit most sets are then fitted to the nearest nine
tenths of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.data.engine import Engine
from sfumato.data.source import quoted

DENSE = 400_000  # largest number of cells of a dense table of counts
RIGHT = 0.95  # the share of rows for which a guess must be right
ERRORS = 0.5  # the share of the errors made without the column that it must remove
FEW = 0.01  # if fewer than this share of the rows are guessed right that were not before, …
CLEAR = 0.8  # … this share of the errors must be removed
FOUND = 0.5  # the share of the rows with a rare value above which a column finds them
LEAST = 20  # rows on which a guess must have been tried


@dataclass(frozen=True)
class Guess:
    """Result of guesses: `right` of `rows` rows from the given values, and `base` from the released label alone."""

    rows: int
    right: int
    base: int

    @property
    def share(self) -> float:
        return self.right / self.rows if self.rows else 0.0

    @property
    def base_share(self) -> float:
        return self.base / self.rows if self.rows else 0.0

    @property
    def removed(self) -> float:
        """The share of the errors without the column that the column removes (Goodman and Kruskal's λ).

        >>> Guess(100, 98, 90).removed
        0.8
        """
        return (self.right - self.base) / (self.rows - self.base) if self.rows > self.base else 0.0

    def tells(self, slack: float = 0.0) -> bool:
        """Return whether it is a dependence: often right, and not only because one value is frequent.

        Where few records are affected, more of the errors must be removed. `slack` lowers all thresholds.

        >>> Guess(4000, 3984, 3968).tells(), Guess(4000, 4000, 3980).tells()
        (False, True)
        """
        if self.rows < LEAST or self.share < RIGHT - slack or self.removed < ERRORS - 2 * slack:
            return False
        return self.share - self.base_share >= FEW - slack or self.removed >= CLEAR - 2 * slack


NOTHING = Guess(0, 0, 0)


def joined(first: Codes, second: Codes) -> Codes:
    """Return one code for two columns together, numbered without gaps in the order of the two.

    >>> joined(np.array([2, 0, 2, 1]), np.array([0, 7, 0, 3])).tolist()
    [2, 0, 2, 1]
    """
    if len(first) == 0:
        return first
    width = int(second.max()) + 1
    keys = first.astype(np.int64) * width + second
    if (int(first.max()) + 1) * width <= DENSE:  # numbering the used keys is faster than sorting the rows
        numbers = np.cumsum(np.bincount(keys) > 0, dtype=np.int32) - np.int32(1)
        dense: Codes = numbers[keys]
        return dense
    codes: Codes = np.unique(keys, return_inverse=True)[1].astype(np.int32)
    return codes


def guess_by_value(given: Codes, target: Codes, label: Codes) -> Guess:
    """Count how often the most frequent `target` among rows with equal `given` and `label` is right.

    >>> code, town = np.array([0, 0, 0, 1, 1, 1]), np.array([5, 5, 5, 7, 7, 7])
    >>> guess_by_value(code, town, np.zeros(6, dtype=np.int32))
    Guess(rows=6, right=6, base=3)
    """
    if len(given) == 0:
        return NOTHING
    rows = np.bincount(given)[given] >= 2
    cells = joined(given, label) if label.any() else given
    first, second = _two_largest(cells, target, int(cells.max()) + 1)
    right = first[first > second + 1].sum()
    return Guess(int(rows.sum()), int(right), _majority(target[rows], label[rows]))


def guess_by_order(values: Floats, target: Codes, label: Codes) -> Guess:
    """Guess `target` from the row before in the order of a number, among rows of the same `label`.

    For numbers and dates of which hardly two are the same. Rows must come in random order: equal numbers stay as given.
    """
    order = np.lexsort((values, label))
    same = label[order][1:] == label[order][:-1]
    ordered = target[order]
    right = same & (ordered[1:] == ordered[:-1])
    counted = order[1:][same]
    return Guess(len(counted), int(right.sum()), _majority(target[counted], label[counted]))


def _majority(target: Codes, label: Codes) -> int:
    """Return how many are right if the most frequent value of each label is guessed."""
    if len(target) == 0:
        return 0
    return int(_two_largest(label, target, int(label.max()) + 1)[0].sum())


def _two_largest(cells: Codes, target: Codes, count: int) -> tuple[Counts64, Counts64]:
    """Return the counts of the most frequent and of the second value of each cell."""
    width = int(target.max()) + 1
    keys = cells.astype(np.int64) * width + target
    if count * width <= DENSE:
        table = np.bincount(keys, minlength=count * width).reshape(count, width)
        first = table.max(axis=1)
        table[np.arange(count), table.argmax(axis=1)] = 0
        return first, table.max(axis=1)
    different, counts = np.unique(keys, return_counts=True)
    owner = different // width
    order = np.lexsort((-counts, owner))
    owner, counts = owner[order], counts[order]
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    first, second = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    first[owner[starts]] = counts[starts]
    after = starts + 1
    after = after[after < len(owner)]
    after = after[owner[after] == owner[after - 1]]
    second[owner[after]] = counts[after]
    return first, second


def count_by_value(engine: Engine, rows: str, given: Sequence[str], target: str, label: str) -> Guess:
    """Count as `guess_by_value`, by the engine on a query's rows. The arguments are expressions of its columns."""
    values = ", ".join(f"k{i}" for i in range(len(given)))
    keys = f"{values}, g"
    named = ", ".join(f"{cell} AS k{i}" for i, cell in enumerate(given))
    cells = f"SELECT {named}, {label} AS g, {target} AS v FROM ({rows}) AS a"
    counted = f"SELECT {keys}, v, count(*) AS n FROM ({cells}) AS b GROUP BY {keys}, v"
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE guessed AS SELECT {keys}, v, n, "
        f"row_number() OVER (PARTITION BY {keys} ORDER BY n DESC, v) AS rank_, "
        f"sum(n) OVER (PARTITION BY {values}) AS total FROM ({counted}) AS c"
    )
    tops = (
        f"SELECT max(n) AS a, max(CASE WHEN rank_ = 2 THEN n ELSE 0 END) AS b, sum(n) AS total "
        f"FROM guessed WHERE total >= 2 GROUP BY {keys}"
    )
    tried, right = engine.rows(
        f"SELECT CAST(coalesce(sum(total), 0) AS BIGINT), "
        f"CAST(coalesce(sum(CASE WHEN a > b + 1 THEN a ELSE 0 END), 0) AS BIGINT) FROM ({tops}) AS t"
    )[0]
    base = _count_majority(engine, "SELECT g, v, sum(n) AS n FROM guessed WHERE total >= 2 GROUP BY g, v")
    return Guess(int(tried), int(right), base)


def count_rare(engine: Engine, rows: str, given: str, target: str, value: str) -> tuple[int, int]:
    """Return the number of rows with a value, and of those where most rows with the same `given` have it."""
    flag = f"CASE WHEN {target} = {quoted(value)} THEN 1 ELSE 0 END"
    cells = f"SELECT {given} AS k, {flag} AS m FROM ({rows}) AS a"
    counted = f"SELECT k, count(*) AS n, sum(m) AS m FROM ({cells}) AS b GROUP BY k"
    there, hits = engine.rows(
        "SELECT CAST(coalesce(sum(m), 0) AS BIGINT), "
        "CAST(coalesce(sum(CASE WHEN k <> '' AND n > 1 AND 2 * m > n THEN m ELSE 0 END), 0) AS BIGINT) "
        f"FROM ({counted}) AS c"
    )[0]
    return int(there), int(hits)


def count_by_order(engine: Engine, rows: str, number: str, target: str, label: str) -> Guess:
    """Count as `guess_by_order`, by the engine on a query's rows, which have a row number r."""
    cells = f"SELECT {number} AS x, {label} AS g, {target} AS v, {engine.hashed(['r'])} AS h FROM ({rows}) AS a"
    before = "lag(v) OVER (PARTITION BY g ORDER BY x, h)"
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE guessed AS SELECT g, v, {before} AS w FROM ({cells}) AS b WHERE x IS NOT NULL"
    )
    tried, right = engine.rows("SELECT count(w), count(CASE WHEN v = w THEN 1 END) FROM guessed")[0]
    base = _count_majority(engine, "SELECT g, v, count(*) AS n FROM guessed WHERE w IS NOT NULL GROUP BY g, v")
    return Guess(int(tried), int(right), base)


def _count_majority(engine: Engine, counted: str) -> int:
    sums = engine.rows(
        f"SELECT CAST(coalesce(sum(m), 0) AS BIGINT) FROM (SELECT g, max(n) AS m FROM ({counted}) AS t GROUP BY g) AS u"
    )
    return int(sums[0][0])


SETS = 32  # small sets of rows, half of them drawn from rows that miss the same columns
SIZE = 12  # rows of a set
FITS = 0.98  # the share of the variance that a line must explain in a set
MOST = 0.4  # the share of the sets in which it must
BETTER = 0.2  # the share of the sets without a fit that a second column must fit
KEPT = 50  # lines of a column that are looked at further
ROWS = 4_000  # rows that a line is fitted to
TRIES = 30  # small fits
NEAR = 0.9  # the share of rows, the closest ones, that it is fitted to
LOOSE = 0.02  # of the range in which nine tenths of a column lie: near enough


@dataclass(frozen=True)
class Line:
    """A line: `target` is nearly `start` plus each of `names` times its slope."""

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
    """Return a number that every engine reads as a floating one."""
    text = repr(float(value))
    return f"({text})" if "e" in text else f"({text}e0)"


def tolerances(values: Floats) -> tuple[float, ...]:
    """Return the two tolerances: exact up to rounding, and a fiftieth of the usual range."""
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
    """Return the columns or pairs of columns that fit the target in most small sets of rows, the best first.

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
    share = np.triu(np.where(allowed & (pairs | np.eye(len(data), dtype=np.bool_)), share, 0.0))  # each pair once
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
    """Return R² of the target on each pair of columns, and on the diagonal on each column alone. It may be NaN."""
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
    """Return the line near most rows: the best of many small fits, fitted once more to the nearest rows.

    The number of near rows decides and not the distance of the others. Where one of two columns is nearly always 0, a
    line that ignores it fits nine tenths of the rows without any error.
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
    """Return the number of values within `near` of the line, and within `near` of the best constant of their label."""
    right = int((np.abs(values - line.at(columns)) <= near).sum())
    return Guess(len(values), right, max(_constant(values, label, near, offset) for offset in (0.0, near)))


def _constant(values: Floats, label: Codes, near: float, offset: float) -> int:
    bins = np.floor((values + offset) / (2 * near))
    keys = np.unique(np.column_stack([label, bins]), axis=0, return_counts=True)
    largest = np.zeros(int(label.max()) + 1 if len(label) else 0, dtype=np.int64)
    np.maximum.at(largest, keys[0][:, 0].astype(np.int64), keys[1])
    return int(largest.sum())


def count_on_line(engine: Engine, rows: str, line: Line, numbers: Sequence[str], value: str, near: float) -> Guess:
    """Count as `guess_on_line`, by the engine on a query's rows, which have a label g."""
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
        base = max(base, _count_majority(engine, counted))
    return Guess(int(tried), int(right), base)


Status = Literal["generalized", "withheld", "sensitive", "disguised"]
Way = Literal["tells", "follows", "computes", "finds"]
Kind = Literal["one_to_one", "many_to_one", "nearly"]


@dataclass(frozen=True)
class Protected:
    """A column whose values readers must not learn.

    For a generalized column, `steps` are maps from value (clean text, empty where it is missing) to label, the finest
    first. The last one is released, and the others are levels between the value and the release. A withheld, sensitive
    or disguised column has none, because a reader knows no label.

    `rare` is a value whose rows must not be found, such as membership of a group. A column then also counts if its
    values find more than half of these rows and are right more often than wrong.
    """

    name: str
    status: Status = "withheld"
    steps: tuple[Mapping[str, str], ...] = ()
    rare: str | None = None


@dataclass(frozen=True)
class Dependence:
    """One or two kept columns that reveal a protected column.

    `right` is the share of rows with a correct guess from the kept columns and the released label, `base` the share
    from the released label alone. Where a kept column *follows* from the protected one, the kept column is guessed
    instead: from the value, and from its released label. With `step` 0 the value is guessed, with another one its
    label. The counted rows are `rows`, which share the given values with another row. Where a column *finds* a rare
    value, `rows` counts the rows that have it, and `right` is the share of them that it finds.
    """

    kept: tuple[str, ...]
    protected: str
    status: Status
    way: Way
    kind: Kind
    right: float
    base: float
    rows: int
    step: int = 0

    def as_dict(self) -> dict[str, object]:
        return asdict(self) | {"kept": list(self.kept), "right": round(self.right, 4), "base": round(self.base, 4)}


@dataclass(frozen=True)
class Identifying:
    """A kept column that identifies records: the share of rows with a unique value."""

    column: str
    share: float


@dataclass(frozen=True)
class Dependences:
    """All dependences and identifying columns of a table."""

    dependences: tuple[Dependence, ...] = ()
    identifying: tuple[Identifying, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A candidate for a dependence, with the way to count it: by value, by order, or on a line."""

    kept: tuple[str, ...]
    protected: Protected
    way: Way
    step: int = 0
    by_order: bool = False
    line: Line | None = None
    near: float = 0.0
    exact: bool = True  # whether near means no more than rounding
    alone: float = 0.0  # the share that the better of two columns guesses right without the other
