"""What each quasi-identifier adds to the risk: the figures with the column, and with it left out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sfumato.measures.classes import ClassTable, classify
from sfumato.plans.recoding import without


@dataclass(frozen=True)
class Contribution:
    """How much of the risk goes away when one column is left out."""

    column: str
    uniques: float
    marketer_risk: float
    k_without: int


def contributions(classes: ClassTable) -> list[Contribution]:
    """For each column, how far the shares of uniques and of right matches fall when it is hidden.

    >>> from sfumato.measures.example import six_rows
    >>> [(c.column, round(c.uniques, 3), round(c.marketer_risk, 3), c.k_without) for c in contributions(six_rows())]
    [('age', 0.167, 0.167, 3), ('zip', 0.167, 0.167, 2)]
    """
    # Only released records: one that is suppressed stays so, whatever is hidden.
    kept = classes.kept[classes.index]
    units = classes.table.units
    table = replace(
        classes.table,
        codes=classes.table.codes[:, kept],
        counts=classes.table.counts[kept],
        population=None,
        units=None if units is None else units.within(kept),
        households=None,
        household_of=None,
    )
    persons = classes.table.persons
    uniques, matches = _risks(classify(table, classes.recoding), persons)
    listed = []
    for position, column in enumerate(table.columns):
        rest = classify(table, without(classes.recoding, position))
        uniques_left, matches_left = _risks(rest, persons)
        listed.append(Contribution(column, uniques - uniques_left, matches - matches_left, int(rest.size.min())))
    return listed


def _risks(classes: ClassTable, persons: int) -> tuple[float, float]:
    """The share of unique persons and of right matches, within the file."""
    unique, matched = (
        classes.per_class(values, hidden=0.0).in_units("min").total()
        for values in (classes.size == 1, 1.0 / classes.size)
    )
    return unique / persons, matched / persons
