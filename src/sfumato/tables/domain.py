"""Domains of columns, which hold the labels as codes with their leaves in the hierarchy, and the missing rule.

A label is usually a value of the raw table. In a file that was generalized before, it may also be a node of the
hierarchy, an interval or `*`. Then it covers several leaves, and measures of loss count them. The missing rule decides
which rows are kept, and the position of a missing value in a hierarchy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.data.cells import MISSING
from sfumato.data.codebook import shown_value
from sfumato.data.settings import Role
from sfumato.errors import HierarchyError, counted, shortened
from sfumato.hierarchies.hierarchy import ROOT, Hierarchy, flat
from sfumato.hierarchies.labels import interval, number, numbers

ROUNDING = 1e-15  # what the last digit of a share is worth
Loss = TypeVar("Loss", float, Floats)
KEYED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL)  # the columns that are measured, and so need a rule


def loss_of_source(loss: Loss, records: int, left_out: int) -> Loss:
    """Return the loss of the source, where a record that the missing rule left out counts as a suppressed one.

    It increases with the loss of the records that entered, so order and dominance do not change.

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
    """Return the SQL condition of rows in which none of some cleaned cells is missing.

    >>> present(["k0", "k1"]), present([])
    ('k0 IS NOT NULL AND k1 IS NOT NULL', '1 = 1')
    """
    return " AND ".join(f"{cell} IS NOT NULL" for cell in cells) or "1 = 1"


