"""Plain reference versions of the compiled loops, short and slow. Tests compare the loops with them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.methods.local.floor import LabelModel
from sfumato.methods.local.model import Labels

Run = tuple[int, int]


def allowed(labels: Labels, j: int) -> list[Run]:
    """Return every label of a column as a run of units (first, one past the last)."""
    units = int(labels.unit[j + 1] - labels.unit[j])
    node = int(labels.leaf[labels.unit[j]])
    if node < 0:
        runs = [(a, b) for a in range(units) for b in range(a + 1, units + 1)]
        return [(a, b) for a, b in runs if not labels.alone[j] or b < units or a in (0, units - 1)]
    runs_of_nodes: dict[Run, None] = {}
    for leaf in labels.leaf[labels.unit[j] : labels.unit[j + 1]].tolist():
        at = leaf
        while at >= 0:
            runs_of_nodes[int(labels.low[at]), int(labels.high[at])] = None
            at = int(labels.parent[at])
    return list(runs_of_nodes)


def label_cost(labels: Labels, j: int, run: Run) -> float:
    """Return the cost per record of a label: (leaves covered - 1)/(leaves - 1), times the column's share."""
    before = labels.before[labels.unit[j] + j :]
    return float(before[run[1]] - before[run[0]] - 1) * float(labels.price[j])


def smallest_box(labels: Labels, rows: Sequence[Sequence[int]]) -> tuple[Run, ...]:
    """Return the cheapest allowed label of each column that covers some records."""
    box = []
    for j in range(labels.columns):
        own = [row[j] for row in rows]
        fit = [run for run in allowed(labels, j) if run[0] <= min(own) and max(own) < run[1]]
        box.append(min(fit, key=lambda run: (label_cost(labels, j, run), run)))
    return tuple(box)


def box_cost(labels: Labels, box: Sequence[Run]) -> float:
    return sum(label_cost(labels, j, run) for j, run in enumerate(box))


def class_cost(labels: Labels, rows: Sequence[Sequence[int]]) -> float:
    """Return the total cost of the records of a class."""
    return len(rows) * box_cost(labels, smallest_box(labels, rows))


def cheapest_box(labels: Labels, rows: Sequence[Sequence[int]], r: int, k: int) -> float:
    """Return the cost of the cheapest box with record r and at least k records, by trying all boxes."""
    best = np.inf
    for box in itertools.product(*(allowed(labels, j) for j in range(labels.columns))):
        inside = [all(a <= v < b for v, (a, b) in zip(row, box, strict=True)) for row in rows]
        if inside[r] and sum(inside) >= k:
            best = min(best, box_cost(labels, box))
    return float(best)


def reflected_order(codes: Sequence[Sequence[int]], order: Sequence[int], turned: Sequence[int]) -> list[int]:
    """Return the cells in reflected order."""
    groups = [list(range(len(codes)))]
    for j in order:
        finer = []
        for number, group in enumerate(groups):
            values = sorted({codes[c][j] for c in group}, reverse=(number + turned[j]) % 2 == 1)
            finer += [[c for c in group if codes[c][j] == value] for value in values]
        groups = finer
    return [c for group in groups for c in group]


def best_runs(labels: Labels, rows: Sequence[Sequence[int]], k: int, fee: float = np.inf) -> float:
    """Return the least cost of ordered records in runs of at least k, or suppressed for a fee."""
    best = [0.0]
    for e in range(1, len(rows) + 1):
        values = [best[s] + class_cost(labels, rows[s:e]) for s in range(e - k + 1)]
        best.append(min([*values, best[e - 1] + fee]))
    return best[-1]


def partitions(size: int, k: int) -> Iterator[list[list[int]]]:
    """Return all partitions of the numbers below `size` into sets of at least k."""

    def extend(number: int, parts: list[list[int]]) -> Iterator[list[list[int]]]:
        if number == size:
            if all(len(part) >= k for part in parts):
                yield parts
            return
        for at in range(len(parts)):
            yield from extend(number + 1, [[*p, number] if i == at else p for i, p in enumerate(parts)])
        yield from extend(number + 1, [*parts, [number]])

    yield from extend(0, [])


def optimum(labels: Labels, rows: Sequence[Sequence[int]], k: int) -> float:
    """Return the least loss of all partitions into classes of at least k, nothing suppressed; infinite if none."""
    costs = (sum(class_cost(labels, [rows[r] for r in part]) for part in parts) for parts in partitions(len(rows), k))
    return min(costs, default=np.inf) / len(rows)


def model_of(labels: Labels) -> LabelModel:
    """Return the allowed labels in the form that the check of lower bounds reads."""
    runs = [allowed(labels, j) for j in range(labels.columns)]
    return LabelModel(runs, [[label_cost(labels, j, run) for run in own] for j, own in enumerate(runs)])
