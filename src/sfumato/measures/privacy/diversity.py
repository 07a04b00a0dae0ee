"""Measures of diversity: distinct, frequency, entropy and recursive ℓ-diversity, and means and sums over records.

Distinct ℓ-diversity is the fewest different sensitive values in a class. It is the p of p-sensitive k-anonymity.

>>> from sfumato.measures.oracle import six_rows
>>> DISTINCT_L.value(six_rows()), sorted(DISTINCT_L.property(six_rows()).records().tolist())
(1.0, [1.0, 2.0, 2.0, 2.0, 2.0, 2.0])

Frequency ℓ-diversity is one over the largest share of a sensitive value in a class.

>>> from sfumato.measures.oracle import six_rows
>>> FREQUENCY_L.value(six_rows()), sorted(set(FREQUENCY_L.property(six_rows()).records().tolist()))
(1.0, [1.0, 1.5, 2.0])

Entropy ℓ-diversity is e to the least entropy of the sensitive values in a class, not rounded to a whole number.

>>> from sfumato.measures.oracle import six_rows
>>> ENTROPY_L.value(six_rows()), max(ENTROPY_L.property(six_rows()).records().round(6).tolist())
(1.0, 2.0)

Recursive (c, ℓ)-diversity is the largest ℓ for which the most frequent value of every class is less frequent than c
times the values from the ℓ-th on together, r₁ < c·(r_ℓ + … + r_m).

>>> from sfumato.measures.oracle import six_rows
>>> RECURSIVE_L.value(six_rows()), RECURSIVE_L.with_parameters({"c": 0.5}).value(six_rows())
(1.0, 0.0)

For a given ℓ, the c of recursive (c, ℓ)-diversity is the largest r₁ / (r_ℓ + … + r_m). A table is recursively diverse
for every c above it. It is infinite if a class has fewer than ℓ values.

>>> from sfumato.measures.oracle import six_rows
>>> RECURSIVE_C.value(six_rows()), sorted(set(RECURSIVE_C.property(six_rows()).records().tolist()))
(inf, [1.0, 2.0, inf])

Weighted ℓ is the mean over records of the number of different sensitive values in the class.

>>> from sfumato.measures.oracle import six_rows
>>> round(WEIGHTED_L.value(six_rows()), 4)  # (3·2 + 1·1 + 2·2) / 6
1.8333

S_ℓ is the sum over records of how often the record's own sensitive value occurs in its class. The paper maximises it,
which rewards classes with one value. The default here is to minimise it, and a run file may change the direction
(docs/readings.md, 1.6).

>>> from sfumato.measures.oracle import six_rows
>>> SUM_L.value(six_rows())  # 2 + 2 + 1, 1, 1 + 1
8.0
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.measures.classes import EXEMPT, ClassTable, ClassValues
from sfumato.measures.criteria import Criterion
from sfumato.measures.known_values import Way, alternatives, largest_share, ways, worst
from sfumato.measures.measure import Form, Headline, Measure, PerClass, Walked
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


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


DISTINCT_L = Measure(
    name="distinct_l",
    title="distinct ℓ-diversity",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=distinct_l,
    oracle=distinct_l_oracle,
    fold="worst",
    monotone="rises",
    bound="own_budget",
    sentence="Every class holds at least ℓ different sensitive values.",
    citation="Machanavajjhala et al. 2007, ℓ-diversity; Truta and Vinay 2006, p-sensitive k-anonymity",
    formula="ℓ = min over classes of the number of different sensitive values",
    use="Sensitive values of about the same frequency. A skewed column needs entropy ℓ, recursive ℓ or t.",
    elsewhere={"ARX": "distinct-ℓ-diversity", "sdcMicro": "Distinct_Ldiversity", "anjana, pycanon": "l_diversity"},
    aliases=("p_sensitive",),
    short="ℓ",
    unit="count",
    headline=Headline(4, "fewest sensitive values in a class (ℓ)"),
    usual=True,
    histogram=Form.DIVERSITY,
    per_class=PerClass(Criterion.DISTINCT),
    tallied=lambda cuts: cuts.least_distinct,
)


def inverse_share(classes: ClassTable, column: str) -> Property:
    with np.errstate(divide="ignore"):  # an exempt class has no share
        inverse = 1.0 / largest_share(classes, column)
    return classes.per_class(inverse, hidden=0.0)


def frequency_l_oracle(records: Records, record: int, column: str) -> float:
    share = records.largest_harmful_share(column, records.crowd(record))
    return 1.0 / share if share else float("inf")


FREQUENCY_L = Measure(
    name="frequency_l",
    title="frequency ℓ-diversity",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=inverse_share,
    oracle=frequency_l_oracle,
    fold="worst",
    monotone="rises",
    sentence="No sensitive value has a share above 1/ℓ in any class.",
    citation="Wong et al. 2006; Machanavajjhala et al. 2007",
    formula="ℓ = 1 / max over classes and values of q",
    use="To bound how sure anybody can be of a value: no value has a share above 1/ℓ.",
    elsewhere={"anjana, pycanon": "1/α of alpha_k_anonymity"},
    per_class=PerClass(Criterion.FREQUENCY),
)


def effective_values(classes: ClassTable, column: str) -> Property:
    return classes.per_class(-worst(classes, _negative_effective_values(classes, column), -np.inf), hidden=0.0)


def _negative_effective_values(classes: ClassTable, column: str) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        share = way.values.weight / way.values.size[way.values.class_of]
        yield way, -np.exp(-way.values.fold(np.add, share * np.log(share)))


def entropy_l_oracle(records: Records, record: int, column: str) -> float:
    found = []
    for some in records.ways(column, records.crowd(record)):
        shares = records.shares(column, some)
        found.append(float(np.exp(-sum(share * np.log(share) for share in shares if share > 0))))
    return min(found)


ENTROPY_L = Measure(
    name="entropy_l",
    title="entropy ℓ-diversity",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=effective_values,
    oracle=entropy_l_oracle,
    fold="worst",
    monotone="rises",
    sentence="The sensitive values of every class are as uncertain as ℓ equally likely ones.",
    citation="Machanavajjhala et al. 2007, entropy ℓ-diversity",
    formula="ℓ = exp( min over classes of  −Σ q·ln q )",
    use="A skewed sensitive column: counts frequent values less than distinct ℓ does.",
    elsewhere={
        "ARX": "Shannon-entropy-ℓ-diversity",
        "sdcMicro": "Entropy_Ldiversity",
        "pycanon": "entropy_l_diversity (cut to a whole number)",
    },
    per_class=PerClass(Criterion.ENTROPY),
)


BELOW_TIE = 1 - 1e-9  # shares of units have rounding errors: a tie must not count as less


def ranked(values: ClassValues) -> tuple[Floats, Floats]:
    """Return the counts of each class's values, the largest first, and the sum from each count to the last."""
    order = np.lexsort((-values.weight, values.class_of))
    counts = values.weight[order].astype(np.float64)
    before = np.cumsum(counts) - counts
    within = before - before[values.start[:-1]][values.class_of]
    return counts, values.size[values.class_of] - within


