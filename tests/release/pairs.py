"""Two releases of one table side by side, in plain pandas: the numbers that the ledger's check must give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

ABSENT = "(not in the file)"


@dataclass(frozen=True)
class Pair:
    """What two files show of each person of the source.

    `first` and `second` hold the cells that a file shows of people, also of those it leaves out, under the index of
    the source; `in_first` and `in_second` say who is in it. `whose` is the person of each row, where rows are not
    people.
    """

    source: pd.DataFrame
    first: pd.DataFrame
    second: pd.DataFrame
    in_first: pd.Series
    in_second: pd.Series
    whose: pd.Series | None = None

    @property
    def people(self) -> pd.Series:
        """The person of each row."""
        return pd.Series(self.source.index, index=self.source.index) if self.whose is None else self.whose

    def number(self, rows: pd.Series) -> int:
        """How many people have one of these rows."""
        return int(self.people[rows[rows].index].nunique())

    def seen(self, columns: Sequence[str]) -> pd.DataFrame:
        """For each person in a file: the cells of both files in some columns, as one text each, and who is in which."""
        sides = {}
        for name, shown in (("a", self.first), ("b", self.second)):
            held = [column for column in columns if column in shown]
            cells = shown[held].astype(str).agg("|".join, axis=1) if held else pd.Series("", index=shown.index)
            sides[name] = cells.where(self.in_first if name == "a" else self.in_second, ABSENT)
        both = pd.DataFrame(sides).assign(in_a=self.in_first, in_b=self.in_second)
        return both[both["in_a"] | both["in_b"]]

    def joint_sizes(self, columns: Sequence[str]) -> pd.DataFrame:
        """The class of each person in both files together, and in each of them (0 where the person is not in it)."""
        seen = self.seen(columns).assign(who=self.people)
        groups = ["a", "b", "in_a", "in_b"]
        sizes = pd.DataFrame({"joint": seen.groupby(groups)["who"].transform("nunique")})
        sizes["a"] = seen.groupby(["a", "in_a"])["who"].transform("nunique").where(seen["in_a"], 0)
        sizes["b"] = seen.groupby(["b", "in_b"])["who"].transform("nunique").where(seen["in_b"], 0)
        return sizes

    def different(self, seen: pd.DataFrame, groups: Sequence[str]) -> pd.Series:
        """How many values each class has: as many as people at most, and one where all of them have it."""
        found = pd.Series(0, index=seen.index)
        for _, rows in seen.groupby(list(groups)):
            people = set(rows["who"])
            holders = [set(rows["who"][rows["value"] == value]) for value in set(rows["value"])]
            found[rows.index] = 1 if people in holders else min(len(holders), len(people))
        return found

    def small(self, quasi: Sequence[str], k: int) -> pd.Series:
        """Who is in a joint class of fewer than k people, smaller than the class in one of the files."""
        sizes = self.joint_sizes(quasi)
        return (sizes["joint"] < k) & (sizes["joint"] < sizes[["a", "b"]].max(axis=1))

    def unique(self) -> pd.Series:
        """Who is unique in the two files together and in neither alone."""
        sizes = self.joint_sizes([*dict.fromkeys([*self.first, *self.second])])
        return (sizes["joint"] == 1) & (sizes["a"] != 1) & (sizes["b"] != 1)

    def alike(self, quasi: Sequence[str], sensitive: str, least: int) -> pd.Series:
        """Who is in a joint class with fewer values of a sensitive column than asked, and than in each file alone."""
        seen = self.seen(quasi).assign(value=self.source[sensitive], who=self.people)
        joint = self.different(seen, ["a", "b", "in_a", "in_b"])
        told, before = pd.Series(False, index=seen.index), pd.Series(10**9, index=seen.index)
        for side, shown in (("a", self.first), ("b", self.second)):
            if sensitive in shown:
                there = seen[f"in_{side}"]
                alone = self.different(seen, [side, f"in_{side}"]).where(there, 10**9)
                told, before = told | there, before.where(before < alone, alone)
        return told & (joint < least) & (joint < before)

    def labels(self, column: str) -> pd.DataFrame:
        """Every value that occurs, with its label in each file."""
        return pd.DataFrame({"v": self.source[column], "a": self.first[column], "b": self.second[column]})

    def exact(self, column: str) -> pd.Series:
        """Whose value follows from the two labels, though from neither alone. Only values that occur are possible."""
        here = self.labels(column)
        joint = here.groupby(["a", "b"])["v"].transform("nunique")
        alone = [here.groupby(side)["v"].transform("nunique") for side in "ab"]
        return (joint == 1) & (alone[0] > 1) & (alone[1] > 1) & self.in_first & self.in_second

    def linked(self, recoded: Sequence[str], kept: Sequence[str]) -> pd.Index:
        """People whose rows of the two files fit each other and no other row, by the cells that both files show."""
        a, b = (
            shown.loc[there, [*recoded, *kept]].reset_index(names="who").assign(all="x")
            for shown, there in ((self.first, self.in_first), (self.second, self.in_second))
        )
        pairs = a.merge(b, on=["all", *kept], suffixes=("_a", "_b"))
        for column in recoded:
            fits = self.labels(column)[["a", "b"]].drop_duplicates()
            fits.columns = [f"{column}_a", f"{column}_b"]
            pairs = pairs.merge(fits)
        alone = ~pairs["who_a"].duplicated(keep=False) & ~pairs["who_b"].duplicated(keep=False)
        return pd.Index(pairs["who_a"][alone & (pairs["who_a"] == pairs["who_b"])])
