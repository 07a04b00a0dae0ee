"""The missing rule of searches and releases: which rows are kept, and where a missing value stands in a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.runtime.arrays import Floats
from sfumato.sources.cells import MISSING
from sfumato.sources.roles import Role

ROUNDING = 1e-15  # what the last digit of a share is worth
Loss = TypeVar("Loss", float, Floats)
KEYED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL)  # the columns that are measured, and so need a rule


def loss_of_source(loss: Loss, records: int, left_out: int) -> Loss:
    """Return the loss of the source: a record that the missing rule left out is lost, as a suppressed one is.

    An increasing function of the loss of the records that entered, so order and dominance do not change.

    >>> loss_of_source(0.25, 30, 10), loss_of_source(0.25, 30, 0)
    (0.4375, 0.25)
    """
    return (records * loss + left_out) / (records + left_out) if left_out else loss


def loss_of_entered(loss: float, records: int, left_out: int) -> float:
    """Return the loss of the records that entered, from that of the source: what ratios to a lower bound compare.

    >>> loss_of_entered(0.4375, 30, 10), loss_of_entered(10 / 40, 30, 10)
    (0.25, 0.0)
    """
    if not left_out:
        return loss
    lost = (loss * (records + left_out) - left_out) / records
    return lost if abs(lost) > ROUNDING * (records + left_out) / records else 0.0


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
