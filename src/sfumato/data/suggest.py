"""Suggestion of a role for a column, with the reason. There is none where neither name nor values indicate a role.

A suggestion is never applied automatically. `other` is never suggested, because it releases a column that no figure
counts, and only the publisher can decide that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.base.text import percent
from sfumato.data.known_columns import IDENTIFIER_NAME, MONEY, NAMES, Known, code_of, is_allocation_flag, spelled
from sfumato.data.profile import ColumnProfile
from sfumato.data.repeating import Repeating
from sfumato.data.settings import Role

NEARLY_ALL = 0.95  # of the records have a value of their own
SINGLED_OUT = 0.05  # of the records found by an amount alone: then it is known, not only secret
MOST_CODES = 30
MOST_WORDS = 6  # of a label that names its column
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T]\d.*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([ T]\d.*)?"
    r"|\d{1,2}[- ]?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*[- ]?\d{2,4}",
    re.IGNORECASE,
)
VALUES: tuple[tuple[Role, re.Pattern[str], str], ...] = (
    (Role.IDENTIFIER, re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", re.IGNORECASE), "its values are e-mail addresses"),
    (Role.IDENTIFIER, re.compile(r"\d{1,3}(\.\d{1,3}){3}"), "its values are addresses of computers"),
    (Role.IDENTIFIER, re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE), "its values are keys"),
    (Role.QUASI_IDENTIFIER, DATE, "its values are dates, which are known to others too"),
    (
        Role.QUASI_IDENTIFIER,
        re.compile(r"(?i)(fe)?male|(wo)?man|girl|boy|männlich|weiblich|homme|femme|hombre|mujer|divers|non-?binary"),
        "its values are those of sex",
    ),
    (
        Role.QUASI_IDENTIFIER,
        re.compile(r"(?i).*\b(married|divorced|widow\w*|separated|single|unmarried|cohabit\w*)\b.*"),
        "its values are those of marital status",
    ),
    (
        Role.QUASI_IDENTIFIER,
        re.compile(r"(?i).*\b(white|black|asian|hispanic|latino|caucasian|african|indian|pacific|mixed|native)\b.*"),
        "its values are those of race or origin",
    ),
    (
        Role.QUASI_IDENTIFIER,
        re.compile(r"(?i).*(husband|wife|child|parent|spouse|relative|in-family|unmarried).*"),
        "its values are those of a household",
    ),
    (
        Role.QUASI_IDENTIFIER,
        re.compile(r"(?i).*(school|bachelor|master|doctor|college|degree|\d(st|nd|rd|th)\b|hs-grad|assoc|diploma).*"),
        "its values are those of education",
    ),
)


@dataclass(frozen=True)
class Suggestion:
    """A role and why; or no role, and what is to be decided."""

    role: Role | None
    reason: str

    @property
    def decided(self) -> bool:
        return self.role is not None

    def as_dict(self) -> dict[str, str | None]:
        return {"suggested_role": None if self.role is None else str(self.role), "reason": self.reason}


def suggest_all(columns: Sequence[ColumnProfile]) -> list[Suggestion]:
    """Return a suggestion for every column of a table. Of several weights only the first is suggested as one."""
    suggestions, weighted = [], False
    for column in columns:
        result = suggest(column)
        if result.role is Role.WEIGHT and weighted:
            result = Suggestion(Role.DROP, "its name says survey weight, and only one can be used")
        weighted = weighted or result.role is Role.WEIGHT
        suggestions.append(result)
    return suggestions


def with_holders(
    suggestions: Sequence[Suggestion], columns: Sequence[ColumnProfile], found: Sequence[Repeating]
) -> list[Suggestion]:
    """Return the suggestions with the first repeating number of persons as unit, and of households as household."""
    result = list(suggestions)
    places = {column.name: place for place, column in enumerate(columns)}
    for holder in (Role.UNIT, Role.HOUSEHOLD):
        first = next((each for each in found if each.holder == holder and each.column in places), None)
        if first is not None:
            result[places[first.column]] = Suggestion(holder, first.reason)
    return result


def suggest(column: ColumnProfile) -> Suggestion:
    """Return a role from the column's name and values, or none."""
    if column.present == 0:
        return Suggestion(Role.DROP, "it is empty")
    if column.distinct == 1 and not column.missing:
        return Suggestion(Role.DROP, "it has one value")
    if is_allocation_flag(column.name, column.distinct):
        return Suggestion(Role.DROP, "a flag for values that were filled in")
    return _by_name(column) or _by_values(column) or Suggestion(None, _open_question(column))


