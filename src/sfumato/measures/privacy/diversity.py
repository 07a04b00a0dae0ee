"""Measures of diversity: distinct, frequency, entropy and recursive ℓ-diversity, and means and sums over records.

>>> from sfumato.measures.oracle import six_rows
>>> DISTINCT_L.value(six_rows()), sorted(DISTINCT_L.property(six_rows()).records().tolist())
(1.0, [1.0, 2.0, 2.0, 2.0, 2.0, 2.0])
>>> FREQUENCY_L.value(six_rows()), sorted(set(FREQUENCY_L.property(six_rows()).records().tolist()))
(1.0, [1.0, 1.5, 2.0])

Entropy ℓ-diversity is e to the least entropy of the sensitive values in a class, not rounded to a whole number.

>>> ENTROPY_L.value(six_rows()), max(ENTROPY_L.property(six_rows()).records().round(6).tolist())
(1.0, 2.0)

The c of recursive (c, ℓ)-diversity for a given ℓ is infinite if a class has fewer than ℓ values.

>>> RECURSIVE_L.value(six_rows()), RECURSIVE_L.with_parameters({"c": 0.5}).value(six_rows())
(1.0, 0.0)
>>> RECURSIVE_C.value(six_rows()), sorted(set(RECURSIVE_C.property(six_rows()).records().tolist()))
(inf, [1.0, 2.0, inf])
>>> round(WEIGHTED_L.value(six_rows()), 4)  # (3·2 + 1·1 + 2·2) / 6
1.8333

The paper of S_ℓ maximises it, which rewards classes with one value. The default here is to minimise it, and a run file
may change the direction (docs/readings.md, 1.6).

>>> SUM_L.value(six_rows())  # 2 + 2 + 1, 1, 1 + 1
8.0
"""

from __future__ import annotations

from functools import partial

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.measures.classes import EXEMPT, ClassTable, ClassValues
from sfumato.measures.known_values import Way, alternatives, largest_share, worst
from sfumato.measures.measure import Measure, all_pairs
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property

diversity = partial(Measure, kind="privacy", direction="max", reads="sensitive", monotone="rises")


def distinct_l(classes: ClassTable, column: str) -> Property:
    return classes.per_class(alternatives(classes, column), hidden=0.0)


def distinct_l_oracle(records: Records, record: int, column: str) -> float:
    crowd = records.crowd(record)
    harmful, harmless = records.learnable(column, crowd)
    if not harmful:
        return float(EXEMPT)
    if any(records.held(column, some)[value] == 1.0 for some in records.ways(column, crowd) for value in harmful):
        return 1.0
    return float(min(len(harmful) + harmless, len(set(records.holders(column)[crowd].tolist()))))


DISTINCT_L = diversity("distinct_l", distinct_l, distinct_l_oracle, fold="worst", bound="own_budget")


def inverse_share(classes: ClassTable, column: str) -> Property:
    with np.errstate(divide="ignore"):  # an exempt class has no share
        inverse = 1.0 / largest_share(classes, column)
    return classes.per_class(inverse, hidden=0.0)


def frequency_l_oracle(records: Records, record: int, column: str) -> float:
    share = records.largest_harmful_share(column, records.crowd(record))
    return 1.0 / share if share else float("inf")


FREQUENCY_L = diversity("frequency_l", inverse_share, frequency_l_oracle, fold="worst")


def effective_values(classes: ClassTable, column: str) -> Property:
    def negative(way: Way) -> Floats:
        share = way.values.weight / way.values.size[way.values.class_of]
        return np.asarray(-np.exp(-way.values.fold(np.add, share * np.log(share))))

    return classes.per_class(-worst(classes, column, negative, -np.inf), hidden=0.0)


def entropy_l_oracle(records: Records, record: int, column: str) -> float:
    found = []
    for some in records.ways(column, records.crowd(record)):
        shares = records.shares(column, some)
        found.append(float(np.exp(-sum(share * np.log(share) for share in shares if share > 0))))
    return min(found)


