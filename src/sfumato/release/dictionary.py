"""The data dictionary of a release: each column, its role, what was done to it, and which value became which label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.data.domain import MISSING
from sfumato.data.hierarchies.recipes import HierarchyFile
from sfumato.data.roles import Role
from sfumato.release.columns import ColumnRecode
from sfumato.study import Study

BUILT = (
    "This grouping was built from the data, so the original values are not listed: "
    "the list would tell which of them occur."
)
SAID = {
    Role.SENSITIVE: "Kept as it is. Its values are not listed here.",
    Role.LABEL: "Kept as it is.",
    Role.WEIGHT: "Kept as it is.",
    Role.OTHER: "Kept as it is.",
}


def data_dictionary(
    study: Study, released: Sequence[str], columns: Mapping[str, ColumnRecode], data: str, left_out: int
) -> dict[str, Any]:
    """The dictionary as JSON. Sensitive columns have no list of values."""
    described = []
    for name in released:
        role = study.columns[name].role
        entry: dict[str, Any] = {"name": name, "role": str(role), "meaning": role.meaning}
        if name in columns:
            entry |= _recoded(columns[name], _declared(study, name))
        else:
            entry |= {"done": "kept", "words": SAID.get(role, "Kept as it is.")}
        described.append(entry)
    return {"file": data, "columns": described, "columns_left_out": left_out}


def words_for(column: ColumnRecode) -> str:
    """What was done to a quasi-identifier, in a sentence.

    >>> from sfumato.data.hierarchies.hierarchy import flat
    >>> words_for(ColumnRecode("sex", flat("sex", ["F", "M"]), 1))
    'Hidden: every value is released as *.'
    """
    tree = column.tree
    if column.hidden:
        return f"Hidden: every value is released as {tree.root}."
    if column.level == 0:
        return "Kept as it is."
    return f"Generalized to level {column.level} of {tree.height} of its hierarchy ({len(column.labels)} groups)."


def _recoded(column: ColumnRecode, declared: bool) -> dict[str, Any]:
    done = "hidden" if column.hidden else "kept" if column.level == 0 else "generalized"
    entry: dict[str, Any] = {
        "done": done,
        "words": words_for(column),
        "level": column.level,
        "levels": column.tree.height,
    }
    if column.missing_stays:
        entry["missing"] = "A missing value is released as a missing value."
    if done != "generalized":
        return entry
    if not declared:
        return entry | {"labels": [label for label in column.labels if label != MISSING], "note": BUILT}
    pairs = zip(column.tree.leaves, column.released, strict=True)
    return entry | {"recode": {leaf: label for leaf, label in pairs if label is not None and leaf != MISSING}}


def _declared(study: Study, name: str) -> bool:
    """Whether the hierarchy comes from a file: its values are then not taken from the data."""
    return isinstance(study.columns[name].hierarchy, str | HierarchyFile)
