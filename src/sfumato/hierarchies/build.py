"""Builders of hierarchies from the values of a column: intervals, quantiles, breaks, prefixes, dates, frequency."""

from __future__ import annotations

import datetime
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal
from functools import partial
from itertools import pairwise

from sfumato.errors import HierarchyError, counted, shortened
from sfumato.hierarchies.hierarchy import ROOT, Hierarchy, flat
from sfumato.hierarchies.labels import number, spanned

Labeller = Callable[[str], str]
DATE_LEVELS = ("month", "quarter", "year", "decade")


def equal_width(
    name: str,
    labels: Sequence[str],
    widths: Sequence[float] | None = None,
    origin: float = 0.0,
    decimal: str = ".",
    counts: Sequence[int] = (),
) -> Hierarchy:
    """Build intervals of equal width, where each level's width is a multiple of the one below.

    Without widths they are `default_widths` of the values and the records that have them.

    >>> equal_width("age", ["17", "18", "23"], [5, 10]).paths[0]
    ('17', '15-19', '10-19', '*')
    """
    values = _numeric(name, labels, decimal)
    steps = _nested(name, widths or default_widths(list(values.values()), counts))
    exact, start = _decimals(values, decimal), _exact(origin)
    whole = all(value == value.to_integral_value() for value in (*exact.values(), *steps, start))

    def labelled(width: Decimal, label: str) -> str:
        low = start + ((exact[label] - start) / width).to_integral_value(rounding=ROUND_FLOOR) * width
        return bounded(low, low + width, whole)

    return _assembled(name, _in_order(values), [partial(labelled, width) for width in steps])


