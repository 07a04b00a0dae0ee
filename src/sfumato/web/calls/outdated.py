"""Whether what is declared is still what a search was started with, and if not, what has changed."""

from __future__ import annotations

from typing import Any

from sfumato.errors import SfumatoError
from sfumato.hierarchies.recipes import HierarchyFile
from sfumato.study import ColumnSettings, Study
from sfumato.web.calls.shelf import study_of
from sfumato.web.places import Places

LIMIT = 8  # sentences about columns


def changes_since(places: Places, study: str, searched: Study) -> list[str]:
    """What was declared differently when a front was searched, in sentences; none if nothing has changed."""
    try:
        now = study_of(places, study)
    except SfumatoError as error:
        return [f"The study can no longer be read: {error.what}."]
    return changes_between(searched, now)


def changes_between(before: Study, now: Study) -> list[str]:
    """What differs between two declarations of one table, without what is searched for.

    >>> one = Study(data={"path": "p.csv"}, columns={"sex": {"role": "quasi_identifier"}, "job": {"role": "other"}})
    >>> two = one.with_columns({"sex": ColumnSettings(role="sensitive")})
    >>> changes_between(one, two)
    ['sex was quasi-identifier, and is now sensitive.']
    """
    columns = []
    for name in [*before.columns, *(name for name in now.columns if name not in before.columns)]:
        columns += _column(name, before.columns.get(name), now.columns.get(name), before, now)
    if len(columns) > LIMIT:
        columns = [*columns[:LIMIT], f"{len(columns) - LIMIT} more columns differ."]
    return [*columns, *_reading(before, now)]


def _column(
    name: str, before: ColumnSettings | None, now: ColumnSettings | None, first: Study, second: Study
) -> list[str]:
    if before is None or now is None:
        return [
            f"{name} had {'no role' if before is None else 'a role'}, and now has {'none' if now is None else 'one'}."
        ]
    if before.role is not now.role:
        return [f"{name} was {_plain(before.role)}, and is now {_plain(now.role)}."]
    if _tree(before, first) != _tree(now, second):
        return [f"The hierarchy of {name} is another."]
    if _rest(before) != _rest(now):
        return [f"The settings of {name} (order, breaks, missing values …) are others."]
    return []


def _reading(before: Study, now: Study) -> list[str]:
    sentences = []
    first, second = before.data, now.data
    if first.missing != second.missing:
        sentences.append(
            f"Missing values were treated as “{first.missing}”, and are now treated as “{second.missing}”."
        )
    if first.na != second.na:
        sentences.append("Other codes mean that a value is missing.")
    if _described(before) != _described(now):
        sentences.append("The table is read in another way.")
    if (before.population is None) != (now.population is None):
        sentences.append("The population table is another.")
    if before.measures != now.measures:
        sentences.append("Parameters of measures are others.")
    return sentences


def _described(study: Study) -> dict[str, Any]:
    settings = study.data.model_dump(exclude={"missing", "na"})
    return settings | {"path": str((study.folder / study.data.path).absolute())}


def _tree(column: ColumnSettings, study: Study) -> Any:
    tree = column.hierarchy
    if isinstance(tree, str):
        tree = HierarchyFile(path=tree)
    if isinstance(tree, HierarchyFile):
        return tree.model_dump() | {"path": str((study.folder / tree.path).absolute())}
    return None if tree is None else tree.model_dump()


def _rest(column: ColumnSettings) -> dict[str, Any]:
    return column.model_dump(exclude={"role", "hierarchy"})


def _plain(role: Any) -> str:
    return str(role).replace("_", "-")