def recursive_l(classes: ClassTable, column: str, c: float) -> Property:
    return classes.per_class(-worst(classes, _negative_recursive_l(classes, column, c), -np.inf), hidden=0.0)


def _negative_recursive_l(classes: ClassTable, column: str, c: float) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        counts, rest = ranked(way.values)
        largest = counts[way.values.start[:-1]][way.values.class_of]
        yield way, -way.values.fold(np.add, (largest < c * rest * BELOW_TIE).astype(np.int64))


def recursive_l_oracle(records: Records, record: int, column: str, c: float) -> float:
    found = []
    for some in records.ways(column, records.crowd(record)):
        counts = sorted((float(share) for share in records.shares(column, some) if share), reverse=True)
        held = (l + 1 for l in range(len(counts)) if counts[0] < c * sum(counts[l:]) * BELOW_TIE)
        found.append(float(max(held, default=0)))
    return min(found)


RECURSIVE_L = Measure(
    name="recursive_l",
    title="recursive (c, ℓ)-diversity",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=recursive_l,
    oracle=recursive_l_oracle,
    fold="worst",
    monotone="rises",
    parameters={"c": 3.0},
    sentence="In every class the commonest sensitive value is rarer than c times the ℓ-th and rarer ones together.",
    citation="Machanavajjhala et al. 2007, recursive (c, ℓ)-diversity",
    formula="largest ℓ with  r₁ < c·(r_ℓ + … + r_m)  in every class,   r₁ ≥ r₂ ≥ … the counts of its values",
    use="The commonest value may be common, but not overwhelming; c says how much.",
    elsewhere={
        "ARX": "recursive-(c, ℓ)-diversity",
        "sdcMicro": "Recursive_Ldiversity",
        "pycanon": "recursive_c_l_diversity",
    },
    unit="count",
    per_class=PerClass(Criterion.RECURSIVE_L, parameter="c"),
)


