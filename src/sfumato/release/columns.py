"""One quasi-identifier under a plan: what each of its values is released as.

Labels of a release: groups are named by the values that released records have.

A group made from the data (a cut, a quantile, labels joined on the page) is known to its publisher by the values it
holds, `[3 .. 24]` or `{Astronaut | Clerk}`. Some of them may be gone with the suppressed records, so a release has
names of its own, which depend on nothing but released records:

- Neighbouring numbers: `<25`, `25-56`, `>=57`. A bound is a declared break, else the roundest number that is above the
  released values below it and not above those from it on: it parts the groups as well as somebody's exact value would.
  The outer ends are open, because there a bound parts nothing and would only be somebody's extreme value.
- Nodes of the column's hierarchy, where it is cut along that: their names, as a person wrote them.
- Other values: the value if there is one, the node of the column's hierarchy that has all of them, or a list. Codes
  are listed as codes, never beside names of nodes.
- Intervals with fixed bounds stay; but `[20, 30)` is `20-29` where all released values are whole numbers, because
  recipes write the one or the other by all values.
- What a person wrote stays, unless it is the name of a value that is gone. Public hierarchies are known to everybody,
  so all their values count as released.

Groups without a released record keep the publisher's name in the private hierarchy, and stand in no public file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from sfumato.base.arrays import Flags
from sfumato.data.cells import MISSING
from sfumato.data.settings import Role
from sfumato.errors import HierarchyError, StudyError, shortened
from sfumato.hierarchies import ROOT, Hierarchy
from sfumato.hierarchies.build import bounded
from sfumato.hierarchies.labels import from_values, listed, number, roundest
from sfumato.hierarchies.recipes import HierarchyFile
from sfumato.measures.classes import ClassTable
from sfumato.plans.recodings import coded, nodes_within
from sfumato.study import ColumnSettings, Study
from sfumato.study.methods import METHODS
from sfumato.tables.domain import missing_leaf

Joined = Literal["level", "nodes", "neighbours"]


@dataclass(frozen=True, eq=False)
class ColumnRecode:
    """A hierarchy, a level of it, and the leaf at which missing values stand (None: the column has no place for them).

    `joined` says what the groups of the level are: a level of the column's own hierarchy, nodes of it, or neighbours.

    >>> tree = Hierarchy.from_paths("zip", [("11", "1*", "*"), ("12", "1*", "*"), ("", "", "*")])
    >>> column = ColumnRecode("zip", tree, 1, missing=2)
    >>> column.keys, column.released, column.missing_stays
    (['11', '12', ''], ['1*', '1*', None], True)
    """

    name: str
    tree: Hierarchy
    level: int
    missing: int | None = None
    wildcard: bool = False
    joined: Joined = "level"

    @property
    def keys(self) -> list[str]:
        """The values as the engine knows them after cleaning: a missing one is the empty text."""
        return [MISSING if leaf == self.missing else label for leaf, label in enumerate(self.tree.leaves)]

    @property
    def groups(self) -> list[int]:
        """The place of each value's label on the level."""
        return [int(group) for group in self.tree.maps[self.level]]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.tree.levels[self.level]

    @cached_property
    def kept_group(self) -> int:
        """The label under which a missing cell is released as it was, or -1 if missing values were generalized."""
        if self.missing is None:
            return -1
        group = int(self.tree.maps[self.level][self.missing])
        return group if self.labels[group] == self.tree.leaves[self.missing] else -1

    @property
    def missing_stays(self) -> bool:
        return self.kept_group >= 0

    @property
    def released(self) -> list[str | None]:
        """The released label of each value; None for a missing cell that stays one."""
        return [None if group == self.kept_group else self.labels[group] for group in self.groups]

    @property
    def wild_group(self) -> int:
        """The group that matches anything, or -1: a missing value that shares its label with others does not."""
        if not self.wildcard or self.missing is None:
            return -1
        group = self.groups[self.missing]
        return group if self.groups.count(group) == 1 else -1

    @property
    def hidden(self) -> bool:
        """Whether nothing of the column is told."""
        return self.level == self.tree.height

    @property
    def ambiguous(self) -> list[str]:
        """Labels of the level that stand for other values at a lower level: only the plan tells which is meant."""
        labels = []
        for group, label in enumerate(self.labels):
            level, position = self.tree.nodes[label]
            if self.tree.sizes[level][position] != self.tree.sizes[self.level][group]:
                labels.append(label)
        return labels


