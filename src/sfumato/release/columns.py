"""One quasi-identifier under a plan: what each of its values is released as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sfumato.errors import HierarchyError, StudyError, shortened
from sfumato.hierarchies import ROOT, Hierarchy
from sfumato.sources.cells import MISSING
from sfumato.sources.roles import Role
from sfumato.study import Study
from sfumato.tables.missing import missing_leaf

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
            "level" if study.system != "cuts" else "nodes" if study.columns[name].along_tree else "neighbours"
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
