"""Records in small classes: the share of uniques (classes below 2), and of records in classes below 3, 5 and 10.

>>> from sfumato.measures.example import six_rows
>>> {measure.name: round(measure.value(six_rows()), 4) for measure in MEASURES}
{'uniques': 0.1667, 'below_3': 0.5, 'below_5': 1.0, 'below_10': 1.0}
"""

from __future__ import annotations

from sfumato.measures.classes import ClassTable
from sfumato.measures.facts import Headline
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.property import Property


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
