"""Recodings, and the plans that describe them.

A recoding has a group for each code of each column. It is what measures and kernels read. A `LevelPlan` describes a
recoding by one level of the hierarchy for each column, a `CutPlan` by the cuts between the ordered values of each
column. `Plan` is the interface that the plans of all methods have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol, Self

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.data.cells import MISSING
from sfumato.errors import HierarchyError, StudyError, counted, shortened
from sfumato.hierarchies import Hierarchy
from sfumato.hierarchies.labels import from_values, listed, number, spanned
from sfumato.tables.domain import Domain, leaf_values, span_share
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True, eq=False)
class ColumnRecoding:
    """A recoded column: the group of each code.

    For each group: the number of leaves it covers, its level as a share of the hierarchy's height, and its width as a
    share of the width of the domain.
    """

    labels: tuple[str, ...]
    groups: Codes
    covers: Codes
    depths: Floats
    spans: Floats | None

    @property
    def radix(self) -> int:
        return len(self.covers)


Recoding = tuple[ColumnRecoding, ...]


def as_it_stands(table: FrequencyTable) -> Recoding:
    """Return the recoding that changes nothing."""
    return tuple(
        ColumnRecoding(d.labels, np.arange(len(d.labels), dtype=np.int32), d.covers, d.depths, d.spans)
        for d in table.domains
    )


def at_levels(table: FrequencyTable, levels: Sequence[int]) -> Recoding:
    """Generalize every column to a level of its hierarchy. The levels are a node of the lattice."""
    if len(levels) != len(table.domains):
        raise StudyError(
            f"{len(levels)} levels for {len(table.domains)} quasi-identifiers",
            expected="one level per column",
        )
    return tuple(at_level(domain, level) for domain, level in zip(table.domains, levels, strict=True))


@lru_cache(maxsize=1 << 12)
def at_level(domain: Domain, level: int) -> ColumnRecoding:
    """Generalize one column to a level of its hierarchy."""
    tree = domain.hierarchy
    if not 0 <= level <= tree.height:
        raise StudyError(f"level {level} of {domain.name}", expected=f"a level from 0 to {tree.height}")
    if len(domain.labels) > len(tree.leaves):
        raise HierarchyError(
            f"{domain.name} contains labels that are already generalized",
            expected="values of the raw table",
            remedy="recode the raw table instead",
        )
    groups, labels = tree.maps[level], tree.levels[level]
    value = domain.values()
    spans = None
    if value is not None:
        spans = np.array([span_share(value, groups == group) for group in range(len(labels))])
    depths = np.full(len(labels), level / tree.height)
    return ColumnRecoding(labels, groups, tree.sizes[level], depths, spans)


def without(recoding: Recoding, column: int) -> Recoding:
    """Return the recoding with one column suppressed."""
    part = recoding[column]
    hidden = replace(
        part,
        labels=("*",),
        groups=np.zeros_like(part.groups),
        covers=part.covers.max(keepdims=True),
        depths=np.ones(1),
        spans=None if part.spans is None else np.ones(1),
    )
    return (*recoding[:column], hidden, *recoding[column + 1 :])


def all_nodes(shape: Sequence[int]) -> Codes:
    """Return every node of a lattice as a row of levels.

    >>> all_nodes((2, 2)).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return np.indices(tuple(shape), dtype=np.int32).reshape(len(shape), -1).T.copy()


JsonObject = Mapping[str, Any]


class Plan(Protocol):
    """The change that a point of a front makes to a table: levels, cuts, a channel, or swaps."""

    @property
    def rank(self) -> tuple[object, ...]:
        """Return a key that orders points with equal values, so that the order is always the same."""

    def entries(self) -> dict[str, object]:
        """Return the entries of the plan that people and programs read in a front."""

    def saved(self) -> dict[str, object]:
        """Return the entries that restore the plan. Only the owner of the front has them."""

    @classmethod
    def from_saved(cls, saved: JsonObject) -> Self:
        """Return the plan of a saved point. Raise ValueError if the entries are not those of a plan."""


def _require_columns(choices: Mapping[str, object], table: FrequencyTable, choice: str) -> None:
    """Raise if a plan is not for the quasi-identifiers of a table."""
    if different := [name for name in table.columns if name not in choices] + [
        name for name in choices if name not in table.columns
    ]:
        raise StudyError(
            f"the plan and the table differ in their quasi-identifiers: {shortened(different)}",
            expected=f"{choice} for each quasi-identifier",
        )