ENTROPY_L = diversity("entropy_l", effective_values, entropy_l_oracle, fold="worst")


BELOW_TIE = 1 - 1e-9  # shares of units have rounding errors: a tie must not count as less


def ranked(values: ClassValues) -> tuple[Floats, Floats]:
    """Return the counts of each class's values, the largest first, and the sum from each count to the last."""
    order = np.lexsort((-values.weight, values.class_of))
    counts = values.weight[order].astype(np.float64)
    before = np.cumsum(counts) - counts
    within = before - before[values.start[:-1]][values.class_of]
    return counts, values.size[values.class_of] - within


def recursive_l(classes: ClassTable, column: str, c: float) -> Property:
    def negative(way: Way) -> Floats:
        counts, rest = ranked(way.values)
        largest = counts[way.values.start[:-1]][way.values.class_of]
        return -way.values.fold(np.add, (largest < c * rest * BELOW_TIE).astype(np.int64))

    return classes.per_class(-worst(classes, column, negative, -np.inf), hidden=0.0)


def recursive_l_oracle(records: Records, record: int, column: str, c: float) -> float:
    found = []
    for some in records.ways(column, records.crowd(record)):
        counts = sorted((float(share) for share in records.shares(column, some) if share), reverse=True)
        held = (l + 1 for l in range(len(counts)) if counts[0] < c * sum(counts[l:]) * BELOW_TIE)
        found.append(float(max(held, default=0)))
    return min(found)


RECURSIVE_L = diversity("recursive_l", recursive_l, recursive_l_oracle, fold="worst", parameters={"c": 3.0})


def least_c(classes: ClassTable, column: str, l: float) -> Property:
    def least(way: Way) -> Floats:
        (counts, rest), start = ranked(way.values), way.values.start
        enough = np.diff(start) > int(l) - 1
        at = np.where(enough, start[:-1] + int(l) - 1, 0)
        return np.where(enough, counts[start[:-1]] / rest[at], np.inf)

    return classes.per_class(worst(classes, column, least), hidden=0.0)


def recursive_c_oracle(records: Records, record: int, column: str, l: float) -> float:
    found = []
    for some in records.ways(column, records.crowd(record)):
        counts = sorted((float(share) for share in records.shares(column, some) if share), reverse=True)
        rest = sum(counts[int(l) - 1 :])
        found.append(counts[0] / rest if rest else float("inf"))
    return max(found)


RECURSIVE_C = diversity(
    "recursive_c", least_c, recursive_c_oracle, direction="min", fold="worst", monotone="falls", parameters={"l": 2}
)


def diversity_or_one(classes: ClassTable, column: str) -> Property:
    """Return the number of values of each class, which is 1 if the class is exempt from ℓ."""
    held = alternatives(classes, column)
    return classes.per_class(np.where(held >= EXEMPT, 1.0, held), hidden=0.0)


def weighted_l_oracle(records: Records, record: int, column: str) -> float:
    held = distinct_l_oracle(records, record, column)
    return 1.0 if held >= EXEMPT else held


WEIGHTED_L = diversity("weighted_l", diversity_or_one, weighted_l_oracle, fold="mean", bound="unsuppressed")


def own_count(classes: ClassTable, column: str) -> Property:
    return classes.per_value(column, classes.values(column).held, hidden=0.0)


def sum_l_oracle(records: Records, record: int, column: str) -> float:
    values = records.values(column)
    same = records.crowd(record) & (values == values[record])
    return float(len(set(records.holders(column)[same].tolist())))


# Suppression lowers the sum, so there is no bound if it is minimised.
SUM_L = diversity(
    "sum_l",
    own_count,
    sum_l_oracle,
    direction="min",
    fold="sum",
    bound="unsuppressed",
    bound_direction="max",
    most=all_pairs,
)
