"""The released labels of one quasi-identifier under a plan, made only from the values of released records.

The publisher knows a group made from the data (a cut, a quantile, labels joined in the editor) by the values it holds,
`[3 .. 24]` or `{Astronaut | Clerk}`. Some of these values may occur only in suppressed records, so a release has names
of its own:

- Neighbouring numbers: `<25`, `25-56`, `>=57`. A bound is a declared break if there is one. If there is none, it is the
  roundest number that is above the released values of the lower group and not above those of the upper group. It
  separates the groups as well as an exact value would. The outer ends are open: a bound there separates nothing and
  would only reveal an extreme value.
- Nodes of the column's hierarchy, if it is cut along the hierarchy: their names, as a person wrote them.
- Other values: the value if there is only one, the node of the column's hierarchy that has all of them, or a list.
  Lists of codes contain only codes and no names of nodes.
- Intervals with fixed bounds do not change, except that `[20, 30)` becomes `20-29` if all released values are whole
  numbers, because recipes choose between the two forms by all values.
- Names that a person wrote do not change, unless a name is that of a value that is not released. Public hierarchies are
  known to all readers, so all their values count as released.

Groups without a released record keep the publisher's name in the private hierarchy and appear in no public file.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import Literal

import numpy as np

from sfumato.base.arrays import Flags
from sfumato.data.cells import MISSING
from sfumato.data.settings import Role
from sfumato.errors import DataError, HierarchyError, StudyError, counted, shortened
from sfumato.hierarchies import ROOT, Hierarchy
from sfumato.hierarchies.build import bounded
from sfumato.hierarchies.labels import from_values, interval, listed, number, roundest
from sfumato.hierarchies.recipes import HierarchyFile
from sfumato.measures.classes import ClassTable
from sfumato.plans.recodings import ColumnRecoding, at_level, coded, nodes_within
from sfumato.release.format import Entry
from sfumato.study import ColumnSettings, Study
from sfumato.study.methods import METHODS
from sfumato.tables.domain import Domain, missing_leaf

Joined = Literal["level", "nodes", "neighbours"]


UNLISTED = (
    "The original values in each group are not listed, because the list would show which of them occur in the data."
)
HOW = {
    "level": "",
    "nodes": " of its hierarchy, which need not be on one level of it",
    "neighbours": " of neighbouring values",
}


class ReleasedColumn(ABC):
    """A quasi-identifier as it is released: its labels, and the values that each of them covers."""

    name: str

    @property
    @abstractmethod
    def generalized(self) -> bool:
        """Whether some label may cover several values."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of values that the labels cover."""

    @abstractmethod
    def recoding(self, domain: Domain) -> ColumnRecoding:
        """Return the recoding that made a released column. A label that it lacks is an error."""

    @abstractmethod
    def covered(self, values: Collection[str] | None) -> Mapping[str, int]:
        """Return how many of some values (None: of all) each label covers. A missing cell has the empty label."""

    @abstractmethod
    def words(self, occurring: Collection[str], blanked: str = "") -> str:
        """Return a sentence on what was done. `blanked` is the share of blank records in words, if it is known."""

    @abstractmethod
    def entry(self, occurring: Collection[str], public: bool, blanked: str) -> dict[str, object]:
        """Return the entry of a data dictionary: the labels that occur, and their values if these are public."""

    @property
    def root(self) -> str | None:
        """The label of blank cells, None if the column has none."""
        return None

    def refuse_strange(self, domain: Domain, known: Container[str], expected: str) -> None:
        """Raise if a file has a label that the plan does not release."""
        counts = zip(domain.labels, domain.counts.tolist(), strict=True)
        strange = [label for label, count in counts if count > 0 and label not in known]
        if strange:
            raise DataError(
                f"{self.name} holds {counted(len(strange), 'label')} that the plan does not release: "
                f"{shortened(map(repr, strange), 3)}",
                expected=expected,
            )