def column_recodes(study: Study, levels: Mapping[str, int], trees: Mapping[str, Hierarchy]) -> tuple[ColumnRecode, ...]:
    """What a plan does to each quasi-identifier: a level of a hierarchy, which a cut has of its own."""
    recodes = []
    for name in study.named(Role.QUASI_IDENTIFIER):
        if name not in levels or name not in trees:
            raise StudyError(f"the plan has no level for {name}", expected="one level for each quasi-identifier")
        level, tree = levels[name], trees[name]
        if not 0 <= level <= tree.height:
            raise StudyError(f"level {level} of {name}", expected=f"a level from 0 to {tree.height}")
        rule = study.missing_rule(name)
        leaf = None if rule == "drop" else missing_leaf(tree, study.data.na, wildcard=rule == "wildcard")
        joined: Joined = (
            "level"
            if not METHODS[study.system].neighbours
            else "nodes"
            if study.columns[name].along_tree
            else "neighbours"
        )
        recodes.append(ColumnRecode(name, tree, level, leaf, wildcard=rule == "wildcard", joined=joined))
        _refuse_missing_labels(recodes[-1], study.data.na)
    return tuple(recodes)


def _refuse_missing_labels(column: ColumnRecode, na: Sequence[str]) -> None:
    """A released label that a reader takes for a missing value would not be measured as what it is."""
    unreadable = [
        label
        for group, label in enumerate(column.labels)
        if label in (MISSING, *na) and group != column.kept_group and not _never_read(column, group, na)
    ]
    if unreadable:
        raise HierarchyError(
            f"{column.name} would be released with labels that read as missing: {shortened(map(repr, unreadable), 3)}",
            expected="labels that are not in na under [data]",
            remedy="rename them in the hierarchy" + (f", or take {ROOT!r} out of na" if ROOT in unreadable else ""),
        )


def _never_read(column: ColumnRecode, label: int, na: Sequence[str]) -> bool:
    """Whether only values that are missing themselves, and so are never looked up, stand under a label."""
    leaves = [leaf for leaf, group in enumerate(column.groups) if group == label]
    return all(column.tree.leaves[leaf] in (MISSING, *na) and leaf != column.missing for leaf in leaves)


WHOLE = re.compile(r"-?\d+$")
HALF_OPEN = re.compile(r"\[(-?\d+), (-?\d+)\)$")
ANY = "any value"  # the only group: both its ends are open