def missing_leaf(tree: Hierarchy, na: Sequence[str], *, wildcard: bool) -> int | None:
    """Return the leaf of a missing value in a hierarchy that has one for it.

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


HARMFUL, HARMLESS, UNKNOWN = range(3)  # what it means to learn a value of a sensitive column
Builder = Callable[[Sequence[str], Sequence[int]], Hierarchy]


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """Labels of a column and the leaves that they cover.

    `covers[code]` is the number of leaves that a label covers, out of `leaves`. The `spans` are the covered shares of
    the numeric range (None where the leaves are not numbers), and the `depths` are shares of the hierarchy's height.
    The `distance` is the distance of values in t-closeness: equal, ordered (the default for numbers) or hierarchical.
    The `insides` are the leaves of each generalized label, whose codes follow those of the leaves. The `order` has the
    leaves in the sequence in which neighbours may be joined. With `along_tree` only groups of the hierarchy are joined.
    The `value_labels` are labels of a codebook, which do not affect any measure.
    """

    name: str
    labels: tuple[str, ...]
    counts: Counts64
    hierarchy: Hierarchy
    declared: bool
    leaves: int
    covers: Codes
    spans: Floats | None
    depths: Floats
    missing: int | None = None
    wildcard: bool = False
    distance: str = "equal"
    decimal: str = "."
    insides: tuple[Flags, ...] = ()
    order: tuple[int, ...] = ()
    along_tree: bool = False
    value_labels: Mapping[str, str] = field(default_factory=dict)
    harmless: tuple[int, ...] = ()

    @cached_property
    def harm(self) -> Codes:
        """The kind of each label of a sensitive column: harmful, harmless, or missing."""
        kinds = np.full(len(self.labels), HARMFUL, dtype=np.int32)
        kinds[list(self.harmless)] = HARMLESS
        if self.missing is not None:
            kinds[self.missing] = UNKNOWN
        return kinds

    @cached_property
    def special(self) -> bool:
        """Whether the column holds values that are harmless or missing."""
        return bool(np.any(self.counts[self.harm != HARMFUL] > 0))

    def shown(self, label: str) -> str:
        """Return a label as pages show it: with what the codebook calls it behind."""
        return shown_value(label, self.value_labels)

    def __repr__(self) -> str:
        return f"<Domain of {self.name}: {counted(len(self.labels), 'label')}>"

    @cached_property
    def generalized(self) -> bool:
        """Whether the column has labels that cover more than one leaf."""
        return bool(np.any(self.covers[self.counts > 0] > 1))

    @property
    def stars(self) -> list[int]:
        """The codes of labels that hide everything, where the column holds them."""
        codes = range(len(self.hierarchy.leaves), len(self.labels))
        return [code for code in codes if self.labels[code] in (ROOT, self.hierarchy.root)]

    def inside(self, code: int) -> Flags:
        """Return the leaves that a label covers."""
        size = len(self.hierarchy.leaves)
        return np.arange(size) == code if code < size else self.insides[code - size]

    def values(self) -> Floats | None:
        """Return the leaves of the hierarchy as numbers, missing ones as NaN; None where they are not numbers."""
        return leaf_values(self.hierarchy, self.decimal)


def domain_of(
    name: str,
    observed: Mapping[str, int],
    hierarchy: Hierarchy | Builder | None = None,
    *,
    missing: str = "category",
    na: Sequence[str] = (),
    decimal: str = ".",
    distance: str | None = None,
    order: Sequence[str] | None = None,
    along_tree: bool | None = None,
) -> Domain:
    """Return the domain of a column from its labels in the data (with counts) and its hierarchy, built if need be.

    Without a declared hierarchy every label is a leaf, except `*`, which covers all. `order` names the leaves in
    another order than that of the hierarchy or of the numbers. With `along_tree`, the default where there is a
    hierarchy, the leaves of each group are neighbours.

    >>> d = domain_of("sex", {"M": 3, "F": 2, "*": 1})
    >>> d.labels, d.covers.tolist(), d.stars
    (('F', 'M', '*'), [1, 1, 2], [2])
    """
    counted = {label: count for label, count in observed.items() if label != MISSING}
    tree = _hierarchy(name, counted, hierarchy, decimal)
    missing_code = None
    if MISSING in observed:
        missing_code = missing_leaf(tree, na, wildcard=missing == "wildcard")
        if missing_code is None:
            tree, missing_code = tree.with_leaf(MISSING), len(tree.leaves)
        leaf = tree.leaves[missing_code]
        counted[leaf] = counted.get(leaf, 0) + observed[MISSING]
    extras = sorted(label for label in counted if label == ROOT or label not in tree.nodes or tree.nodes[label][0] > 0)
    labels = tree.leaves + tuple(extras)
    counts = np.array([counted.get(label, 0) for label in labels], dtype=np.int64)
    covers, depths, spans, insides = _standing(tree, extras, decimal)
    along = hierarchy is not None if along_tree is None else along_tree
    unknown = [label for label, held in zip(extras, covers[len(tree.leaves) :], strict=True) if held == 0]
    if unknown:
        raise UncoveredError(name, unknown)
    return Domain(
        name,
        labels,
        counts,
        tree,
        declared=hierarchy is not None,
        leaves=max(len(tree.leaves), int(covers.max())),
        covers=covers,
        spans=spans,
        depths=depths,
        missing=missing_code,
        wildcard=missing == "wildcard" and missing_code is not None,
        distance=distance or ("equal" if spans is None else "ordered"),
        decimal=decimal,
        insides=tuple(insides),
        order=_ordered(name, tree, missing_code, order, decimal, along),
        along_tree=along,
    )


class UncoveredError(HierarchyError):
    """Error about values of the data that the column's hierarchy does not have."""

    def __init__(self, name: str, labels: Sequence[str], first_row: int | None = None) -> None:
        self.name, self.labels = name, list(labels)
        where = f"; the first is in row {first_row}" if first_row else ""
        super().__init__(
            f"the hierarchy of {name} lacks {counted(len(labels), 'value')} of the data: "
            f"{shortened(map(repr, labels), 5)}{where}",
            expected="every value of the column as a leaf, a node or an interval of leaves",
            remedy="add a row for each, or declare them as missing in na under [data]",
        )


def in_order(labels: Sequence[str], decimal: str = ".") -> list[str]:
    """Return numbers by value, then other labels by letter.

    >>> in_order(["10", "9"]), in_order(["b", "10", "9"])
    (['9', '10'], ['9', '10', 'b'])
    """
    return by_number(sorted(labels), decimal)


def by_number(labels: Sequence[str], decimal: str = ".") -> list[str]:
    """Return numbers by value, then other labels as they stand: codes such as 1, 2, 10, N.

    >>> by_number(["N", "10", "9", "A"])
    ['9', '10', 'N', 'A']
    """
    values = {label: number(label, decimal) for label in labels}
    coded = sorted((value, label) for label, value in values.items() if value is not None)
    return [*(label for _, label in coded), *(label for label, value in values.items() if value is None)]


def _hierarchy(name: str, present: Mapping[str, int], given: Hierarchy | Builder | None, decimal: str) -> Hierarchy:
    if isinstance(given, Hierarchy):
        return given
    plain = in_order([label for label in present if label != ROOT], decimal)
    if given is None:
        return flat(name, plain or [MISSING])
    return given(plain, [present[label] for label in plain])