def _word(domain: Domain, tree: Hierarchy, level: int, shown: Callable[[str], str] = str) -> str:
    """Describe a column at a level of a hierarchy, whose labels are `shown` in a sentence."""
    if level in (0, tree.height):
        return f"{domain.name} hidden" if level else f"{domain.name} as it is"
    labels = [shown(domain.shown(label)) for label in tree.levels[level] if label != MISSING]
    return f"{domain.name} in {counted(len(labels), 'group')} ({shortened(labels, 3)})"


@dataclass(frozen=True)
class LevelPlan:
    """A level of the hierarchy for each column, and the rule that suppresses classes.

    Classes smaller than `suppress_below` are suppressed (0 and 1 suppress nothing), classes with fewer sensitive values
    than `diversity_below`, and classes that violate one of `limits`, which are by the name of the criterion. For t, β
    and δ, classes are compared with the distribution of the complete input.

    >>> LevelPlan({"age": 2, "sex": 0}, suppress_below=5).entries()
    {'suppress_below': 5, 'plan': {'age': 2, 'sex': 0}}
    """

    levels: Mapping[str, int]
    suppress_below: int = 0
    diversity_below: int = 0
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def choices(self) -> Mapping[str, int]:
        return self.levels

    def tree(self, domain: Domain) -> tuple[Hierarchy, int]:
        """Return the hierarchy of a column and the level of the plan."""
        if domain.name not in self.levels:
            raise StudyError(f"the plan has no level for {domain.name}", expected="one level for each quasi-identifier")
        return domain.hierarchy, self.levels[domain.name]

    def grouped(self, domain: Domain) -> tuple[Codes, Codes]:
        """Return the group of each code of a column and the number of values of each group."""
        part = at_level(domain, self.levels[domain.name])
        return part.groups, part.covers

    def recoding(self, table: FrequencyTable) -> Recoding:
        """Return the recoding of a table under the plan."""
        _require_columns(self.levels, table, "one level")
        return at_levels(table, [self.levels[name] for name in table.columns])

    def words(self, table: FrequencyTable) -> list[str]:
        """Describe the plan in one sentence for each column."""
        return [_word(domain, *self.tree(domain)) for domain in table.domains]

    @property
    def rank(self) -> tuple[int, ...]:
        return tuple(self.levels.values())

    def entries(self) -> dict[str, object]:
        result: dict[str, object] = {"suppress_below": self.suppress_below}
        result |= {"diversity_below": self.diversity_below} if self.diversity_below else {}
        result |= {"limits": dict(self.limits)} if self.limits else {}
        return result | {"plan": dict(self.levels)}

    def saved(self) -> dict[str, object]:
        return self.entries()

    @classmethod
    def from_saved(cls, saved: JsonObject) -> Self:
        """Return the plan of a saved point. Raise ValueError if the entries are not those of a plan."""
        levels, below, diverse = saved["plan"], saved["suppress_below"], saved.get("diversity_below", 0)
        if not all(isinstance(n, int) and 0 <= n < 2**62 for n in (below, diverse, *levels.values())):
            raise ValueError("levels and limits are whole numbers")
        limits = saved.get("limits", {})
        if not all(isinstance(n, int | float) and math.isfinite(n) for n in limits.values()):
            raise ValueError("limits are numbers")
        return cls(levels, below, diverse, dict(limits))