@dataclass(frozen=True, eq=False)
class Naming:
    """How the groups of one column are named: its hierarchy with the publisher's labels, and the released values.

    `nodes` is the hierarchy in which names for several values are looked up, `settled` the labels by which the groups
    were released before, when the values `before` were. `cut` says that the groups are runs of neighbours, not nodes.

    >>> paths = [("3", "[3 .. 21]", "*"), ("20", "[3 .. 21]", "*"), ("21", "[3 .. 21]", "*"), ("30", "30", "*")]
    >>> tree, settings = Hierarchy.from_paths("age", paths), ColumnSettings(role="quasi_identifier")
    >>> Naming(tree, 1, tree, frozenset({"20", "21", "30"}), settings).labels
    ('<30', '30')
    """

    tree: Hierarchy
    level: int
    nodes: Hierarchy
    values: frozenset[str]
    settings: ColumnSettings
    decimal: str = "."
    settled: tuple[str, ...] = ()
    before: frozenset[str] = frozenset()
    cut: bool = False

    def with_values(self, more: Iterable[str]) -> Naming:
        """The names when these values are released as well."""
        return replace(self, values=self.values | set(more), settled=self.labels, before=self.values)

    def named(self) -> Hierarchy:
        """The hierarchy with the labels of the release."""
        levels = (*self.tree.levels[: self.level], self.labels, *self.tree.levels[self.level + 1 :])
        return Hierarchy(self.tree.name, levels, self.tree.maps)

    def as_dict(self) -> dict[str, Any]:
        """What `naming_from` needs beside the hierarchy as it was released: private, like that."""
        pairs = zip(self.labels, self.tree.levels[self.level], strict=True)
        labels = {new: old for new, old in pairs if new != old}
        return {"values": sorted(self.values), "labels": labels, "cut": self.cut, "decimal": self.decimal}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each group. No two are alike, and those of groups with released records depend on no others."""
        old = self.tree.levels[self.level]
        named = {group: self._label(group) for group in self._members}
        counts = Counter(named.values())
        for group, label in named.items():
            if counts[label] > 1 and self._made(group):
                named[group] = listed(self._members[group])
        taken = set(named.values())
        for group, label in enumerate(old):
            if group not in named:
                while label in taken:
                    label = f"{label} (not released)"
                named[group] = label
                taken.add(label)
        return tuple(named[group] for group in range(len(old)))

    @cached_property
    def _members(self) -> dict[int, list[str]]:
        """The released values of each group that has some."""
        members: dict[int, list[str]] = {}
        for leaf, group in zip(self.tree.leaves, self.tree.maps[self.level].tolist(), strict=True):
            if leaf in self.values:
                members.setdefault(group, []).append(leaf)
        return members

    def _made(self, group: int) -> bool:
        """Whether a group's label is made of values, or is that of a value which is not released.

        In a free cut even the name of a node is: which nodes a group has depends on all values.
        """
        label = self.tree.levels[self.level][group]
        level, _ = self.tree.nodes[label]
        return self.cut or from_values(label) or (level == 0 and label not in self.values)

    def _label(self, group: int) -> str:
        label, members = self.tree.levels[self.level][group], self._members[group]
        if not self._made(group):
            return for_whole(label) if self._whole_numbers else label
        if len(members) == 1:
            return members[0]
        if (self.cut or " .. " in label) and group in self._ranges:
            return self._ranges[group]
        return self.settled[group] if self.settled and self.before.issuperset(members) else self._list(members)

    def _list(self, members: list[str]) -> str:
        if self.cut and coded(self.values, self.decimal):
            return listed(members)
        places, among = self._places
        under = self.level if self.nodes is self.tree else self.nodes.height
        inside = np.zeros_like(among)
        inside[[places[leaf] for leaf in members]] = True
        names = nodes_within(self.nodes, inside, among, under)
        return names[0] if len(names) == 1 else listed(names)

    @cached_property
    def _places(self) -> tuple[dict[str, int], Flags]:
        """Where each value stands in `nodes`, and where the released ones do."""
        places = {leaf: position for position, leaf in enumerate(self.nodes.leaves)}
        return places, np.array([leaf in self.values for leaf in self.nodes.leaves])

    @cached_property
    def _whole_numbers(self) -> bool:
        """Whether all released values are whole numbers."""
        values = [number(leaf, self.decimal) for leaf in self.values if leaf]
        return all(value is not None and value.is_integer() for value in values)

    @cached_property
    def _whole(self) -> bool:
        """Whether all released values are written as whole numbers."""
        return all(WHOLE.match(leaf) for leaf in self.values if leaf)

    @cached_property
    def _ranges(self) -> dict[int, str]:
        """The ranges of groups that are neighbouring numbers among the released values."""
        groups = []
        for group, members in self._members.items():
            if all(number(leaf, self.decimal) is not None for leaf in members):
                values = [self._exact(leaf) for leaf in members]
                groups.append((min(values), max(values), group))
        groups.sort()
        tops = list(accumulate((top for _, top, _ in groups), max))
        pairs = list(zip(tops, groups[1:], strict=False))
        apart = [True, *(top < low for top, (low, _, _) in pairs), True]
        ends = [None, *(self._bound(top, low) if top < low else low for top, (low, _, _) in pairs), None]
        return {
            group: self._range(ends[position], ends[position + 1])
            for position, (_, _, group) in enumerate(groups)
            if apart[position] and apart[position + 1]
        }

    def _exact(self, leaf: str) -> Decimal:
        return Decimal(leaf.strip().replace(",", ".") if self.decimal == "," else leaf.strip())

    def _bound(self, below: Decimal, low: Decimal) -> Decimal:
        """What parts values up to one from values from another on: a declared break, else the roundest number."""
        points = [point for point in map(Decimal, map(repr, self.settings.breaks or ())) if below < point <= low]
        return max(points) if points else roundest(below, low)

    def _range(self, low: Decimal | None, high: Decimal | None) -> str:
        if low is None or high is None:
            return ANY if low is high else f">={self._written(low)}" if low is not None else f"<{self._written(high)}"
        if not (self._whole and low == low.to_integral_value() and high == high.to_integral_value()):
            return f"[{self._written(low)} .. {self._written(high)})"
        first, last = self._written(low), self._written(high - 1)
        return first if first == last else f"[{first} .. {last}]" if low < 0 else f"{first}-{last}"

    def _written(self, value: Decimal | None) -> str:
        """A bound as values of the column are written: codes may have leading zeros."""
        text = format(value or Decimal(0), "f")
        text = (text.rstrip("0").rstrip(".") if "." in text else text).replace(".", self.decimal)
        return text.zfill(self._digits)

    @cached_property
    def _digits(self) -> int:
        """How long codes with leading zeros are; 0 where values are plain numbers."""
        coded = self._whole and any(len(leaf) > 1 and leaf.startswith("0") for leaf in self.values)
        return max(map(len, self.values)) if coded else 0


def is_public(settings: ColumnSettings) -> bool:
    """Whether everybody may know the hierarchy of a column."""
    return isinstance(settings.hierarchy, HierarchyFile) and settings.hierarchy.public


def namings(
    columns: Mapping[str, ColumnSettings],
    planned: ClassTable,
    trees: Mapping[str, Hierarchy],
    levels: Mapping[str, int],
) -> dict[str, Naming]:
    """How the groups of each column are named when the classes of a plan are released, where they need names."""
    named = {}
    kept = planned.kept[planned.index]
    for domain, codes in zip(planned.table.domains, planned.table.codes, strict=True):
        tree, level, settings = trees[domain.name], levels[domain.name], columns[domain.name]
        if 0 < level < tree.height and (tree is not domain.hierarchy or not is_public(settings)):
            values = tree.leaves if is_public(settings) else [tree.leaves[code] for code in np.unique(codes[kept])]
            cut = tree is not domain.hierarchy  # which has a hierarchy of its own, without the nodes of the column's
            nodes, free = domain.hierarchy if cut else tree, cut and not domain.along_tree
            named[domain.name] = Naming(tree, level, nodes, frozenset(values), settings, domain.decimal, cut=free)
    return named


def named_trees(trees: Mapping[str, Hierarchy], namings: Mapping[str, Naming]) -> dict[str, Hierarchy]:
    """The hierarchies with the labels of the release."""
    return {name: namings[name].named() if name in namings else tree for name, tree in trees.items()}


def naming_from(saved: Mapping[str, Any], tree: Hierarchy, level: int, settings: ColumnSettings) -> Naming:
    """The naming of a column that was released: its hierarchy as it was released, and what `as_dict` saved."""
    private = tuple(saved["labels"].get(label, label) for label in tree.levels[level])
    old = Hierarchy(tree.name, (*tree.levels[:level], private, *tree.levels[level + 1 :]), tree.maps)
    values = frozenset(saved["values"])
    return Naming(old, level, old, values, settings, saved["decimal"], tree.levels[level], values, saved["cut"])


def for_whole(label: str) -> str:
    """An interval with fixed bounds, as recipes write it where all values are whole.

    >>> for_whole("[20, 30)"), for_whole("[0.5, 1)"), for_whole("<18")
    ('20-29', '[0.5, 1)', '<18')
    """
    match = HALF_OPEN.match(label)
    return bounded(int(match[1]), int(match[2]), True) if match else label
