"""The missing rule of searches and releases: which rows are kept, and where a missing value stands in a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.sources.cells import MISSING
from sfumato.sources.roles import Role

KEYED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL)  # the columns that are measured, and so need a rule


def present(cells: Iterable[str]) -> str:
    """The SQL condition of rows in which none of some cleaned cells is missing.

    >>> present(["k0", "k1"]), present([])
    ('k0 IS NOT NULL AND k1 IS NOT NULL', '1 = 1')
    """
    return " AND ".join(f"{cell} IS NOT NULL" for cell in cells) or "1 = 1"


def missing_leaf(tree: Hierarchy, na: Sequence[str], *, wildcard: bool) -> int | None:
    """The leaf of a missing value in a hierarchy that has one for it.

    One that matches anything must not share a branch with others, so it has a leaf of its own or none.

    >>> tree = Hierarchy.from_paths("sex", [("F", "*"), ("?", "*"), ("", "*")])
    >>> missing_leaf(tree, ["?"], wildcard=False), missing_leaf(tree, ["?"], wildcard=True)
    (1, 2)
    """
    known = [value for value in na if value in tree.nodes and tree.nodes[value][0] == 0]
    if known and not wildcard:
        return tree.nodes[known[0]][1]
    level, position = tree.nodes.get(MISSING, (-1, -1))
    return position if level == 0 else None