def quantile(name: str, labels: Sequence[str], counts: Sequence[int], bins: int = 8, decimal: str = ".") -> Hierarchy:
    """Build groups of neighbouring values with about equally many records. Each level joins two groups.

    >>> quantile("x", ["1", "2", "3", "9"], [5, 5, 5, 5], bins=4).paths[3]
    ('9', '[3 .. 9]', '*')
    """
    values = _numeric(name, labels, decimal)
    if bins < 2:
        raise HierarchyError(f"{bins} bins for {name}", expected="at least 2 bins")
    weight = dict(zip(labels, counts, strict=True))
    ordered = _in_order(values)
    total, running = max(sum(counts), 1), 0
    bin_of: dict[str, int] = {}
    for label in ordered:  # a value falls where the middle of its records does
        bin_of[label] = min(int((running + weight[label] / 2) * bins / total), bins - 1)
        running += weight[label]

    def step(joined: int) -> Labeller:
        members: dict[int, list[str]] = {}
        for label in ordered:
            members.setdefault(bin_of[label] // joined, []).append(label)
        ends = {group: spanned(held[0], held[-1]) for group, held in members.items()}
        return lambda label: ends[bin_of[label] // joined]

    return _assembled(name, ordered, [step(1 << level) for level in range((bins - 1).bit_length())])


def breaks(name: str, labels: Sequence[str], levels: Sequence[Sequence[float]], decimal: str = ".") -> Hierarchy:
    """Build groups by fixed breaks: a value belongs to the group that starts at the last break not above it.

    >>> breaks("age", ["10", "30", "70"], [[18, 40, 65], [18]]).paths
    [('10', '<18', '<18', '*'), ('30', '18-39', '>=18', '*'), ('70', '>=65', '>=18', '*')]
    """
    values = _numeric(name, labels, decimal)
    sorted_levels = [sorted(set(level)) for level in levels]
    for fine, coarse in pairwise(sorted_levels):
        extra = [f"{point:g}" for point in coarse if point not in fine]
        if extra:
            raise HierarchyError(
                f"breaks of {name} do not nest: {shortened(extra)} is in a coarser level only",
                expected="each level's breaks among those of the level below",
            )
    whole = all(v == int(v) for v in (*values.values(), *(p for level in sorted_levels for p in level)))

    def labelled(points: Sequence[float], label: str) -> str:
        position = bisect_right(points, values[label])
        if position == 0:
            return f"<{_plain(points[0])}"
        if position == len(points):
            return f">={_plain(points[-1])}"
        return bounded(points[position - 1], points[position], whole)

    return _assembled(name, _in_order(values), [partial(labelled, level) for level in sorted_levels if level])


def ends(
    name: str,
    labels: Sequence[str],
    bottom: float | None = None,
    top: float | None = None,
    widths: Sequence[float] = (),
    decimal: str = ".",
) -> Hierarchy:
    """Build top and bottom coding: all values below `bottom` have one label, and all values from `top` on.

    Each of the `widths` adds a level of intervals between the two ends, counted from 0. The ends do not change.

    >>> ends("age", ["17", "31", "34", "86"], bottom=18, top=85, widths=[5]).paths
    [('17', '<18', '<18', '*'), ('31', '31', '30-34', '*'), ('34', '34', '30-34', '*'), ('86', '>=85', '>=85', '*')]
    """
    values = _numeric(name, labels, decimal)
    if bottom is None and top is None:
        raise HierarchyError(
            f"no end is given for {name}", expected="bottom, top or both", remedy="top = 85 puts 85 and above together"
        )
    if bottom is not None and top is not None and bottom >= top:
        raise HierarchyError(
            f"the bottom {_plain(bottom)} of {name} is not below the top {_plain(top)}", expected="bottom < top"
        )
    steps, exact = _nested(name, widths), _decimals(values, decimal)
    low, high = _exact("-inf" if bottom is None else bottom), _exact("inf" if top is None else top)
    whole = all(value == value.to_integral_value() for value in (*exact.values(), *steps, low, high))

    def labelled(width: Decimal | None, label: str) -> str:
        if exact[label] < low:
            return f"<{_plain(low)}"
        if exact[label] >= high:
            return f">={_plain(high)}"
        if width is None:
            return label
        start = (exact[label] / width).to_integral_value(rounding=ROUND_FLOOR) * width
        return bounded(max(start, low), min(start + width, high), whole)

    return _assembled(name, _in_order(values), [partial(labelled, width) for width in (None, *steps)])


def prefix(name: str, labels: Sequence[str], keep: Sequence[int] | None = None, mask: str = "*") -> Hierarchy:
    """Build a hierarchy of codes such as postcodes, where each level keeps fewer leading characters.

    >>> prefix("zip", ["47677", "47602"], keep=[3]).paths[0]
    ('47602', '476**', '*')
    """
    longest = max((len(label) for label in labels), default=0)
    kept = sorted(keep if keep is not None else range(1, longest), reverse=True)
    if kept and kept[-1] < 1:
        raise HierarchyError(
            f"{kept[-1]} characters of {name} cannot be kept", expected="at least 1", remedy="keep = [3, 2]"
        )

    def labelled(length: int, label: str) -> str:
        return label[:length] + mask * (len(label) - length)

    return _assembled(name, sorted(labels), [partial(labelled, length) for length in kept])


def dates(
    name: str, labels: Sequence[str], levels: Sequence[str] = DATE_LEVELS, pattern: str = "%Y-%m-%d"
) -> Hierarchy:
    """Build a hierarchy from days to months, quarters, years and decades.

    >>> dates("born", ["1987-05-03"]).paths[0]
    ('1987-05-03', '1987-05', '1987-Q2', '1987', '1980s', '*')
    """
    unknown = [level for level in levels if level not in DATE_LEVELS]
    if unknown:
        raise HierarchyError(f"unknown date levels: {shortened(unknown)}", expected=", ".join(DATE_LEVELS))
    days: dict[str, datetime.datetime] = {}
    wrong = []
    for label in labels:
        try:
            days[label] = datetime.datetime.strptime(label, pattern)
        except re.error:
            raise HierarchyError(
                f"{pattern!r} is no pattern for dates", expected="each part once", remedy='pattern = "%d.%m.%Y"'
            ) from None
        except ValueError:
            wrong.append(label)
    if wrong:
        raise HierarchyError(
            f"{counted(len(wrong), 'value')} of {name} cannot be read as a date: {shortened(wrong, 3)}",
            expected=f"dates written {pattern}",
            remedy='another format, such as pattern = "%d.%m.%Y", or a missing value declared in na',
        )
    written: dict[str, Callable[[datetime.datetime], str]] = {
        "month": lambda day: f"{day.year:04}-{day.month:02}",
        "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": lambda day: f"{day.year:04}",
        "decade": lambda day: f"{day.year // 10 * 10:04}s",
    }

    def labelled(level: str, label: str) -> str:
        return written[level](days[label])

    ordered = sorted(labels, key=lambda label: days[label])
    return _assembled(name, ordered, [partial(labelled, level) for level in DATE_LEVELS if level in levels])


def frequency(
    name: str,
    labels: Sequence[str],
    counts: Sequence[int],
    shares: Sequence[float] = (0.005, 0.02, 0.1),
    other: str = "other",
) -> Hierarchy:
    """Build a hierarchy where each level joins the values that are rarer than a share of the records.

    >>> frequency("job", ["clerk", "smith", "diver"], [90, 9, 1], [0.02, 0.1]).paths[2]
    ('diver', 'other <2%', 'other <10%', '*')
    """
    if not all(0 < limit < 1 for limit in shares):
        raise HierarchyError(
            f"shares {list(shares)} for {name}", expected="shares between 0 and 1", remedy="shares = [0.01, 0.1]"
        )
    total = max(sum(counts), 1)
    share = {label: count / total for label, count in zip(labels, counts, strict=True)}

    def step(limit: float) -> Labeller:
        together = f"{other} <{limit * 100:g}%"  # a different name at each level, because it covers other values
        if together in share:  # another name would reveal that the value occurs
            raise HierarchyError(
                f'"{together}" is a value of {name}', expected="another name for rare values", remedy='other = "rare"'
            )
        return lambda label: together if share[label] < limit else label

    ordered = sorted(labels, key=lambda label: (-share[label], label))
    return _assembled(name, ordered, [step(limit) for limit in sorted(shares)])


def default_widths(values: Sequence[float], counts: Sequence[int] = ()) -> list[float]:
    """Return a round width that makes about sixteen groups, and its doubles up to half the range.

    The lowest and the highest hundredth of the records do not count, so that widths reveal nothing about a few people.

    >>> default_widths([17, 90]), default_widths([3, 17, 90, 10**6], [1, 150, 150, 1])
    ([5, 10, 20, 40], [5, 10, 20, 40])
    """
    records = dict(zip(values, counts or [1] * len(values), strict=True))
    few = sum(records.values()) // 100
    extent = _without(few, records, reverse=True) - _without(few, records)
    if extent <= 0:
        return [1]
    power = 10.0 ** math.floor(math.log10(extent / 16))
    width = next(m * power for m in (1, 2, 5, 10) if m * power >= extent / 16 * 0.999)
    if sum(count for value, count in records.items() if value != int(value)) <= few:
        width = max(width, 1)  # whole numbers have no parts
    widths = []
    while width < extent:
        widths.append(int(width) if width == int(width) else width)
        width *= 2
    return widths or [width]


def _without(few: int, records: dict[float, int], *, reverse: bool = False) -> float:
    """Return the lowest value (the highest, if `reverse`) when so few records are left out."""
    for value in sorted(records, reverse=reverse):
        few -= records[value]
        if few < 0:
            return value
    raise HierarchyError("a column without records", expected="values to build from")


def _numeric(name: str, labels: Sequence[str], decimal: str) -> dict[str, float]:
    parsed = {label: number(label, decimal) for label in labels}
    wrong = [label for label, value in parsed.items() if value is None]
    if wrong or not labels:
        raise HierarchyError(
            f"{counted(len(wrong), 'value')} of {name} cannot be read as a number: {shortened(wrong, 3)}",
            expected="numbers",
            remedy='declare what means "missing" in na, set decimal = ",", or use another kind of hierarchy',
        )
    return {label: value for label, value in parsed.items() if value is not None}


def _nested(name: str, widths: Sequence[float]) -> list[Decimal]:
    """Return the widths of intervals as decimals. Each must be a multiple of the one before."""
    steps = [_exact(width) for width in widths]
    if not all(step.is_finite() and step > 0 for step in steps):
        raise HierarchyError(f"a width of {name} is not above 0", expected="widths above 0", remedy="widths = [5, 10]")
    for small, large in pairwise(steps):
        if large <= small or large % small != 0:
            raise HierarchyError(
                f"interval widths {small} and {large} of {name} do not nest",
                expected="each width a multiple of the one before",
                remedy=f"{small}, {small * 2}, {small * 4}",
            )
    return steps


def _decimals(labels: Iterable[str], decimal: str) -> dict[str, Decimal]:
    """Return labels as decimals, because 4821.7 / 0.1 is not whole in floating point."""
    return {label: _exact(label.replace(",", ".") if decimal == "," else label) for label in labels}


def _in_order(values: dict[str, float]) -> list[str]:
    return sorted(values, key=lambda label: (values[label], label))


def _exact(value: float | str) -> Decimal:
    """Return a number as it is written, without the noise of its binary form."""
    return Decimal(str(value).strip())


def bounded(low: float | Decimal, high: float | Decimal, whole: bool) -> str:
    """Return an interval as a label: closed for whole numbers, half-open for others."""
    if not whole:
        return f"[{_plain(low)}, {_plain(high)})"
    last = high - 1
    if low == last:
        return _plain(low)
    return f"[{_plain(low)}, {_plain(last)}]" if low < 0 else f"{_plain(low)}-{_plain(last)}"


def _plain(value: float | Decimal) -> str:
    return str(int(value)) if value == int(value) else f"{float(value):.12g}"


def _assembled(name: str, labels: Sequence[str], steps: Sequence[Labeller]) -> Hierarchy:
    """Make paths from labellers, without levels that change nothing."""
    columns: list[list[str]] = [list(labels)]
    for step in steps:
        column = [step(label) for label in labels]
        if column != columns[-1]:
            columns.append(column)
    columns.append([ROOT] * len(labels))
    return Hierarchy.from_paths(name, list(zip(*columns, strict=True))) if labels else flat(name, labels)
