"""Figures as text for readers."""

from __future__ import annotations

import math


def number(value: float | None) -> str:
    """Return a figure for readers: without decimals where it is whole or large, else with about four digits.

    >>> number(30162.0), number(1396.42), number(41.4286), number(4.142857), number(0.41303627), number(0.0000123456)
    ('30,162', '1,396', '41.43', '4.143', '0.4130', '1.23e-05')
    >>> number(float("inf")), number(None)
    ('∞', '–')
    """
    if value is None or value != value:
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if value == int(value) or size >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size < 0.001 else f"{value:.{2 if size >= 10 else 3 if size >= 1 else 4}f}"


def number_or_infinity(value: float | None) -> str:
    """Return a figure from JSON, where null means infinite.

    >>> number_or_infinity(None), number_or_infinity(2.0)
    ('∞', '2')
    """
    return number(float("inf") if value is None else value)


def percent(share: float, other: float | None = None) -> str:
    """Return a share in per cent. Only 0 reads 0 %, and only 1 reads 100 %.

    With another share, it has as many digits as distinguish the two.

    >>> percent(0.29311), percent(0.00003), percent(0.0), percent(0.9996), percent(1.0)
    ('29.3 %', '< 0.1 %', '0 %', '> 99.9 %', '100.0 %')
    >>> percent(0.25, 0.2), percent(0.25004, 0.25), percent(0.00004, 0.0)
    ('25.0 %', '25.004 %', '0.004 %')
    """
    if share <= 1e-9:
        return "0 %"
    if other is None or abs(share - other) < 1e-9:
        if 0.9995 <= share < 1 - 1e-9:
            return "> 99.9 %"
        return "< 0.1 %" if share < 0.001 else f"{share * 100:.1f} %"
    shown = next((d for d in (1, 2, 3, 4) if f"{share * 100:.{d}f}" != f"{other * 100:.{d}f}"), 4)
    return f"{share * 100:.{shown}f} %"


def percent_down(share: float) -> str:
    """Return a share in per cent, never rounded up to all.

    >>> percent_down(1.0), percent_down(0.99999), percent_down(0.1416)
    ('100 %', '99.9 %', '14.1 %')
    """
    return f"{math.floor(share * 1000 + 1e-9) / 10:g} %"
