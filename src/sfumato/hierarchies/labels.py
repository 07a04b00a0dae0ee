"""Parsing of numbers and intervals in labels, in the notations of people and tools."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

NUMBER = r"[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][-+]?\d+)?"
BRACKETED = re.compile(rf"^([\[\](])\s*({NUMBER})\s*(?:[;–]|,\s|,(?=\S)|\.\.|-)\s*({NUMBER})\s*([\[\])])$")
BARE = re.compile(rf"^({NUMBER})\s*(?:-|–|\.\.|to)\s*({NUMBER})$")
BOUND = re.compile(rf"^(<=|>=|<|>|≤|≥)\s*({NUMBER})$")
OPEN_ENDED = re.compile(rf"^({NUMBER})\s*\+$")
SPANNED = re.compile(r"^\[\S.* \.\. .*\S\]$")
LISTED = re.compile(r"^\{\S.* \| .*\S\}$")


@dataclass(frozen=True)
class Interval:
    """A range of numbers; an end may be open, or infinite."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def holds(self, value: float) -> bool:
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below


def spanned(first: str, last: str) -> str:
    """Return the label of all values from the first to the last that occur.

    >>> spanned("3", "29"), spanned("7", "7")
    ('[3 .. 29]', '7')
    """
    return first if first == last else f"[{first} .. {last}]"


def listed(values: Sequence[str]) -> str:
    """Return the label of some values that occur.

    >>> listed(["clerk", "cook"])
    '{clerk | cook}'
    """
    return "{" + " | ".join(values) + "}"


def from_values(label: str) -> bool:
    """Return whether a label is made of values in the data, as a span or list. A release renames such groups.

    >>> [from_values(label) for label in ("[3 .. 29]", "{clerk | cook}", "[20, 30)", "20-29", "office")]
    [True, True, False, False, False]
    """
    return bool(SPANNED.match(label) or LISTED.match(label))


def roundest(above: Decimal, upto: Decimal) -> Decimal:
    """Return the roundest number above one number and not above another: a multiple of …, 10, 5, 2, 1, 0.5, …

    >>> [str(roundest(Decimal(a), Decimal(b))) for a, b in (("56", "57"), ("56", "64"), ("199", "200.5"), ("2", "7"))]
    ['57', '60', '200', '5']
    """
    least = upto.as_tuple().exponent
    for exponent in range(max(above.adjusted(), upto.adjusted()) + 1, (least if isinstance(least, int) else 0) - 1, -1):
        for step in (Decimal(times).scaleb(exponent) for times in (5, 2, 1)):
            rounded = (upto / step).to_integral_value(rounding=ROUND_FLOOR) * step
            if above < rounded <= upto:
                return Decimal(format(rounded, "f"))
    return upto


def number(text: str, decimal: str = ".") -> float | None:
    """Return the number a text is, or None.

    >>> number("3,5", decimal=","), number("x")
    (3.5, None)
    """
    try:
        value = float(text.replace(",", ".") if decimal == "," else text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def numbers(labels: Sequence[str], decimal: str = ".") -> list[float] | None:
    """Return all labels as numbers, or None if one of them is not."""
    values = [number(label, decimal) for label in labels]
    return None if not values or None in values else [value for value in values if value is not None]


def interval(text: str, decimal: str = ".") -> Interval | None:
    """Return the interval that a label means, or None.

    >>> interval("[20, 30["), interval(">=65").low, interval("north")
    (Interval(low=20.0, high=30.0, low_open=False, high_open=True), 65.0, None)
    """
    if match := BRACKETED.match(text):
        left, low, high, right = match.groups()
        return _made(low, high, decimal, left in "](", right in ")[")
    if match := BARE.match(text):
        return _made(match[1], match[2], decimal)
    if match := OPEN_ENDED.match(text):
        return _made(match[1], "inf", decimal)
    if match := BOUND.match(text):
        sign, end = match.groups()
        if sign in ("<", "<=", "≤"):
            return _made("-inf", end, decimal, high_open=sign == "<")
        return _made(end, "inf", decimal, low_open=sign == ">")
    return None


def _made(low: str, high: str, decimal: str, low_open: bool = False, high_open: bool = False) -> Interval | None:
    if decimal != "," and "," in low + high:
        return None
    first, last = (float(end.replace(",", ".")) for end in (low, high))
    return Interval(first, last, low_open, high_open) if first <= last else None
