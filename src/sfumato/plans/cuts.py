"""A plan of the cuts system: for each quasi-identifier, where its ordered values are parted into groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sfumato.errors import StudyError, counted, shortened
from sfumato.hierarchies import Hierarchy
from sfumato.hierarchies.labels import from_values, listed, number, spanned
from sfumato.plans.recoding import Recoding, at_level
from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.sources.cells import MISSING
from sfumato.tables.domain import Domain, leaf_values
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True)
class CutPlan:
    """The first value of every group, by column in the column's order; and which classes are suppressed.

    A class goes if it is smaller than `suppress_below` or holds fewer sensitive values than `diversity_below`.

    >>> CutPlan({"age": ("17", "30")}, suppress_below=5).entries()
    {'suppress_below': 5, 'diversity_below': 0, 'plan': {'age': ['17', '30']}}
    """

    cuts: Mapping[str, tuple[str, ...]]
    suppress_below: int = 0
    diversity_below: int = 0

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """What is chosen for each column."""
        return self.cuts

    def tree(self, domain: Domain) -> tuple[Hierarchy, int]:
        """A hierarchy whose middle level are the groups, and the level that says the plan."""
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
        """The group of each code of a column and how many values each group has: the recoding without its labels."""
        runs = self._runs(domain)
        groups = np.empty(len(domain.labels), dtype=np.int32)
        for position, run in enumerate(runs):
            groups[run] = position
        return groups, np.array([len(run) for run in runs], dtype=np.int32)

    def recoding(self, table: FrequencyTable) -> Recoding:
        """What the plan does to a table."""
        absent = [name for name in table.columns if name not in self.cuts]
        extra = [name for name in self.cuts if name not in table.columns]
        if absent or extra:
            raise StudyError(
                f"the plan and the table differ in their quasi-identifiers: {shortened(absent + extra)}",
                expected="groups for each quasi-identifier",
            )
        parts = []
        for domain in table.domains:
            tree, level = self.tree(domain)
            parts.append(at_level(replace(domain, hierarchy=tree), level))
        return tuple(parts)

    def words(self, table: FrequencyTable) -> list[str]:
        """The plan in words, one sentence a column."""
        said = []
        for domain in table.domains:
            tree, level = self.tree(domain)
            if level == 1:
                labels = [_brief(domain.shown(label)) for label in tree.levels[1] if label != MISSING]
                said.append(f"{domain.name} in {counted(len(labels), 'group')} ({shortened(labels, 3)})")
            else:
                said.append(f"{domain.name} hidden" if level else f"{domain.name} as it is")
        return said

    @property
    def rank(self) -> tuple[tuple[str, ...], ...]:
        return tuple(self.cuts.values())

    def entries(self) -> dict[str, Any]:
        return {
            "suppress_below": self.suppress_below,
            "diversity_below": self.diversity_below,
            "plan": {name: list(starts) for name, starts in self.cuts.items()},
        }

    def saved(self) -> dict[str, Any]:
        return self.entries()

    @classmethod
    def from_saved(cls, saved: Mapping[str, Any]) -> Self:
        """The plan of a point that was saved; ValueError if it cannot be one."""
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
    """A readable label for each group of leaves: the value, a span of numbers, a node of the tree, or a list.

    In a column that is cut along its tree every group is a node and has its name. These labels are for the publisher.
    They hold values that may be gone from a release, which has labels of its own (`release.labels`).

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
        if (
            counts[result[position]] > 1 or other
        ):  # nodes may share a name, with values too: the values themselves do not
            result[position] = leaves[run[0]] if len(run) == 1 else listed([leaves[leaf] for leaf in run])
    return result


def node_label(domain: Domain, run: Sequence[int], values: Floats | None) -> str:
    """The name of the node that a group of leaves is: of several on top of each other, that of the highest.

    So the nodes just below one that was opened are all named on one level.
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
    """A label for a sentence: of a long set, how many values it has.

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
    """Whether values are codes: some of them are numbers. Names of nodes do not stand beside codes in one list."""
    return any(number(value, decimal) is not None for value in values)


def _neighbours(values: Floats, run: Sequence[int]) -> bool:
    """Whether some leaves are all the numbers from the first to the last of them."""
    low, high = values[run[0]], values[run[-1]]
    return bool(low <= high) and int(np.count_nonzero((values >= low) & (values <= high))) == len(run)


def nodes_within(tree: Hierarchy, inside: Flags, among: Flags | None = None, under: int | None = None) -> list[str]:
    """The fewest nodes of a hierarchy that make up a set of leaves, in the order of their leaves.

    `among` are the leaves that count (all, unless given), `under` the level that nodes must be below. Labels that are
    made of values, or are called like another value, are no names for nodes then.
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
    """Whether a label is a name of its own: not made of values, not that of another value."""
    level, leaf = tree.nodes[label]
    return not from_values(label) and (level > 0 or leaves.tolist() == [leaf])
