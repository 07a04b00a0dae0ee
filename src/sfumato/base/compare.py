"""Comparison of two records, such as stated and computed figures, up to the rounding of their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

CLOSE, LEAST = 1e-9, 1e-12  # relative and absolute tolerance, because sums have no fixed order
Unlike = tuple[str, object, object]


class _Absent:
    """An entry that a record lacks."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


def same(one: object, two: object, close: float = CLOSE, least: float = LEAST) -> bool:
    """Return whether two values are equal: whole numbers exactly, other numbers up to rounding.

    >>> same(5, 5.0), same(5, 6), same(72350.9, 72350.9000000001), same(0.1, 0.2), same(1, True)
    (True, False, True, False, False)
    """
    if not (isinstance(one, int | float) and isinstance(two, int | float)) or bool in (type(one), type(two)):
        return type(one) is type(two) and one == two
    if one == two or (float(one).is_integer() and float(two).is_integer()):
        return one == two
    return math.isclose(one, two, rel_tol=close, abs_tol=least)


def unlike(one: object, two: object, name: str = "", close: float = CLOSE, least: float = LEAST) -> Iterator[Unlike]:
    """Return the names and both values of the entries in which two records differ.

    >>> list(unlike({"a": [1, 2.0]}, {"a": [1, 2.5]})), list(unlike({"a": 1.0}, {"a": 1.0 + 1e-12}))
    ([('a.1', 2.0, 2.5)], [])
    """
    inner = f"{name}." if name else ""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for key in dict.fromkeys([*two, *one]):
            yield from unlike(one.get(key, ABSENT), two.get(key, ABSENT), f"{inner}{key}", close, least)
    elif isinstance(one, list | tuple) and isinstance(two, list | tuple) and len(one) == len(two):
        for place, (first, second) in enumerate(zip(one, two, strict=True)):
            yield from unlike(first, second, f"{inner}{place}", close, least)
    elif not same(one, two, close, least):
        yield name, one, two


def alike(one: object, two: object) -> bool:
    """Return whether two records are equal up to rounding."""
    return next(unlike(one, two), None) is None


def shown(value: object) -> str:
    """Return a value as a short text for a message."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:80]
