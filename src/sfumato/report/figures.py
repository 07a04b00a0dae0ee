"""How figures are written for people."""

from __future__ import annotations


def number(value: float | None) -> str:
    """A figure for people.

    >>> number(30162.0), number(0.41303627), number(0.0000123456), number(float("inf")), number(None)
    ('30,162', '0.4130', '1.23e-05', '∞', '–')
    """
    if value is None or value != value:
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) < 0.001:
        return f"{value:.3g}"
    return f"{value:,.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def number_or_infinity(value: float | None) -> str:
    """A figure that JSON has as null where it is infinite.

    >>> number_or_infinity(None), number_or_infinity(2.0)
    ('∞', '2')
    """
    return number(float("inf") if value is None else value)


def percent(share: float) -> str:
    """A share for people; what is not nothing never reads 0.

    >>> percent(0.29311), percent(0.00003), percent(0.0)
    ('29.3 %', '< 0.1 %', '0 %')
    """
    if share <= 0:
        return "0 %"
    return "< 0.1 %" if share < 0.001 else f"{share * 100:.1f} %"