def least_c(classes: ClassTable, column: str, l: float) -> Property:
    return classes.per_class(worst(classes, _least_c(classes, column, int(l)), 0.0), hidden=0.0)


def _least_c(classes: ClassTable, column: str, l: int) -> Iterator[tuple[Way, Floats]]:
    for way in ways(classes, column):
        (counts, rest), start = ranked(way.values), way.values.start
        enough = np.diff(start) > l - 1
        at = np.where(enough, start[:-1] + l - 1, 0)
        yield way, np.where(enough, counts[start[:-1]] / rest[at], np.inf)


def recursive_c_oracle(records: Records, record: int, column: str, l: float) -> float:
    found = []
    for some in records.ways(column, records.crowd(record)):
        counts = sorted((float(share) for share in records.shares(column, some) if share), reverse=True)
        rest = sum(counts[int(l) - 1 :])
        found.append(counts[0] / rest if rest else float("inf"))
    return max(found)


RECURSIVE_C = Measure(
    name="recursive_c",
    title="c of recursive (c, ℓ)-diversity",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=least_c,
    oracle=recursive_c_oracle,
    fold="worst",
    monotone="falls",
    parameters={"l": 2},
    sentence="Any c above this makes the table recursively (c, ℓ)-diverse.",
    citation="Machanavajjhala et al. 2007, recursive (c, ℓ)-diversity",
    formula="max over classes of  r₁ / (r_ℓ + … + r_m)   for a given ℓ",
    use="To know which c of recursive (c, ℓ)-diversity a table keeps.",
    elsewhere={"pycanon": "c of recursive_c_l_diversity (cut to a whole number)"},
    per_class=PerClass(Criterion.RECURSIVE_C, parameter="l"),
)


def diversity_or_one(classes: ClassTable, column: str) -> Property:
    """Return the number of values of each class, which is 1 if the class is exempt from ℓ."""
    held = alternatives(classes, column)
    return classes.per_class(np.where(held >= EXEMPT, 1.0, held), hidden=0.0)


def weighted_l_oracle(records: Records, record: int, column: str) -> float:
    held = distinct_l_oracle(records, record, column)
    return 1.0 if held >= EXEMPT else held


WEIGHTED_L = Measure(
    name="weighted_l",
    title="weighted ℓ",
    kind="privacy",
    direction="max",
    reads="sensitive",
    function=diversity_or_one,
    oracle=weighted_l_oracle,
    fold="mean",
    monotone="rises",
    bound="unsuppressed",
    sentence="How many different sensitive values an average record's class holds; suppressed records count as 0.",
    citation="Dewri et al., privacy versus data quality as multi-objective problems, problem 1 for ℓ-diversity",
    formula="1/N · sum over released records of the number of different values in the class",
    use="To compare releases with the same ℓ.",
    short="weighted ℓ",
    histogram=Form.MEAN_DIVERSITY,
    tallied=lambda cuts: cuts.mean,
)


def own_count(classes: ClassTable, column: str) -> Property:
    return classes.per_value(column, classes.values(column).held, hidden=0.0)


def sum_l_oracle(records: Records, record: int, column: str) -> float:
    values = records.values(column)
    same = records.crowd(record) & (values == values[record])
    return float(len(set(records.holders(column)[same].tolist())))


SUM_L = Measure(
    name="sum_l",
    title="sum of own-value counts",
    kind="privacy",
    direction="min",
    reads="sensitive",
    function=own_count,
    oracle=sum_l_oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    bound_direction="max",  # suppression lowers it, so there is no bound if it is minimised
    highest=lambda classes: float(classes.records) ** 2,
    sentence="How often each record's own sensitive value occurs in its class, added up.",
    citation="Dewri, Ray, Ray, Whitley 2010, property-based generalizations, S_ℓ",
    formula="sum over released records of the count of the record's own value in its class",
    use="Only to reproduce published figures.",
    scale="log",
    unit="count",
    walked=Walked(lambda nodes: nodes.own_sum),
)