@dataclass(frozen=True, eq=False)
class ColumnRecode(ReleasedColumn):
    """A hierarchy, a level, and the leaf of missing values (None: the column has no group for them).

    `joined` states what the groups are: a level of the column's own hierarchy, nodes of it, or neighbouring values.

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
        """Return the values as they are in the engine after cleaning: a missing value is the empty text."""
        return [MISSING if leaf == self.missing else label for leaf, label in enumerate(self.tree.leaves)]

    @property
    def groups(self) -> list[int]:
        """Return the position of each value's label on the level."""
        return [int(group) for group in self.tree.maps[self.level]]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.tree.levels[self.level]

    @cached_property
    def kept_group(self) -> int:
        """Return the label of missing cells that are released unchanged, or -1 if missing values were generalized."""
        if self.missing is None:
            return -1
        group = int(self.tree.maps[self.level][self.missing])
        return group if self.labels[group] == self.tree.leaves[self.missing] else -1

    @property
    def missing_stays(self) -> bool:
        return self.kept_group >= 0

    @property
    def released(self) -> list[str | None]:
        """Return the released label of each value, None for a missing cell that stays missing."""
        return [None if group == self.kept_group else self.labels[group] for group in self.groups]

    @property
    def wild_group(self) -> int:
        """Return the group that matches any value, -1 if there is none, as for missing values with a shared label."""
        if not self.wildcard or self.missing is None:
            return -1
        group = self.groups[self.missing]
        return group if self.groups.count(group) == 1 else -1

    @property
    def hidden(self) -> bool:
        """Whether the released column contains no information."""
        return self.level == self.tree.height

    @property
    def generalized(self) -> bool:
        return self.level > 0

    @property
    def size(self) -> int:
        return len(self.tree.leaves)

    def recoding(self, domain: Domain) -> ColumnRecoding:
        tree, level = self.tree, self.level
        part = at_level(replace(domain, hierarchy=tree, labels=tree.leaves), level)
        position_of = {label: position for position, label in enumerate(part.labels)}
        self.refuse_strange(domain, position_of, f"labels of level {level} of its hierarchy")
        leaves = {label: leaf for leaf, label in enumerate(tree.leaves)}
        # A leaf that was generalized is in no cell of the file.
        groups = [position_of.get(label, tree.maps[level][leaves.get(label, 0)]) for label in domain.labels]
        return replace(part, groups=np.array(groups, dtype=np.int32))

    def covered(self, values: Collection[str] | None) -> Mapping[str, int]:
        leaves = zip(self.tree.leaves, self.groups, strict=True)
        return Counter(self.labels[group] for leaf, group in leaves if values is None or leaf in values)

    def words(self, occurring: Collection[str], blanked: str = "") -> str:  # noqa: ARG002
        """Return a sentence on what was done to a quasi-identifier.

        >>> from sfumato.hierarchies.hierarchy import flat
        >>> ColumnRecode("sex", flat("sex", ["F", "M"]), 1).words({"*"})
        'Hidden: every value is replaced by *.'
        """
        if self.hidden:
            return f"Hidden: every value is replaced by {self.tree.root}."
        if self.level == 0:
            return "Unchanged."
        groups = len(self._shown(occurring))
        return f"Grouped into {'one group' if groups == 1 else f'{groups:,} groups'}{HOW[self.joined]}."

    def entry(self, occurring: Collection[str], public: bool, blanked: str) -> dict[str, object]:  # noqa: ARG002
        done = "hidden" if self.hidden else "kept" if self.level == 0 else "generalized"
        entry: dict[str, object] = {"done": done, "words": self.words(occurring)}
        if self.missing_stays and self.labels[self.kept_group] in occurring:
            entry["missing"] = "Missing values remain missing."
        if done != "generalized":
            return entry
        shown = self._shown(occurring)
        if not public:
            return entry | {"labels": shown, "note": UNLISTED}
        pairs = zip(self.tree.leaves, self.released, strict=True)
        return entry | {"recode": {leaf: label for leaf, label in pairs if label in shown and leaf != MISSING}}

    def _shown(self, occurring: Collection[str]) -> list[str]:
        """Return the labels that occur, without missing values, sorted by themselves alone: numbers, then words."""
        kept = self.labels[self.kept_group] if self.missing_stays else MISSING
        labels = sorted(label for label in self.labels if label in occurring and label not in (MISSING, kept))
        lows = {label: _low(label) for label in labels}
        coded = sorted((low, label) for label, low in lows.items() if low is not None)
        return [*(label for _, label in coded), *(label for label, low in lows.items() if low is None)]

    @property
    def ambiguous(self) -> list[str]:
        """Return labels that cover other values at a lower level, so that only the plan decides their meaning."""
        labels = []
        for group, label in enumerate(self.labels):
            level, position = self.tree.nodes[label]
            if self.tree.sizes[level][position] != self.tree.sizes[self.level][group]:
                labels.append(label)
        return labels


def _low(label: str) -> float | None:
    bounds = interval(label)
    return number(label) if bounds is None else bounds.low


def column_recodes(study: Study, levels: Mapping[str, int], trees: Mapping[str, Hierarchy]) -> tuple[ColumnRecode, ...]:
    """Return the recoding of each quasi-identifier: a level of a hierarchy. A cut has a hierarchy of its own."""
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
    """Raise if a reader would take a released label for a missing value and measure it as one."""
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
    """Return whether a label covers only values that are missing, which are never looked up."""
    leaves = [leaf for leaf, group in enumerate(column.groups) if group == label]
    return all(column.tree.leaves[leaf] in (MISSING, *na) and leaf != column.missing for leaf in leaves)


WHOLE = re.compile(r"-?\d+$")
HALF_OPEN = re.compile(r"\[(-?\d+), (-?\d+)\)$")
ANY = "any value"  # the only group: both its ends are open


