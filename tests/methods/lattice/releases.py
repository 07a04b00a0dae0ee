"""Every release of a small lattice by hand: rows, dictionaries and loops, none of the library's own evaluation."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.tables.frequency import FrequencyTable

Row = tuple[tuple[int, ...], int]  # codes of the quasi-identifiers, and the sensitive value
Node = tuple[int, ...]
Release = dict[str, float]


def rows_of(table: FrequencyTable, column: str = "s") -> list[Row]:
    """The records of a table."""
    values = table.sensitive[column]
    found = []
    for place, value, count in zip(values.tuple_of, values.values, values.counts, strict=True):
        found += [(tuple(table.codes[:, place].tolist()), int(value))] * int(count)
    return found


def distance(held: Counter[int], whole: Counter[int]) -> float:
    n, total = sum(held.values()), sum(whole.values())
    return sum(abs(held[v] / n - whole[v] / total) for v in whole) / 2


def entropy(held: Counter[int], _: Counter[int]) -> float:
    n = sum(held.values())
    return math.exp(-sum(c / n * math.log(c / n) for c in held.values()))


def gain(held: Counter[int], whole: Counter[int]) -> float:
    n, total = sum(held.values()), sum(whole.values())
    return max(0.0, *(held[v] / n / (whole[v] / total) - 1 for v in held))


def log_ratio(held: Counter[int], whole: Counter[int]) -> float:
    n, total = sum(held.values()), sum(whole.values())
    if len(held) < len(whole):
        return math.inf
    return max(abs(math.log(held[v] / n / (whole[v] / total))) for v in held)


# What one class has, and which way is better.
CRITERIA: dict[str, tuple[Callable[[Counter[int], Counter[int]], float], int]] = {
    "k": (lambda held, _: sum(held.values()), 1),
    "prosecutor_risk": (lambda held, _: 1 / sum(held.values()), -1),
    "distinct_l": (lambda held, _: len(held), 1),
    "entropy_l": (entropy, 1),
    "alpha_k": (lambda held, _: max(held.values()) / sum(held.values()), -1),
    "t_closeness": (distance, -1),
    "beta_likeness": (gain, -1),
    "delta_disclosure": (log_ratio, -1),
}


# What a release has as a whole, and which way is better.
TOTALS = {
    "general_loss": -1,
    "arx_loss": -1,
    "precision": 1,
    "discernibility": -1,
    "sum_k": 1,
    "sum_l": -1,
    "marketer_risk": -1,
}


def way(name: str) -> int:
    """1 if more is better, -1 if less is."""
    return CRITERIA[name][1] if name in CRITERIA else TOTALS[name]


def totals(trees: Sequence[Hierarchy], node: Node, kept: Mapping[tuple[int, ...], list[int]], records: int) -> Release:
    """The sums and means over all records: those of some classes are kept, all others suppressed."""
    gone = records - sum(len(held) for held in kept.values())
    loss, product, height = 0.0, 1.0, 0.0
    for j, (tree, level) in enumerate(zip(trees, node, strict=True)):
        leaves = len(tree.leaves)
        covered = sum(len(held) * int(tree.sizes[level][key[j]]) for key, held in kept.items())
        loss += gone + (covered - (records - gone)) / max(leaves - 1, 1)
        if leaves > 1:
            least = records / leaves
            product *= (covered / leaves + gone - least) / (records - least) + 1
        height += level / tree.height
    squares = sum(len(held) ** 2 for held in kept.values())
    return {
        "general_loss": loss,
        "arx_loss": product ** (1 / len(trees)) - 1,
        "precision": (1 - height / len(trees)) * (records - gone) / records,
        "discernibility": squares + gone * records,
        "sum_k": squares,
        "sum_l": sum(count**2 for held in kept.values() for count in Counter(held).values()),
        "marketer_risk": len(kept) / records,
        "suppressed": gone,
    }


def every_release(
    table: FrequencyTable, sought: Sequence[str], demanded: Mapping[str, float], most: int
) -> Iterator[Release]:
    """All nodes and all thresholds: what each release has of the criteria and as a whole."""
    return (release for _, release in releases_by_node(table, sought, demanded, most))


def releases_by_node(
    table: FrequencyTable, sought: Sequence[str], demanded: Mapping[str, float], most: int
) -> Iterator[tuple[Node, Release]]:
    """The same with the node of each."""
    rows = rows_of(table)
    whole = Counter(value for _, value in rows)
    trees = [domain.hierarchy for domain in table.domains]
    names = [*dict.fromkeys((*sought, *demanded))]
    for node in product(*(range(tree.height + 1) for tree in trees)):
        classes: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for codes, value in rows:
            classes[tuple(int(t.maps[n][c]) for t, n, c in zip(trees, node, codes, strict=True))].append(value)
        has = {key: {name: CRITERIA[name][0](Counter(held), whole) for name in names} for key, held in classes.items()}

        def fails(key: tuple[int, ...], limits: Mapping[str, float], has: dict = has) -> bool:
            return any(CRITERIA[n][1] * has[key][n] < CRITERIA[n][1] * limit - 1e-9 for n, limit in limits.items())

        steps = [sorted({has[key][name] for key in classes}) for name in sought]
        for chosen in product(*steps):
            limits = [demanded, dict(zip(sought, chosen, strict=True))]
            kept = {key: held for key, held in classes.items() if not any(fails(key, some) for some in limits)}
            if not kept or len(rows) - sum(map(len, kept.values())) > most:
                continue
            worst = {n: min(CRITERIA[n][1] * has[key][n] for key in kept) * CRITERIA[n][1] for n in names}
            yield node, worst | totals(trees, node, kept, len(rows))


def front_of(found: Sequence[Release], objectives: Sequence[str]) -> list[tuple[float, ...]]:
    """The non-dominated values of some objectives, minimised and rounded."""
    values = {tuple(float(f"{-way(n) * r[n]:.10g}") for n in objectives) for r in found}
    table = np.array(sorted(values))
    kept = []
    for row in table:
        no_worse, better = (table <= row).all(axis=1), (table < row).any(axis=1)
        if not (no_worse & better).any():
            kept.append(tuple(row.tolist()))
    return kept
