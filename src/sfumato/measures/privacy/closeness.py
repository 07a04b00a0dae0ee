"""t-closeness: the largest distance between the sensitive values of a class and those of the table.

The distance between two distributions is the earth mover's distance, with the ground distance of the column. It is 1
for each two values of a column with `equal` distance. For `ordered` values, such as numbers, it is the difference of
their ranks over the largest difference. For `hierarchical` values it is the height of their lowest common ancestor over
the height of the tree.

>>> from sfumato.measures.oracle import six_rows
>>> round(T_CLOSENESS.value(six_rows()), 6), T_CLOSENESS.value(six_rows()) == 0.5
(0.5, True)
"""

from __future__ import annotations

import numpy as np

from sfumato.base.arrays import Counts64, Floats
from sfumato.measures.classes import ClassTable, ClassValues
from sfumato.measures.known_values import Way, worst
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.tables.domain import Domain

CHUNK = 1 << 21  # cells of classes × values in memory at a time


def emd(classes: ClassTable, column: str) -> Property:
    return classes.per_class(worst(classes, column, _distances), hidden=0.0)


def _distances(way: Way) -> Floats:
    """Return the distance of each class from the table."""
    values, whole, size = way.values, way.weight, way.values.size
    if values.domain.distance == "equal":
        return equal(values, size, whole)
    if values.domain.distance == "ordered":
        return ordered(values, size, whole)
    result = np.zeros(len(size))
    step = max(CHUNK // len(whole), 1)
    for begin in range(0, len(result), step):
        end = min(begin + step, len(result))
        entries = slice(values.start[begin], values.start[end])
        shares = np.zeros((end - begin, len(whole)))
        rows = values.class_of[entries]
        shares[rows - begin, values.values[entries]] = values.weight[entries] / size[rows]
        result[begin:end] = hierarchical(shares - whole, values.domain)
    return result


def equal(values: ClassValues, size: Counts64, whole: Floats) -> Floats:
    """Return half the sum of differences: of the values in the class, and of the values that are not in it."""
    share, there = values.weight / size[values.class_of], whole[values.values]
    return (values.fold(np.add, np.abs(share - there)) + 1.0 - values.fold(np.add, there)) / 2


def in_order(whole: Floats, domain: Domain) -> Counts64:
    """Return the values of the table in order: numbers by value, other values by leaf, and missing values last."""
    held = np.flatnonzero(whole > 0)
    value = domain.values()
    return held if value is None else held[np.argsort(value[held], kind="stable")]


def unfit(classes: ClassTable) -> str | None:
    """Return why distances between values are unknown: a label of several values has no rank."""
    for name, values in classes.table.sensitive.items():
        if values.domain.generalized and values.domain.distance != "equal":
            return f'needs the single values of {name}, which is generalized; distance = "equal" would do'
    return None


def ordered(values: ClassValues, size: Counts64, whole: Floats) -> Floats:
    """Return the area between the distribution functions of each class and of the table.

    Between two values of a class, its function is constant and that of the table rises, so they cross at most once.
    Each such interval is one step of the computation.
    """
    order = in_order(whole, values.domain)  # values that are not in the table have no rank
    position = np.full(len(whole), -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    rises = np.cumsum(whole[order])
    area = np.concatenate([[0.0], np.cumsum(rises)])
    held = position[values.values] >= 0
    class_of, at = values.class_of[held], position[values.values][held]
    sorted_ = np.lexsort((at, class_of))
    class_of, at = class_of[sorted_], at[sorted_]
    share = (values.weight[held] / size[values.class_of[held]])[sorted_]
    classes = len(values.start) - 1
    counts = np.bincount(class_of, minlength=classes)
    first = np.cumsum(counts) - counts
    total = np.cumsum(share)
    reached = total - (total - share)[np.minimum(first, max(len(share) - 1, 0))][class_of] if len(share) else total
    end = np.append(at[1:], 0)
    end[np.flatnonzero(np.append(class_of[1:] != class_of[:-1], True))] = len(order)
    cross = np.clip(np.searchsorted(rises, reached), at, end)
    runs = reached * (2 * cross - at - end) + area[at] + area[end] - 2 * area[cross]
    start = np.full(classes, len(order), dtype=np.int64)
    start[counts > 0] = at[first[counts > 0]]
    result = np.bincount(class_of, weights=runs, minlength=classes) + area[start]
    return np.asarray(np.maximum(result, 0.0) / max(len(order) - 1, 1))


def hierarchical(difference: Floats, domain: Domain) -> Floats:
    """Sum the height of each inner node times the mass its children exchange (Li et al. 2007, section 5.2)."""
    tree = domain.hierarchy
    extra = difference[:, : len(tree.leaves)]
    cost = np.zeros(len(extra))
    for level, parents in enumerate(tree.parents, start=1):
        joined = np.zeros((len(parents), len(tree.levels[level])))
        joined[np.arange(len(parents)), parents] = 1.0
        surplus, deficit = np.maximum(extra, 0.0) @ joined, np.maximum(-extra, 0.0) @ joined
        cost += level / tree.height * np.minimum(surplus, deficit).sum(axis=1)
        extra = extra @ joined
    return cost


def t_closeness_oracle(records: Records, record: int, column: str) -> float:
    """Move mass between the nearest values first, which is optimal for these three distances."""
    pairs = zip(records.ways(column, records.crowd(record)), records.ways(column, records.kept), strict=False)
    return max(
        _moved(records, records.shares(column, some), records.shares(column, rest), column) for some, rest in pairs
    )


def _moved(records: Records, share: Floats, whole: Floats, column: str) -> float:
    domain = records.domain(column)
    value = domain.values()
    held = [int(code) for code in np.flatnonzero(whole > 0)]
    places = held if value is None else sorted(held, key=lambda code: (np.isnan(value[code]), value[code]))
    tree = domain.hierarchy

    def ground(a: int, b: int) -> float:
        if domain.distance == "equal":
            return 1.0
        if domain.distance == "ordered":
            return abs(places.index(a) - places.index(b)) / max(len(places) - 1, 1)
        return (
            next(level for level in range(tree.height + 1) if tree.maps[level][a] == tree.maps[level][b]) / tree.height
        )

    if domain.distance == "ordered":  # on a line the greedy match goes left to right
        order = [(0.0, a, b) for a in places for b in places]
    else:
        order = sorted((ground(a, b), a, b) for a in range(len(share)) for b in range(len(share)) if a != b)
    more, less = np.maximum(share - whole, 0.0), np.maximum(whole - share, 0.0)
    total = 0.0
    for _, a, b in order:
        moved = min(more[a], less[b])
        more[a] -= moved
        less[b] -= moved
        total += moved * ground(a, b) if moved else 0.0
    return float(total)


T_CLOSENESS = Measure(
    "t_closeness",
    emd,
    t_closeness_oracle,
    kind="privacy",
    direction="min",
    reads="sensitive",
    fold="worst",
    monotone="falls",
    most=lambda classes: 1.0,
    unfit=unfit,
)
