"""Frequency ℓ-diversity: one over the largest share of a sensitive value in a class.

>>> from sfumato.measures.example import six_rows
>>> MEASURE.value(six_rows()), sorted(set(MEASURE.property(six_rows()).records().tolist()))
(1.0, [1.0, 1.5, 2.0])
"""

from __future__ import annotations

import numpy as np

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.facts import PerClass
from sfumato.measures.known import largest_share
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def inverse_share(classes: ClassTable, column: str) -> Property:
    with np.errstate(divide="ignore"):  # an exempt class has no share
        inverse = 1.0 / largest_share(classes, column)
    return classes.per_class(inverse, hidden=0.0)


def oracle(records: Records, record: int, column: str) -> float:
    share = records.largest_harmful_share(column, records.crowd(record))
    return 1.0 / share if share else float("inf")


MEASURE = Measure(
    name="frequency_l",
    title="frequency ℓ-diversity",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=inverse_share,
    oracle=oracle,
    fold="worst",
    monotone="rises",
    sentence="No sensitive value has a share above 1/ℓ in any class.",
    citation="Wong et al. 2006; Machanavajjhala et al. 2007",
    formula="ℓ = 1 / max over classes and values of q",
    use="To bound how sure anybody can be of a value: no value has a share above 1/ℓ.",
    elsewhere={"anjana, pycanon": "1/α of alpha_k_anonymity"},
    per_class=PerClass(Criterion.FREQUENCY),
)
