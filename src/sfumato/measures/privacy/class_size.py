"""Measures of class sizes: k-anonymity, the mean and the sum of class sizes, and the share of records in small classes.

k-anonymity is the size of the smallest equivalence class.

>>> from sfumato.measures.oracle import six_rows
>>> K.value(six_rows()), sorted(K.property(six_rows()).records().tolist())
(1.0, [1.0, 2.0, 2.0, 3.0, 3.0, 3.0])

Weighted k is the mean class size of a record.

>>> from sfumato.measures.oracle import six_rows
>>> round(WEIGHTED_K.value(six_rows()), 4)  # (3·3 + 1·1 + 2·2) / 6
2.3333

S_k is the sum of the class sizes of all records.

>>> from sfumato.measures.oracle import six_rows
>>> SUM_K.value(six_rows())  # 3 + 3 + 3 + 1 + 2 + 2
14.0

Four shares of records are in small classes: uniques (classes below 2), and classes below 3, 5 and 10.

>>> from sfumato.measures.oracle import six_rows
>>> {measure.name: round(measure.value(six_rows()), 4) for measure in MEASURES}
{'uniques': 0.1667, 'below_3': 0.5, 'below_5': 1.0, 'below_10': 1.0}
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.criteria import Criterion
from sfumato.measures.measure import Form, Headline, Measure, PerClass, Walked
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


def size(classes: ClassTable) -> Property:
    return classes.per_class(classes.size, hidden=0.0)


def k_oracle(records: Records, record: int) -> float:
    return float(records.people(records.crowd(record)))


K = Measure(
    name="k",
    title="k-anonymity",
    kind="privacy",
    direction="max",
    reads="sizes",
    function=size,
    oracle=k_oracle,
    fold="worst",
    monotone="rises",
    bound="own_budget",
    highest=lambda classes: float(classes.records),
    sentence="Every released record has the same quasi-identifiers as at least k − 1 others.",
    citation="Sweeney 2002, k-anonymity: a model for protecting privacy",
    formula="k = min over classes of n",
    use="Always. It answers the first question of every policy: how many records look alike, at least.",
    elsewhere={
        "ARX": "k-anonymity",
        "sdcMicro": 'kAnon, print(sdc, "kAnon")',
        "anjana, pycanon": "k_anonymity",
        "µ-Argus": "threshold of a combination",
    },
    short="k",
    scale="log",
    unit="count",
    headline=Headline(0, "smallest class (k)"),
    usual=True,
    histogram=Form.SIZE,
    per_class=PerClass(Criterion.SIZE),
    tallied=lambda cuts: cuts.least_size,
)


WEIGHTED_K = Measure(
    name="weighted_k",
    title="weighted k",
    kind="privacy",
    direction="max",
    reads="sizes",
    function=size,
    oracle=k_oracle,
    fold="mean",
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: float(classes.records),
    sentence="The mean class size over all records; suppressed records count as 0.",
    citation="Dewri et al., privacy versus data quality as multi-objective problems, problem 1",
    formula="1/N · sum over released records of n",
    use="To compare releases with the same k: how large the class of an average record is.",
    short="weighted k",
    scale="log",
    histogram=Form.MEAN_SIZE,
    walked=Walked(lambda nodes: nodes.size_sum / nodes.table.persons),
    tallied=lambda cuts: cuts.mean,
)


SUM_K = Measure(
    name="sum_k",
    title="sum of class sizes",
    kind="privacy",
    direction="max",
    reads="sizes",
    function=size,
    oracle=k_oracle,
    fold="sum",
    monotone="rises",
    bound="unsuppressed",
    highest=lambda classes: float(classes.records) ** 2,
    sentence="The class sizes of all records added up; suppressed records count as 0.",
    citation="Dewri, Ray, Ray, Whitley 2010, property-based generalizations, S_k",
    formula="sum over released records of n  =  N · weighted k",
    use="Only to reproduce published figures; weighted k says the same.",
    scale="log",
    unit="count",
    histogram=Form.MEAN_SIZE,
    walked=Walked(lambda nodes: nodes.size_sum),
)


def below(
    name: str,
    title: str,
    k: int,
    *,
    aliases: tuple[str, ...] = (),
    headline: Headline | None = None,
    usual: bool = False,
) -> Measure:
    def small(classes: ClassTable) -> Property:
        return classes.per_class(classes.size < k, hidden=0.0)

    def oracle(records: Records, record: int) -> float:
        return float(records.people(records.crowd(record)) < k)

    return Measure(
        name=name,
        title=title,
        kind="privacy",
        direction="min",
        reads="sizes",
        function=small,
        oracle=oracle,
        fold="mean",
        monotone="falls",
        highest=lambda classes: 1.0,
        sentence="The share of records that "
        + (
            "are unique on the quasi-identifiers."
            if k == 2
            else f"share their quasi-identifiers with fewer than {k - 1} others."
        ),
        citation="the small-class counts of sdcMicro and of disclosure reviews",
        formula=f"records in classes with n < {k}, divided by N",
        use="To see how many records are behind a low k: one unique record and a thousand have the same k.",
        elsewhere={"sdcMicro": f"observations violating {k}-anonymity"},
        unit="share",
        aliases=aliases,
        headline=headline,
        usual=usual,
    )


MEASURES = (
    below(
        "uniques",
        "unique records, share",
        2,
        aliases=("below_2",),
        headline=Headline(1, "of records are unique", warns=True),
        usual=True,
    ),
    below("below_3", "records below k = 3, share", 3),
    below("below_5", "records below k = 5, share", 5, headline=Headline(2, "are in classes below 5", warns=True)),
    below("below_10", "records below k = 10, share", 10),
)
