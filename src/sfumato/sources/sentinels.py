"""Values that may stand for "missing": codes apart from the rest of a column, a letter among numbers, known phrases.

They are named, never applied: only the publisher knows whether 9 means nine or no answer.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

# Text that nearly always means "missing"; a run file is written with those that occur.
NA_WORDS = ("?", "NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "-", ".", "#N/A", "missing", "unknown")
PHRASES = re.compile(
    r"(?i)not (in universe|applicable|stated|known|available|reported|asked|answered|recorded|specified|given)|"
    r"no (answer|data|response|information)|don'?t know|refused|n\.a\.?|\(?(blank|null|none given)\)?|-{2,}|\.{2,}|…|"
    r"undefined|unspecified|#null!?|keine angabe|k\.? ?a\.?|missing|unknown|n/?a"
)
AMONG_NUMBERS = re.compile(r"[^\W\d_]{1,4}|[^\w\s<>+]{1,4}")  # letters or marks, but not the "+" of an open end
HIGH = re.compile(r"[789]|9+[6-9]|7{2,}|8{2,}")
LOW = re.compile(r"-(?:[1-9]|6{2,}|7{2,}|8{2,}|9{2,})")
USUAL_LOW = re.compile(r"-(?:[789]|6{2,}|7{2,}|8{2,}|9{2,})")
MOST_WORDS = 3


def missing_candidates(
    numbers: Mapping[float, int],
    words: Sequence[str],
    others: int,
    spelled: Mapping[float, Sequence[str]] | None = None,
) -> tuple[str, ...]:
    """What may mean "missing" in a column: from its lowest and highest numbers with counts, and values that are none.

    `others` is how many different values are no numbers; `words` are some of them. `spelled` is how the cells write
    a number, where that differs: a code is missing where a cell is written as it is.

    >>> missing_candidates({-9: 40, 1: 90, 2: 80, 3: 70}, ["N"], 1)
    ('-9', 'N')
    >>> missing_candidates({-8: 40, 1: 90, 2: 80, 3: 70}, [], 0, {-8: ["-8.0"]})
    ('-8.0',)
    >>> missing_candidates({float(n): 5 for n in range(1, 10)}, [], 0)
    ()
    """
    codes = (*_low(numbers), *_high(numbers))
    result = [word for value in codes for word in (spelled or {}).get(value, (_text(value),))]
    if len(numbers) > 1 and others <= MOST_WORDS:
        result += [word for word in words if AMONG_NUMBERS.fullmatch(word)]
    result += [word for word in words if PHRASES.fullmatch(word)]
    return tuple(sorted({word for word in result if word not in NA_WORDS}))


def _high(numbers: Mapping[float, int]) -> list[float]:
    """Codes such as 9, 99 or 998 beyond the highest other number, several times further than numbers there are apart.

    A code that is more frequent than its neighbour needs less of a gap, one that is no row of equal digits more.
    """
    codes = [value for value in numbers if HIGH.fullmatch(_text(value))]
    rest = sorted(set(numbers) - set(codes) - {value for value in numbers if LOW.fullmatch(_text(value))})
    codes = sorted(value for value in codes if rest and value > rest[-1])
    for position, code in enumerate(codes):
        steps = 5 if len(set(_text(code))) > 1 else 2 if numbers[code] > numbers[rest[-1]] else 3
        if len(rest) > 1 and code - rest[-1] >= steps * _usual_gap(rest[-10:]):
            return codes[position:]
        rest.append(code)
    return []


def _low(numbers: Mapping[float, int]) -> list[float]:
    """Codes such as -9 or -1 below the lowest other number; a column with losses has negative numbers of its own."""
    codes = sorted((value for value in numbers if LOW.fullmatch(_text(value))), reverse=True)
    rest = sorted(set(numbers) - set(codes) - {value for value in numbers if HIGH.fullmatch(_text(value))})
    rest = rest or sorted(set(numbers) - set(codes))
    codes = [value for value in codes if rest and value < rest[0]]
    for position, code in enumerate(codes):
        usual = rest[0] >= 0 and USUAL_LOW.fullmatch(_text(code)) is not None
        steps = 2 if rest[0] >= 0 or numbers[code] > numbers[rest[0]] else 3
        if len(rest) > 1 and (usual or rest[0] - code >= steps * _usual_gap(rest[:10])):
            return codes[position:]
        rest.insert(0, code)
    return []


def _usual_gap(neighbours: Sequence[float]) -> float:
    """How far apart some numbers are: the middle one of their differences."""
    gaps = sorted(b - a for a, b in itertools.pairwise(neighbours))
    return gaps[len(gaps) // 2]


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
