"""Measures of the shares of sensitive values in a class: (α, k)-anonymity, β-likeness, δ-disclosure, own share.

The α of (α, k)-anonymity is the largest share of a sensitive value in a class.

>>> from sfumato.measures.oracle import six_rows
>>> ALPHA_K.value(six_rows()), sorted(set(ALPHA_K.property(six_rows()).records().round(3).tolist()))
(1.0, [0.5, 0.667, 1.0])

Basic β-likeness is the largest relative gain (q − p)/p of a value's share in a class (q) over the table (p).

>>> from sfumato.measures.oracle import six_rows
>>> BETA_LIKENESS.value(six_rows())  # ulcer: 1/2 against 1/6
2.0

Enhanced β-likeness limits the gain of every value to β and to −ln p. The figure is the least β for which this is true.
If a gain exceeds the −ln p of its value, there is no such β and the figure is infinite.

>>> from sfumato.measures.oracle import six_rows
>>> ENHANCED_BETA.value(six_rows()), sorted(set(ENHANCED_BETA.property(six_rows()).records().round(3).tolist()))
(inf, [0.333, inf])

δ-disclosure is the largest |ln(q/p)| of a value's share in a class (q) and in the table (p). A value of the table that
is not in a class makes δ infinite, because the class reveals that its members do not have it. With
`absent = "ignored"` only the values in the class count, as in pycanon.

>>> from sfumato.measures.oracle import six_rows
>>> DELTA_DISCLOSURE.value(six_rows())
inf
>>> round(DELTA_DISCLOSURE.with_parameters({"absent": "ignored"}).value(six_rows()), 6)
1.098612

The own share is the mean share of a record's sensitive value in its class. An attacker who knows the class and guesses
in proportion to its values is right with this probability.

>>> from sfumato.measures.oracle import six_rows
>>> round(OWN_SHARE.value(six_rows()), 6)  # (2·2/3 + 1/3 + 1 + 2·1/2) / 6
0.611111
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import SLACK, Criterion
from sfumato.measures.known_values import Way, exempt, kinds_of, largest_share, ways, worst
from sfumato.measures.measure import Measure, PerClass
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property
from sfumato.tables.domain import HARMFUL


def commonest(classes: ClassTable, column: str) -> Property:
    return classes.per_class(largest_share(classes, column), hidden=0.0)


def alpha_k_oracle(records: Records, record: int, column: str) -> float:
    return records.largest_harmful_share(column, records.crowd(record))


ALPHA_K = Measure(
    name="alpha_k",
    title="α of (α, k)-anonymity",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=commonest,
    oracle=alpha_k_oracle,
    fold="worst",
    monotone="falls",
    highest=lambda classes: 1.0,
    sentence="No sensitive value has a share above α in any class; k is reported separately.",
    citation="Wong et al. 2006, (α, k)-anonymity",
    formula="α = max over classes and values of q",
    use="As frequency ℓ, said as a share: no value can be guessed with more certainty than α.",
    elsewhere={"anjana, pycanon": "alpha_k_anonymity"},
    unit="share",
    per_class=PerClass(Criterion.ALPHA),
)


def beta_gain(classes: ClassTable, column: str) -> Property:
    return classes.per_class(worst(classes, _beta_gains(classes, column), 0.0), hidden=0.0)


def _beta_gains(classes: ClassTable, column: str) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        with np.errstate(divide="ignore", invalid="ignore"):  # suppressed classes may have values of no kept class
            relative = np.where(way.harmful, way.share / way.held[way.values.values] - 1.0, 0.0)
        yield way, way.values.fold(np.maximum, relative)


def beta_likeness_oracle(records: Records, record: int, column: str) -> float:
    pairs = records.harmful_shares(column, records.crowd(record))
    return max((float((q - p) / p) for q, p in pairs if q > p), default=0.0)


BETA_LIKENESS = Measure(
    name="beta_likeness",
    title="basic β-likeness",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=beta_gain,
    oracle=beta_likeness_oracle,
    fold="worst",
    monotone="falls",
    sentence="No class raises the share of a sensitive value by more than β times its share in the table.",
    citation="Cao and Karras 2012, β-likeness",
    formula="β = max over classes and values with q > p of  (q − p)/p",
    use="Rare sensitive values matter more than frequent ones: a gain is relative to how common a value is.",
    elsewhere={"ARX": "basic β-likeness", "anjana, pycanon": "basic_beta_likeness"},
    per_class=PerClass(Criterion.BETA, whole=True),
)


def enhanced_gain(classes: ClassTable, column: str) -> Property:
    return classes.per_class(worst(classes, _enhanced_gains(classes, column), 0.0), hidden=0.0)


def _enhanced_gains(classes: ClassTable, column: str) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        there = way.held[way.values.values]
        with np.errstate(divide="ignore", invalid="ignore"):  # suppressed classes may have values of no kept class
            relative = np.where(way.harmful, way.share / there - 1.0, 0.0)
            allowed = -np.log(there) + SLACK
        broken = way.values.fold(np.logical_or, way.harmful & (relative > allowed)) > 0
        yield way, np.where(broken, np.inf, way.values.fold(np.maximum, relative))


def enhanced_beta_oracle(records: Records, record: int, column: str) -> float:
    pairs = [(q, p) for q, p in records.harmful_shares(column, records.crowd(record)) if q > p]
    gains = [(float((q - p) / p), -float(np.log(p))) for q, p in pairs]
    return float("inf") if any(g > cap + SLACK for g, cap in gains) else max((g for g, _ in gains), default=0.0)


ENHANCED_BETA = Measure(
    name="enhanced_beta",
    title="enhanced β-likeness",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=enhanced_gain,
    oracle=enhanced_beta_oracle,
    fold="worst",
    monotone="falls",
    sentence="As basic β-likeness, and frequent values may gain less: at most −ln of their share.",
    citation="Cao and Karras 2012, enhanced β-likeness",
    formula="as β;  infinite if any gain exceeds −ln p of its own value",
    use="As basic β-likeness, where frequent values need a bound as well.",
    elsewhere={"ARX": "enhanced β-likeness", "anjana, pycanon": "enhanced_beta_likeness"},
    per_class=PerClass(Criterion.ENHANCED_BETA, whole=True),
)


def log_ratio(classes: ClassTable, column: str, absent: str) -> Property:
    result = worst(classes, _ratios(classes, column), 0.0)
    if absent == "infinite":
        values, whole = classes.values(column), classes.references(column)[0]
        held = values.fold(np.add, kinds_of(values, HARMFUL).astype(np.int64))
        lacking = held < np.count_nonzero(whole[values.domain.harm == HARMFUL])
        result = np.where(lacking & ~exempt(values), np.inf, result)
    return classes.per_class(result, hidden=0.0)


def _ratios(classes: ClassTable, column: str) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        with np.errstate(divide="ignore", invalid="ignore"):  # suppressed classes may have values of no kept class
            ratio = np.where(way.harmful, np.abs(np.log(way.share / way.held[way.values.values])), 0.0)
        yield way, way.values.fold(np.maximum, ratio)


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


DELTA_DISCLOSURE = Measure(
    name="delta_disclosure",
    title="δ-disclosure",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=log_ratio,
    oracle=delta_disclosure_oracle,
    fold="worst",
    monotone="falls",
    parameters={"absent": "infinite"},
    choices=("infinite", "ignored"),
    sentence="No class changes the share of a sensitive value by more than a factor of e to the δ.",
    citation="Brickell and Shmatikov 2008, δ-disclosure privacy",
    formula="δ = max over classes and values of |ln(q/p)|;   infinite if a class lacks a value",
    use="The strictest of the family: absence of a value tells as much as its presence. Rarely reachable.",
    elsewhere={
        "ARX": "δ-disclosure privacy (logarithm to base 2, values present only)",
        "anjana, pycanon": "delta_disclosure",
    },
    per_class=PerClass(Criterion.DELTA, parameter="absent", whole=True),
)


def share(classes: ClassTable, column: str) -> Property:
    values = classes.values(column)
    return classes.per_value(column, values.held / values.size[values.class_of], hidden=0.0)


def own_share_oracle(records: Records, record: int, column: str) -> float:
    return float(records.held(column, records.crowd(record))[records.values(column)[record]])


OWN_SHARE = Measure(
    name="own_share",
    title="share of own value",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=share,
    oracle=own_share_oracle,
    fold="mean",
    monotone="falls",
    highest=lambda classes: 1.0,
    sentence="The mean share of a record's own sensitive value in its class.",
    citation="Dewri, Ray, Ray, Whitley 2010, property P₂ as a share",
    formula="1/N · sum over released records of the share of the record's own value in its class",
    use="The expected success of guessing everybody's value from the class.",
    unit="share",
)
