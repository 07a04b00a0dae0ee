"""Measures of the shares of sensitive values in a class: (α, k)-anonymity, β-likeness, δ-disclosure, own share.

>>> from sfumato.measures.oracle import six_rows
>>> ALPHA_K.value(six_rows()), sorted(set(ALPHA_K.property(six_rows()).records().round(3).tolist()))
(1.0, [0.5, 0.667, 1.0])
>>> BETA_LIKENESS.value(six_rows())  # ulcer: 1/2 against 1/6
2.0

The figure of enhanced β-likeness is the least β that bounds every gain together with the −ln p of its value. If a gain
exceeds the −ln p of its value, there is no such β and the figure is infinite.

>>> ENHANCED_BETA.value(six_rows()), sorted(set(ENHANCED_BETA.property(six_rows()).records().round(3).tolist()))
(inf, [0.333, inf])

A value of the table that is not in a class makes δ infinite, because the class reveals that its members do not have it.
With `absent = "ignored"` only the values in the class count, as in pycanon.

>>> DELTA_DISCLOSURE.value(six_rows())
inf
>>> round(DELTA_DISCLOSURE.with_parameters({"absent": "ignored"}).value(six_rows()), 6)
1.098612
>>> round(OWN_SHARE.value(six_rows()), 6)  # (2·2/3 + 1/3 + 1 + 2·1/2) / 6
0.611111
"""

from __future__ import annotations

from functools import partial

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import SLACK
from sfumato.measures.known_values import Way, exempt, kinds_of, largest_share, worst
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.tables.domain import HARMFUL

likeness = partial(Measure, kind="privacy", direction="min", reads="sensitive", fold="worst", monotone="falls")


def commonest(classes: ClassTable, column: str) -> Property:
    return classes.per_class(largest_share(classes, column), hidden=0.0)


def alpha_k_oracle(records: Records, record: int, column: str) -> float:
    return records.largest_harmful_share(column, records.crowd(record))


ALPHA_K = likeness("alpha_k", commonest, alpha_k_oracle)


def beta_gain(classes: ClassTable, column: str) -> Property:
    with np.errstate(divide="ignore", invalid="ignore"):  # suppressed classes may have values of no kept class
        gains = worst(classes, column, lambda way: way.values.fold(np.maximum, _relative(way)))
    return classes.per_class(gains, hidden=0.0)


def _relative(way: Way) -> Floats:
    """Return the relative gain of each share in a class over the share in the table."""
    return np.where(way.harmful, way.share / way.held[way.values.values] - 1.0, 0.0)


def beta_likeness_oracle(records: Records, record: int, column: str) -> float:
    pairs = records.harmful_shares(column, records.crowd(record))
    return max((float((q - p) / p) for q, p in pairs if q > p), default=0.0)


BETA_LIKENESS = likeness("beta_likeness", beta_gain, beta_likeness_oracle)


def enhanced_gain(classes: ClassTable, column: str) -> Property:
    def gains(way: Way) -> Floats:
        relative, allowed = _relative(way), -np.log(way.held[way.values.values]) + SLACK
        broken = way.values.fold(np.logical_or, way.harmful & (relative > allowed)) > 0
        return np.where(broken, np.inf, way.values.fold(np.maximum, relative))

    with np.errstate(divide="ignore", invalid="ignore"):  # as above
        return classes.per_class(worst(classes, column, gains), hidden=0.0)


def enhanced_beta_oracle(records: Records, record: int, column: str) -> float:
    pairs = [(q, p) for q, p in records.harmful_shares(column, records.crowd(record)) if q > p]
    gains = [(float((q - p) / p), -float(np.log(p))) for q, p in pairs]
    return float("inf") if any(g > cap + SLACK for g, cap in gains) else max((g for g, _ in gains), default=0.0)


ENHANCED_BETA = likeness("enhanced_beta", enhanced_gain, enhanced_beta_oracle)


def log_ratio(classes: ClassTable, column: str, absent: str) -> Property:
    def ratio(way: Way) -> Floats:
        ratios = np.abs(np.log(way.share / way.held[way.values.values]))
        return way.values.fold(np.maximum, np.where(way.harmful, ratios, 0.0))

    with np.errstate(divide="ignore", invalid="ignore"):  # as above
        result = worst(classes, column, ratio)
    if absent == "infinite":
        values, whole = classes.values(column), classes.references(column)[0]
        held = values.fold(np.add, kinds_of(values, HARMFUL).astype(np.int64))
        lacking = held < np.count_nonzero(whole[values.domain.harm == HARMFUL])
        result = np.where(lacking & ~exempt(values), np.inf, result)
    return classes.per_class(result, hidden=0.0)


def delta_disclosure_oracle(records: Records, record: int, column: str, absent: str) -> float:
    crowd = records.crowd(record)
    if not records.learnable(column, crowd)[0]:
        return 0.0
    worst_of = 0.0
    for q, p in records.harmful_shares(column, crowd):
        if q > 0:
            worst_of = max(worst_of, abs(float(np.log(q / p))))
        elif absent == "infinite":
            return float("inf")
    return worst_of


DELTA_DISCLOSURE = likeness(
    "delta_disclosure",
    log_ratio,
    delta_disclosure_oracle,
    parameters={"absent": "infinite"},
    choices=("infinite", "ignored"),
)


def share(classes: ClassTable, column: str) -> Property:
    values = classes.values(column)
    return classes.per_value(column, values.held / values.size[values.class_of], hidden=0.0)


def own_share_oracle(records: Records, record: int, column: str) -> float:
    return float(records.held(column, records.crowd(record))[records.values(column)[record]])


OWN_SHARE = likeness("own_share", share, own_share_oracle, fold="mean")
