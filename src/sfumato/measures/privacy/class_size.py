"""Measures of class sizes: k-anonymity, the mean and the sum of class sizes, and the share of records in small classes.

>>> from sfumato.measures.oracle import six_rows
>>> K.value(six_rows()), sorted(K.property(six_rows()).records().tolist())
(1.0, [1.0, 2.0, 2.0, 3.0, 3.0, 3.0])
>>> round(WEIGHTED_K.value(six_rows()), 4)  # (3·3 + 1·1 + 2·2) / 6
2.3333
>>> SUM_K.value(six_rows())  # 3 + 3 + 3 + 1 + 2 + 2
14.0
>>> {measure.name: round(measure.value(six_rows()), 4) for measure in MEASURES}
{'uniques': 0.1667, 'below_3': 0.5, 'below_5': 1.0, 'below_10': 1.0}
"""

from __future__ import annotations

from functools import partial

from sfumato.measures.classes import ClassTable
from sfumato.measures.measure import Measure, all_pairs, all_records
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property

of_sizes = partial(Measure, kind="privacy", direction="max", reads="sizes", monotone="rises")


def size(classes: ClassTable) -> Property:
    return classes.per_class(classes.size, hidden=0.0)


def k_oracle(records: Records, record: int) -> float:
    return float(records.people(records.crowd(record)))


K = of_sizes("k", size, k_oracle, fold="worst", bound="own_budget", most=all_records)


WEIGHTED_K = of_sizes("weighted_k", size, k_oracle, fold="mean", bound="unsuppressed", most=all_records)


SUM_K = of_sizes("sum_k", size, k_oracle, fold="sum", bound="unsuppressed", most=all_pairs)


def below(name: str, k: int) -> Measure:
    def small(classes: ClassTable) -> Property:
        return classes.per_class(classes.size < k, hidden=0.0)

    def oracle(records: Records, record: int) -> float:
        return float(records.people(records.crowd(record)) < k)

    return of_sizes(name, small, oracle, fold="mean", direction="min", monotone="falls")


MEASURES = (below("uniques", 2), below("below_3", 3), below("below_5", 5), below("below_10", 10))