@dataclass(frozen=True)
class CutPlan:
    """The first value of every group of each column, in the column's order, and the rule that suppresses classes.

    A class is suppressed if it is smaller than `suppress_below` or has fewer sensitive values than `diversity_below`.

    >>> CutPlan({"age": ("17", "30")}, suppress_below=5).entries()
    {'suppress_below': 5, 'diversity_below': 0, 'plan': {'age': ['17', '30']}}
    """

    cuts: Mapping[str, tuple[str, ...]]
    suppress_below: int = 0
    diversity_below: int = 0

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        return self.cuts

    def tree(self, domain: Domain) -> tuple[Hierarchy, int]:
        """Return a hierarchy whose middle level consists of the groups, and the level of the plan."""
        if domain.name not in self.cuts:
            raise StudyError(f"the plan has no groups for {domain.name}", expected="groups for each quasi-identifier")
        runs = self._runs(domain)
        names = labels_of(domain, runs)
        group = {leaf: names[position] for position, run in enumerate(runs) for leaf in run}
        root = domain.hierarchy.root
        paths = [(label, group[leaf], root) for leaf, label in enumerate(domain.hierarchy.leaves)]
        level = 2 if len(runs) == 1 and len(runs[0]) > 1 else 0 if len(runs) == len(paths) else 1
        return Hierarchy.from_paths(domain.name, paths), level

    def grouped(self, domain: Domain) -> tuple[Codes, Codes]:
        """Return the group of each code of a column and the number of values of each group."""
        runs = self._runs(domain)
        groups = np.empty(len(domain.labels), dtype=np.int32)
        for position, run in enumerate(runs):
            groups[run] = position
        return groups, np.array([len(run) for run in runs], dtype=np.int32)

    def recoding(self, table: FrequencyTable) -> Recoding:
        """Return the recoding of a table under the plan."""
        _require_columns(self.cuts, table, "groups")
        trees = [self.tree(domain) for domain in table.domains]
        parts = zip(table.domains, trees, strict=True)
        return tuple(at_level(replace(domain, hierarchy=tree), level) for domain, (tree, level) in parts)

    def words(self, table: FrequencyTable) -> list[str]:
        """Describe the plan in one sentence for each column."""
        return [_word(domain, *self.tree(domain), shown=_brief) for domain in table.domains]

    @property
    def rank(self) -> tuple[tuple[str, ...], ...]:
        return tuple(self.cuts.values())

    def entries(self) -> dict[str, object]:
        return {
            "suppress_below": self.suppress_below,
            "diversity_below": self.diversity_below,
            "plan": {name: list(starts) for name, starts in self.cuts.items()},
        }

    def saved(self) -> dict[str, object]:
        return self.entries()

    @classmethod
    def from_saved(cls, saved: JsonObject) -> Self:
        """Return the plan of a saved point. Raise ValueError if the entries are not those of a plan."""
        below, diverse = saved["suppress_below"], saved["diversity_below"]
        if not all(isinstance(n, int) and 0 <= n < 2**62 for n in (below, diverse)):
            raise ValueError("limits are whole numbers")
        return cls({name: tuple(starts) for name, starts in saved["plan"].items()}, below, diverse)

    def _runs(self, domain: Domain) -> list[list[int]]:
        starts = set(self.cuts[domain.name])
        leaves = domain.hierarchy.leaves
        unknown = starts - set(leaves)
        if unknown:
            raise StudyError(
                f"the plan splits {domain.name} at {shortened(sorted(map(repr, unknown)), 3)}",
                expected="values of the column",
            )
        runs: list[list[int]] = []
        for leaf in domain.order:
            if not runs or leaves[leaf] in starts:
                runs.append([])
            runs[-1].append(leaf)
        return runs


def labels_of(domain: Domain, runs: Sequence[Sequence[int]]) -> list[str]:
    """Return a readable label for each group of leaves: a value, a range of numbers, a node of the tree, or a list.

    In a column that is cut along its tree every group is a node, and its label is the name of the node. These labels
    are for the publisher, because they may name values that are not in the release. `release.labels` has the labels of
    released files.

    >>> from sfumato.tables.domain import domain_of
    >>> labels_of(domain_of("age", {"17": 1, "18": 1, "30": 1}), [[0, 1], [2]])
    ['[17 .. 18]', '30']
    >>> labels_of(domain_of("race", {"a": 1, "b": 1, "c": 1}), [[0, 1], [2]])
    ['{a | b}', 'c']
    >>> tree = Hierarchy.from_paths("marital", [("1", "married", "*"), ("2", "married", "*"), ("6", "never", "*")])
    >>> labels_of(domain_of("marital", {"1": 1, "2": 1, "6": 1}, tree), [[0, 1], [2]])
    ['married', 'never']
    """
    leaves = domain.hierarchy.leaves
    if all(len(run) == 1 for run in runs):
        return [leaves[run[0]] for run in runs]
    values = leaf_values(domain.hierarchy, domain.decimal) if domain.spans is not None else None
    label = node_label if domain.along_tree else _label
    result = [label(domain, run, values) for run in runs]
    counts = Counter(result)
    for position, run in enumerate(runs):
        inside = {leaves[leaf] for leaf in run}
        other = result[position] in leaves and (
            result[position] not in inside or (len(run) > 1 and not domain.along_tree)
        )
        if counts[result[position]] > 1 or other:  # nodes may share a name, with values too: values themselves do not
            result[position] = leaves[run[0]] if len(run) == 1 else listed([leaves[leaf] for leaf in run])
    return result


