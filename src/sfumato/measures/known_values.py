"""Values of a sensitive column that an attacker may not learn: those that are neither missing nor harmless.

A missing value is not a value, and a value that is declared harmless (such as "not applicable") reveals nothing. A
class without any other value is exempt. Shares are computed over all units, and over the units whose value is known,
and the worse of the two results counts: an attacker who knows that a value is recorded can exclude the missing ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from sfumato.base.arrays import Flags, Floats
from sfumato.measures.classes import EXEMPT, ClassTable, ClassValues
from sfumato.tables.domain import HARMFUL, HARMLESS, UNKNOWN


@dataclass(frozen=True, eq=False)
class Way:
    """One way of counting: the values of `some` classes and their reference distributions, by units and by rows."""

    values: ClassValues
    held: Floats
    weight: Floats
    some: Flags

    @property
    def share(self) -> Floats:
        """Return the share of units of each entry in its class."""
        return np.asarray(self.values.held / self.values.size[self.values.class_of])

    @property
    def harmful(self) -> Flags:
        """Return which entries have values that may not be learned."""
        return kinds_of(self.values, HARMFUL)


def kinds_of(values: ClassValues, kind: int) -> Flags:
    """Return which entries have values of a kind: harmful, harmless or missing."""
    return np.asarray(values.domain.harm[values.values] == kind)


def exempt(values: ClassValues) -> Flags:
    """Return the classes in which all known values are harmless, or no value is known."""
    return np.asarray(values.fold(np.logical_or, kinds_of(values, HARMFUL)) == 0)


def ways(classes: ClassTable, column: str) -> Iterator[Way]:
    """Return the counts over all units and, if values are missing, over units and classes with a known value."""
    values, (held, weight) = classes.values(column), classes.references(column)
    yield Way(values, held, weight, np.ones(len(values.start) - 1, dtype=np.bool_))
    known = values.domain.harm != UNKNOWN
    there = known[values.values]
    if there.all():
        return
    number = np.bincount(values.class_of[there], minlength=len(values.start) - 1)
    some = number > 0
    start = np.concatenate([[0], np.cumsum(number[some])]).astype(np.int64)
    units = classes.table.units_for(column)
    if units is None:
        missing = np.bincount(values.class_of[~there], weights=values.held[~there], minlength=len(some))
        size = values.size - missing.astype(np.int64)
        part = held * known
        held = weight = np.asarray(part / max(part.sum(), 1e-300))
        counts, weights = values.held[there], values.weight[there]
    else:
        entries = units.values[column]
        kept = known[entries.values]
        parts = (entries.tuple_of[kept], entries.unit[kept], entries.values[kept], entries.rows[kept])
        bare = replace(units, values={column: type(entries)(*parts)})
        width = len(values.domain.labels)
        keys = values.class_of[there] * width + values.values[there]
        counts, weights, size = bare.with_values(column, classes.index, keys, len(some), width, classes.pairs)
        released = None if classes.reference == "input" else classes.kept[classes.index]
        held, weight = bare.distribution(column, width, released)
    inner = ClassValues(
        values.domain,
        start,
        values.values[there],
        values.counts[there],
        values.own[there],
        counts,
        weights,
        size[some],
    )
    yield Way(inner, held, weight, some)


def worst(classes: ClassTable, column: str, value: Callable[[Way], Floats], best: float = 0.0) -> Floats:
    """Return the largest value of each class over the ways of counting, and `best` for a class without one."""
    result = np.full(len(classes.rows), best)
    for way in ways(classes, column):
        result[way.some] = np.maximum(result[way.some], value(way))
    return result


def alternatives(classes: ClassTable, column: str) -> Floats:
    """Count the different values of each class, with all harmless values as one. An exempt class has EXEMPT.

    The count is at most the number of units, and 1 if all units have the same value that may not be learned.
    """
    values = classes.values(column)
    harmful = values.fold(np.add, kinds_of(values, HARMFUL).astype(np.int64))
    harmless = values.fold(np.logical_or, kinds_of(values, HARMLESS))
    number = np.minimum(harmful + harmless, values.size)
    for way in ways(classes, column):
        certain = way.values.fold(np.maximum, np.where(way.harmful, way.values.held, 0)) >= way.values.size
        number[way.some] = np.where(certain, np.minimum(number[way.some], 1), number[way.some])
    return np.where(harmful > 0, number, float(EXEMPT))


def largest_share(classes: ClassTable, column: str) -> Floats:
    """Return the largest share of a value that may not be learned, which is 0 in an exempt class."""
    return worst(classes, column, lambda way: way.values.fold(np.maximum, np.where(way.harmful, way.share, 0.0)))
