"""How often a column is guessed right from another: counted on rows in memory, and by the engine on all rows.

Both leave the row itself out: the guess for a row is the most frequent value among *other* rows that are alike in what
is given. Otherwise a column with many values would seem to tell everything, because each of its values occurs once or
twice and is right about itself. Rows with a value that no other row has are not counted. A guess that a tie leaves open
is wrong, and so is one that no other row with the same label helps to make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.sources.engines.engine import Engine, quoted

DENSE = 400_000  # cells of a table of counts that is filled in full
RIGHT = 0.95  # the share of rows for which a guess must be right
ERRORS = 0.5  # the share of the errors made without the column that it must remove
FEW = 0.01  # if fewer than this share of the rows are guessed right that were not before, …
CLEAR = 0.8  # … this share of the errors must be removed
FOUND = 0.5  # the share of the rows with a rare value above which a column finds them
LEAST = 20  # rows on which a guess must have been tried


@dataclass(frozen=True)
class Guess:
    """`right` of `rows` rows were guessed from what is given, `base` of them from the released label alone."""

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
        """The share of the errors made without the column that it removes (Goodman and Kruskal's λ).

        >>> Guess(100, 98, 90).removed
        0.8
        """
        return (self.right - self.base) / (self.rows - self.base) if self.rows > self.base else 0.0

    def tells(self, slack: float = 0.0) -> bool:
        """Whether it is a dependence: right often enough, and not because one value is frequent anyway.

        Where only few records are at stake, more of the errors must go. `slack` makes all of it easier.

        >>> Guess(4000, 3984, 3968).tells(), Guess(4000, 4000, 3980).tells()
        (False, True)
        """
        if self.rows < LEAST or self.share < RIGHT - slack or self.removed < ERRORS - 2 * slack:
            return False
        return self.share - self.base_share >= FEW - slack or self.removed >= CLEAR - 2 * slack


NOTHING = Guess(0, 0, 0)


def joined(first: Codes, second: Codes) -> Codes:
    """One code for two columns together, numbered without gaps in the order of the two.

    >>> joined(np.array([2, 0, 2, 1]), np.array([0, 7, 0, 3])).tolist()
    [2, 0, 2, 1]
    """
    if len(first) == 0:
        return first
    width = int(second.max()) + 1
    keys = first.astype(np.int64) * width + second
    if (int(first.max()) + 1) * width <= DENSE:  # to number the keys in use is quicker than to sort the rows
        numbers = np.cumsum(np.bincount(keys) > 0, dtype=np.int32) - np.int32(1)
        dense: Codes = numbers[keys]
        return dense
    codes: Codes = np.unique(keys, return_inverse=True)[1].astype(np.int32)
    return codes


def guess_by_value(given: Codes, target: Codes, label: Codes) -> Guess:
    """Guess `target` from rows with the same `given` and the same `label`.

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
    """How many are right if the most frequent value of each label is guessed."""
    if len(target) == 0:
        return 0
    return int(_two_largest(label, target, int(label.max()) + 1)[0].sum())


def _two_largest(cells: Codes, target: Codes, count: int) -> tuple[Counts64, Counts64]:
    """The counts of the most frequent and of the second value of each cell."""
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
    """`guess_by_value` on a query's rows, by the engine; given, target and label are expressions of its columns."""
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
    """Rows of a query with a value, and how many of them stand where most rows with the same `given` have the value."""
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
    """`guess_by_order` on a query's rows, which have a number r of their own, by the engine."""
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
