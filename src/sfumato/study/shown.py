"""How a study shows itself: one line, and a card for a notebook. No value of any column is in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import counted
from sfumato.hierarchies.recipes import HierarchyFile, HierarchyPaths
from sfumato.notebook.card import card, some
from sfumato.notebook.pictures import parts_picture
from sfumato.sources.roles import Role
from sfumato.study.sections import ColumnSettings

WORDS = {
    Role.QUASI_IDENTIFIER: "quasi-identifier",
    Role.SENSITIVE: "sensitive",
    Role.LABEL: "label",
    Role.WEIGHT: "weight",
    Role.OTHER: "kept",
    Role.IDENTIFIER: "identifier",
    Role.DROP: "dropped",
    Role.UNIT: "unit",
    Role.HOUSEHOLD: "household",
}
NOUNS = (Role.QUASI_IDENTIFIER, Role.IDENTIFIER)


def study_line(title: str, columns: Mapping[str, ColumnSettings]) -> str:
    """A study in one line: its table, and how many columns have which role.

    >>> study_line("people.csv", {"age": ColumnSettings(role=Role.QUASI_IDENTIFIER)})
    'Study of people.csv: 1 quasi-identifier'
    """
    counts = {role: sum(column.role is role for column in columns.values()) for role in WORDS}
    parts = [counted(n, WORDS[role]) if role in NOUNS else f"{n} {WORDS[role]}" for role, n in counts.items() if n]
    return f"Study of {title}: {', '.join(parts) or 'no columns declared'}"


def study_card(title: str, columns: Mapping[str, ColumnSettings]) -> str:
    """The columns with their roles and hierarchies, as HTML."""
    rows = [[name, str(column.role), _tree_line(column.hierarchy)] for name, column in columns.items()]
    given = [column.role for column in columns.values()]
    roles = [(str(role).replace("_", "-"), float(given.count(role))) for role in Role]
    return card(study_line(title, columns), ["column", "role", "hierarchy"], some(rows, 24), parts_picture(roles))


def _tree_line(tree: Any) -> str:
    match tree:
        case None:
            return ""
        case str():
            return Path(tree).name
        case HierarchyFile():
            return Path(tree.path).name
        case HierarchyPaths():
            return f"given, {counted(len(tree.paths[0]), 'level')}"
    return str(tree.build)