def node_label(domain: Domain, run: Sequence[int], values: Floats | None) -> str:
    """Return the name of the node that has exactly these leaves: the highest, where several nodes have the same leaves.

    The children of a node then have names of the same level.
    """
    tree = domain.hierarchy
    if len(run) == len(tree.leaves):
        return tree.root
    for level in range(tree.height - 1, 0, -1):
        node = int(tree.maps[level][run[0]])
        if tree.sizes[level][node] == len(run) and bool(np.all(tree.maps[level][run] == node)):
            name = tree.levels[level][node]
            if name != tree.root:
                return name
    return _label(domain, run, values)


def _brief(label: str) -> str:
    """Return a label for a sentence. A long set is abbreviated to its number of values.

    >>> _brief("{a | b}"), _brief("{a | b | c | d | e}")
    ('{a | b}', '{a … e: 5 values}')
    """
    parts = label.strip("{}").split(" | ")
    return label if len(parts) < 4 else f"{{{parts[0]} … {parts[-1]}: {len(parts)} values}}"


def _label(domain: Domain, run: Sequence[int], values: Floats | None) -> str:
    tree = domain.hierarchy
    if len(run) == 1:
        return tree.leaves[run[0]]
    if len(run) == len(tree.leaves):
        return tree.root
    if values is not None and _neighbours(values, run):
        return spanned(tree.leaves[run[0]], tree.leaves[run[-1]])
    if coded(tree.leaves, domain.decimal):
        return listed([tree.leaves[leaf] for leaf in run])
    inside = np.zeros(len(tree.leaves), dtype=np.bool_)
    inside[run] = True
    nodes = nodes_within(tree, inside)
    return nodes[0] if len(nodes) == 1 else listed(nodes)


def coded(values: Iterable[str], decimal: str = ".") -> bool:
    """Return whether some values are numbers, so that they are codes. One list never has both codes and node names."""
    return any(number(value, decimal) is not None for value in values)


def _neighbours(values: Floats, run: Sequence[int]) -> bool:
    """Return whether a run of leaves has all numbers between its first and its last."""
    low, high = values[run[0]], values[run[-1]]
    return bool(low <= high) and int(np.count_nonzero((values >= low) & (values <= high))) == len(run)


def nodes_within(tree: Hierarchy, inside: Flags, among: Flags | None = None, under: int | None = None) -> list[str]:
    """Return the smallest set of nodes whose leaves are a given set, in the order of their leaves.

    `among` are the leaves that count (by default all), and nodes must be below the level `under`. With `among`, a node
    whose label consists of values or equals another value is not used.
    """
    counted = np.ones_like(inside) if among is None else among
    left = inside.copy()
    result: list[tuple[int, str]] = []
    for level in range(tree.height if under is None else under - 1, 0, -1):
        position, labels = tree.maps[level], tree.levels[level]
        held = np.bincount(position[left], minlength=len(labels))
        whole = (held > 0) & (held == np.bincount(position[counted], minlength=len(labels)))
        for node in np.flatnonzero(whole).tolist():
            leaves = np.flatnonzero(left & (position == node))
            if among is None or _is_name(tree, labels[node], leaves):
                result.append((int(leaves[0]), labels[node]))
                left[leaves] = False
    result += [(leaf, tree.leaves[leaf]) for leaf in np.flatnonzero(left).tolist()]
    return [label for _, label in sorted(result)]


def _is_name(tree: Hierarchy, label: str, leaves: Counts64) -> bool:
    """Return whether a label is a name: it does not consist of values and equals no other value."""
    level, leaf = tree.nodes[label]
    return not from_values(label) and (level > 0 or leaves.tolist() == [leaf])


RecodingPlan = LevelPlan | CutPlan