@dataclass(frozen=True, eq=False)
class Naming:
    """The rule by which the groups of one column are named, from its hierarchy and its released values.

    The names for several values are those of the hierarchy `nodes`. If an earlier release named the groups, `settled`
    are its labels and `before` its released values. If `cut` is true, the groups are runs of neighbouring values and
    not nodes.

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
        """Return the rule with these values added to the released ones."""
        return replace(self, values=self.values | set(more), settled=self.labels, before=self.values)

    def named(self) -> Hierarchy:
        """Return the hierarchy with the labels of the release."""
        levels = (*self.tree.levels[: self.level], self.labels, *self.tree.levels[self.level + 1 :])
        return Hierarchy(self.tree.name, levels, self.tree.maps)

    def as_dict(self) -> dict[str, object]:
        """Return what `naming_from` needs besides the released hierarchy. It is private, like that hierarchy."""
        pairs = zip(self.labels, self.tree.levels[self.level], strict=True)
        labels = {new: old for new, old in pairs if new != old}
        return {"values": sorted(self.values), "labels": labels, "cut": self.cut, "decimal": self.decimal}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return a different label for each group. Labels of released groups depend only on released records."""
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
        """Return the released values of each group that has any."""
        members: dict[int, list[str]] = {}
        for leaf, group in zip(self.tree.leaves, self.tree.maps[self.level].tolist(), strict=True):
            if leaf in self.values:
                members.setdefault(group, []).append(leaf)
        return members

    def _made(self, group: int) -> bool:
        """Return whether a group's label is made of values, or is the name of a value that is not released.

        In a cut without nodes, even the name of a node is one: the choice of the node depends on all values.
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
        """Return the position of each value in `nodes`, and the positions of the released ones."""
        places = {leaf: position for position, leaf in enumerate(self.nodes.leaves)}
        return places, np.array([leaf in self.values for leaf in self.nodes.leaves])

    @cached_property
    def _whole_numbers(self) -> bool:
        """Return whether all released values are whole numbers."""
        values = [number(leaf, self.decimal) for leaf in self.values if leaf]
        return all(value is not None and value.is_integer() for value in values)

    @cached_property
    def _whole(self) -> bool:
        """Return whether all released values are written as whole numbers."""
        return all(WHOLE.match(leaf) for leaf in self.values if leaf)

    @cached_property
    def _ranges(self) -> dict[int, str]:
        """Return the ranges of groups that are neighbouring numbers among the released values."""
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
        """Return the bound between two groups: a declared break if there is one, or the roundest number."""
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
        """Return a bound as the values of the column are written: codes may have leading zeros."""
        text = format(value or Decimal(0), "f")
        text = (text.rstrip("0").rstrip(".") if "." in text else text).replace(".", self.decimal)
        return text.zfill(self._digits)

    @cached_property
    def _digits(self) -> int:
        """Return the length of codes with leading zeros, 0 for plain numbers."""
        coded = self._whole and any(len(leaf) > 1 and leaf.startswith("0") for leaf in self.values)
        return max(map(len, self.values)) if coded else 0


def is_public(settings: ColumnSettings) -> bool:
    """Return whether the hierarchy of a column may be published."""
    return isinstance(settings.hierarchy, HierarchyFile) and settings.hierarchy.public


def namings(
    columns: Mapping[str, ColumnSettings],
    planned: ClassTable,
    trees: Mapping[str, Hierarchy],
    levels: Mapping[str, int],
) -> dict[str, Naming]:
    """Return the names of the groups of each column whose groups are named by released values."""
    named = {}
    kept = planned.kept[planned.index]
    for domain, codes in zip(planned.table.domains, planned.table.codes, strict=True):
        tree, level, settings = trees[domain.name], levels[domain.name], columns[domain.name]
        if 0 < level < tree.height and (tree is not domain.hierarchy or not is_public(settings)):
            values = tree.leaves if is_public(settings) else [tree.leaves[code] for code in np.unique(codes[kept])]
            cut = tree is not domain.hierarchy  # its own hierarchy lacks the nodes of the column's
            nodes, free = domain.hierarchy if cut else tree, cut and not domain.along_tree
            named[domain.name] = Naming(tree, level, nodes, frozenset(values), settings, domain.decimal, cut=free)
    return named


def named_trees(trees: Mapping[str, Hierarchy], namings: Mapping[str, Naming]) -> dict[str, Hierarchy]:
    """Return the hierarchies with the labels of the release."""
    return {name: namings[name].named() if name in namings else tree for name, tree in trees.items()}


def naming_from(saved: Entry, tree: Hierarchy, level: int, settings: ColumnSettings) -> Naming:
    """Return the naming of a column that was released, from its released hierarchy and the result of `as_dict`."""
    private = tuple(saved["labels"].get(label, label) for label in tree.levels[level])
    old = Hierarchy(tree.name, (*tree.levels[:level], private, *tree.levels[level + 1 :]), tree.maps)
    values = frozenset(saved["values"])
    return Naming(old, level, old, values, settings, saved["decimal"], tree.levels[level], values, saved["cut"])


def for_whole(label: str) -> str:
    """Return an interval with fixed bounds as recipes write it if all values are whole numbers.

    >>> for_whole("[20, 30)"), for_whole("[0.5, 1)"), for_whole("<18")
    ('20-29', '[0.5, 1)', '<18')
    """
    match = HALF_OPEN.match(label)
    return bounded(int(match[1]), int(match[2]), True) if match else label