def _ordered(
    name: str, tree: Hierarchy, missing: int | None, given: Sequence[str] | None, decimal: str, along_tree: bool
) -> tuple[int, ...]:
    """Return the leaves in order: as given, or numbers by value and others as in the hierarchy. Missing is last."""
    code_of = {label: code for code, label in enumerate(tree.leaves)}
    if given is None:
        plain = _plain_order(tree, decimal)
        return tuple((_along(tree, plain) if along_tree else plain).tolist())
    if missing is not None and tree.leaves[missing] not in given:
        given = [*given, tree.leaves[missing]]
    unknown = [label for label in given if label not in code_of]
    absent = [label for label in tree.leaves if label not in set(given)]
    if unknown or absent or len(given) > len(tree.leaves):
        wrong = f"unknown: {shortened(unknown, 3)}" if unknown else f"lacking: {shortened(absent, 3)}" if absent else ""
        raise HierarchyError(
            f"the order of {name} does not name each of its {len(tree.leaves)} values once"
            + (f" ({wrong})" if wrong else ""),
            expected="every leaf of the hierarchy, in order",
            remedy="leave order out to take the hierarchy's",
        )
    return tuple(code_of[label] for label in given)


def _plain_order(tree: Hierarchy, decimal: str) -> Counts64:
    position = {label: code for code, label in enumerate(tree.leaves)}
    ordered = sorted(by_number(tree.leaves, decimal), key=lambda label: label == MISSING)
    return np.array([position[label] for label in ordered], dtype=np.int64)


def _along(tree: Hierarchy, order: Counts64) -> Counts64:
    """Return the order that keeps the leaves of each group together, groups by their first leaf in `order`."""
    keys = []
    for groups in tree.maps:
        _, first = np.unique(groups[order], return_index=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        keys.append(rank[np.unique(groups[order], return_inverse=True)[1]])
    return np.asarray(order[np.lexsort(keys)])


def _standing(tree: Hierarchy, extras: Sequence[str], decimal: str) -> tuple[Codes, Floats, Floats | None, list[Flags]]:
    """Return for each leaf and generalized label the leaves covered (0: unknown), depth, span and inner leaves."""
    size = len(tree.leaves)
    total = size + len(extras)
    covers, depths, spans = np.ones(total, np.int32), np.zeros(total), np.zeros(total)
    known = leaf_values(tree, decimal)
    value = np.full(size, np.nan) if known is None else known
    insides = []
    for code, label in enumerate(extras, start=size):
        if label == ROOT or label in tree.nodes:
            # A star is the root wherever else a file may use it.
            level, position = (tree.height, 0) if label == ROOT else tree.nodes[label]
            inside = tree.maps[level] == position
            depths[code] = level / tree.height
            # Hiding the only value that is left hides something all the same.
            covers[code] = max(inside.sum(), 2) if label == ROOT else inside.sum()
        else:
            bounds = interval(label, decimal)
            inside = np.array([bounds is not None and bounds.holds(v) for v in value])
            # The lowest level with a label that covers at least as many leaves.
            deepest = next(level for level, sizes in enumerate(tree.sizes) if sizes.max() >= inside.sum())
            depths[code] = deepest / tree.height
            covers[code] = inside.sum()
        spans[code] = 1.0 if label == ROOT else span_share(value, inside)
        insides.append(inside)
    return covers, depths, None if known is None else spans, insides


def leaf_values(tree: Hierarchy, decimal: str = ".") -> Floats | None:
    """Return the leaves as numbers, missing ones as NaN; None where they are not numbers."""
    plain = np.array([label != MISSING for label in tree.leaves])
    parsed = numbers([label for label in tree.leaves if label != MISSING], decimal)
    if parsed is None:
        return None
    value = np.full(len(plain), np.nan)
    value[plain] = parsed
    return value


def span_share(value: Floats, inside: Flags) -> float:
    """Return how much of the numeric range the leaves inside a group span."""
    held = value[inside & ~np.isnan(value)]
    extent = np.nanmax(value) - np.nanmin(value) if np.any(~np.isnan(value)) else 0.0
    return float((held.max() - held.min()) / extent) if len(held) and extent > 0 else 0.0