def _by_name(column: ColumnProfile) -> Suggestion | None:
    code = code_of(column.name)
    texts = [spelled(column.name)]
    if len(column.label.split()) <= MOST_WORDS:  # a long label mentions much that the column is not
        texts.append(spelled(column.label))
    by_text = (known for words in texts for known in NAMES if known.pattern.search(words))
    for known in (*([code] if code else []), *by_text):
        result = _fitting(known, column)
        if result is not None:
            return result
    return None


def _fitting(known: Known, column: ColumnProfile) -> Suggestion | None:
    """Return the suggestion by a known name, or None if the values of the column contradict it."""
    shared = column.distinct < column.present / 20
    if known.role is Role.IDENTIFIER and shared and (known.reason != IDENTIFIER_NAME or column.distinct <= MOST_CODES):
        return None  # a "name" that hundreds of records share identifies no person
    if known.role is Role.WEIGHT and (column.missing or column.kind not in ("whole", "number")):
        return Suggestion(Role.DROP, f"{known.reason}, but not every record has a number")
    if known.reason == MONEY and column.unique_share >= SINGLED_OUT:
        return Suggestion(
            Role.QUASI_IDENTIFIER, f"an amount that singles out {_percent(column)} of the records by itself"
        )
    if known.role in (Role.SENSITIVE, Role.LABEL, Role.WEIGHT) and _alone(column) > SINGLED_OUT and not _few(column):
        how = {"whole": "round or bands", "number": "round or bands"}.get(column.kind, 'round = "month" for a date')
        return Suggestion(
            known.role,
            f"{known.reason}; it singles out {_percent(column)} of the records by itself, so a release needs {how}",
        )
    return Suggestion(known.role, known.reason)


def _few(column: ColumnProfile) -> bool:
    """Return whether the values are the categories of a short list, one of which may be rare."""
    return column.kind == "text" and column.distinct <= MOST_CODES


def _by_values(column: ColumnProfile) -> Suggestion | None:
    if column.kind == "date":
        return Suggestion(Role.QUASI_IDENTIFIER, "dates can identify people")
    if column.kind == "text":
        examples = [value for value in column.examples if value not in column.candidates]
        for role, pattern, reason in VALUES:
            fitting = sum(pattern.fullmatch(value) is not None for value in examples)
            if len(examples) > 1 and fitting >= 0.75 * len(examples):
                return Suggestion(role, reason)
    if column.present <= 20 or column.distinct == 1:
        return None
    if column.distinct == column.present and column.kind != "number":
        return Suggestion(Role.IDENTIFIER, "every record has its own value")
    if column.unique_share >= NEARLY_ALL and column.kind == "text":
        return Suggestion(Role.IDENTIFIER, "nearly every record has its own value")
    return None


def _open_question(column: ColumnProfile) -> str:
    """Return the reason why a column has no suggestion, as far as its values show it."""
    if column.distinct == 1:
        return "a single value or none, so it marks some records; no hint what it means, please decide"
    if column.unique_share >= 0.5:
        return f"it singles out {_percent(column)} of the records by itself; no hint what it is, please decide"
    if column.kind in ("whole", "number") and column.distinct > MOST_CODES:
        return "many different numbers, which outsiders may also have; no hint what they mean, please decide"
    if column.kind == "whole":
        return "few whole numbers, perhaps codes; no hint what they mean, please decide"
    return "no hint found, please decide"


def _alone(column: ColumnProfile) -> float:
    """Return the share of all records that the column singles out, a single missing value included.

    The list of identifying columns has the same figure.
    """
    return (column.uniques + (column.missing == 1)) / max(column.rows, 1)


def _percent(column: ColumnProfile) -> str:
    return percent(_alone(column))
