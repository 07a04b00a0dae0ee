"""A study declared in Python: lists of columns by role, a table or its path, hierarchies of any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import HierarchyError, StudyError, counted, nearest, shortened
from sfumato.hierarchies import Hierarchy, load
from sfumato.hierarchies.recipes import RECIPES, HierarchyFile, HierarchyPaths, builder
from sfumato.runtime.settings import Settings
from sfumato.runtime.toml import toml_key
from sfumato.sources.address import IN_MEMORY, located
from sfumato.sources.frames import Frame, is_frame
from sfumato.sources.roles import Role
from sfumato.study.sections import ColumnSettings
from sfumato.tables.compress import secret_hierarchy
from sfumato.tables.domain import Builder

Names = str | Sequence[str]


def declared_columns(lists: Mapping[Role, Names], columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a study from lists of names by role, beside those that are declared one by one.

    >>> declared_columns({Role.SENSITIVE: "ill", Role.DROP: ["name", "phone"]}, {})
    {'ill': {'role': 'sensitive'}, 'name': {'role': 'drop'}, 'phone': {'role': 'drop'}}
    """
    named = [(name, role) for role, names in lists.items() for name in ([names] if isinstance(names, str) else names)]
    seen = list(columns)
    twice: list[str] = []
    for name, _ in named:
        (twice if name in seen else seen).append(name)
    if twice:
        raise StudyError(
            f"{counted(len(twice), 'column')} {'is' if len(twice) == 1 else 'are'} named more than once: "
            f"{shortened(dict.fromkeys(map(str, twice)))}",
            expected="one role for every column",
        )
    return {**columns, **{str(name): {"role": str(role)} for name, role in named}}


def table_settings(table: Any, settings: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The [data] section of a study of a table: one in memory, or a path."""
    kept: dict[str, Any] = settings.model_dump(exclude_unset=True) if isinstance(settings, Settings) else dict(settings)
    kept.update(given)
    if table is None:
        return kept
    if is_frame(table):
        return kept | {"path": IN_MEMORY, "digest": "content"}
    if isinstance(table, str | Path):
        return kept | {"path": located(str(table), Path())}
    Frame(table)  # says what is wrong with it
    return kept


def declared_hierarchy(name: str, given: Any) -> Any:
    """A hierarchy in the form that a run file has it.

    >>> declared_hierarchy("sex", {0: ["F", "M"], 1: ["*", "*"]})
    {'paths': [['F', '*'], ['M', '*']]}
    """
    if isinstance(given, (str, HierarchyFile, HierarchyPaths, *RECIPES.values())):
        return given
    if isinstance(given, Path):
        return str(given)
    if isinstance(given, Hierarchy):
        return {"paths": [list(path) for path in given.paths]}
    if isinstance(given, Mapping) and ("build" in given or "path" in given or "paths" in given):
        return dict(given)
    if isinstance(given, Mapping):
        return {"paths": _rows([list(given[level]) for level in sorted(given)])}
    if is_frame(given):
        return {"paths": _rows([column.to_pylist() for column in Frame(given).table().columns])}
    raise HierarchyError(
        f"the hierarchy of {name} is of the kind {type(given).__name__}",
        expected="the path of a file, a recipe such as sf.intervals(5, 10), a table whose columns are the levels, "
        "or a mapping from level to labels",
    )


def declared_tree(name: str, column: ColumnSettings, folder: Path, decimal: str) -> Hierarchy | Builder | None:
    """The hierarchy that is declared for a column: read from its file, made of its paths, or the recipe to build it."""
    tree = column.hierarchy
    if tree is None or not isinstance(tree, str | HierarchyFile | HierarchyPaths):
        return None if tree is None else builder(name, tree, decimal)
    try:
        if isinstance(tree, HierarchyPaths):
            return Hierarchy.from_paths(name, tree.paths)
        file = HierarchyFile(path=tree) if isinstance(tree, str) else tree
        return load(folder / file.path, name=name, header=file.header, separator=file.separator)
    except HierarchyError:
        if column.role is Role.SENSITIVE:  # its labels are values that must not be shown
            raise secret_hierarchy(name) from None
        raise


def check_roles(
    columns: Mapping[str, ColumnSettings], names: Sequence[str], *, partial: bool = False, undecided: bool = False
) -> None:
    """Every column of a table has a role, and every role a column.

    Released files lack what is never released (`partial`); with `undecided`, columns may still be without a role.
    """
    undeclared = [name for name in names if name not in columns]
    if undeclared and not undecided:
        raise StudyError(
            f"{counted(len(undeclared), 'column')} {'has' if len(undeclared) == 1 else 'have'} no role: "
            f"{shortened(undeclared, 12)}",
            expected="a role for every column under [columns]",
            remedy=f'{toml_key(undeclared[0])} = {{ role = "drop" }}, or: {", ".join(Role)}',
        )
    absent = [name for name, column in columns.items() if name not in names and (column.role.released or not partial)]
    if absent:
        raise StudyError(
            f"a role is declared for {counted(len(absent), 'column')} that the table lacks: {shortened(absent)}",
            expected="columns of the table",
            remedy=nearest(absent[0], names),
        )
    for role in (Role.LABEL, Role.WEIGHT, Role.UNIT, Role.HOUSEHOLD):
        named = [name for name, column in columns.items() if column.role is role]
        if len(named) > 1:
            raise StudyError(
                f"{len(named)} columns have the role {role}: {shortened(named)}",
                expected=f"at most one {role}",
                remedy='role = "drop" for the rest',
            )


def _rows(levels: list[list[Any]]) -> list[list[str]]:
    """Each value once, with its labels from fine to coarse."""
    if len({len(level) for level in levels}) > 1:
        raise HierarchyError("the levels of a hierarchy have different lengths", expected="one label for every value")
    rows = dict.fromkeys(
        tuple("" if label is None else str(label) for label in row) for row in zip(*levels, strict=True)
    )
    return [list(row) for row in rows]
