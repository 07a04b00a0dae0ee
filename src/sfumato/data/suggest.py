"""Suggestion of a role for a column, with the reason. There is none where neither name nor values indicate a role.

The words, codes and values that indicate a role are in `known_columns.toml`. A suggestion is never applied
automatically. `other` is never suggested, because it releases a column that no figure counts, and only the publisher
can decide that.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sfumato.base.text import percent
from sfumato.data.profile import ColumnProfile
from sfumato.data.settings import Role

NEARLY_ALL = 0.95  # of the records have a value of their own
SINGLED_OUT = 0.05  # of the records found by an amount alone: then it is known, not only secret
MOST_CODES = 30
MOST_WORDS = 6  # of a label that names its column
# The reasons of entries whose suggestion depends on more than the name.
IDENTIFIER_NAME, MONEY = "its name says identifier", "money: confidential"
SUFFIX = re.compile(r"_(cat|decile|quintile|group|grp|code|cd|recode|rc|bin|band|std)$", re.IGNORECASE)
ALLOCATION = re.compile(r"F[A-Z]{2,8}\d?[PC]")


class Known(NamedTuple):
    """A pattern for names, codes or values, the role that follows (None: it could be more than one), and why."""

    role: Role | None
    pattern: re.Pattern[str]
    reason: str


def _known(entries: Sequence[Mapping[str, str | list[str]]], flags: re.RegexFlag = re.NOFLAG) -> tuple[Known, ...]:
    roles = (Role(str(entry["role"])) if "role" in entry else None for entry in entries)
    patterns = (re.compile("".join(entry["pattern"]), flags) for entry in entries)
    return tuple(map(Known, roles, patterns, (str(entry["reason"]) for entry in entries)))


KNOWN = tomllib.loads(Path(__file__).with_name("known_columns.toml").read_text("utf-8"))
NAMES = _known(KNOWN["names"])
CODES, VALUES = _known(KNOWN["codes"], re.IGNORECASE), _known(KNOWN["values"], re.IGNORECASE)


def spelled(name: str) -> str:
    """Return a column name as lower-case words.

    >>> spelled("EverToldYouHadAStroke"), spelled("marital-status"), spelled("ICD10Code")
    ('ever told you had a stroke', 'marital status', 'icd10 code')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return re.sub(r"[^0-9a-zà-ÿ]+", " ", apart.lower()).strip()


def code_of(name: str) -> Known | None:
    """Return the known role of a column with a code as its name, also with the suffix of a recode (`INDP_CAT`)."""
    for spelling in dict.fromkeys((name, SUFFIX.sub("", name))):
        for known in CODES:
            if known.pattern.fullmatch(spelling):
                return known
    return None


def is_allocation_flag(name: str, distinct: int) -> bool:
    """Return whether a column says which values of another one were filled in (`FAGEP` of `AGEP`)."""
    return distinct <= 3 and ALLOCATION.fullmatch(name) is not None


@dataclass(frozen=True)
class Suggestion:
    """A role and why; or no role, and what is to be decided."""

    role: Role | None
    reason: str

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
    few = column.kind == "text" and column.distinct <= MOST_CODES  # categories of a short list; one of them may be rare
    if known.role in (Role.SENSITIVE, Role.LABEL, Role.WEIGHT) and _alone(column) > SINGLED_OUT and not few:
        how = {"whole": "round or bands", "number": "round or bands"}.get(column.kind, 'round = "month" for a date')
        return Suggestion(
            known.role,
            f"{known.reason}; it singles out {_percent(column)} of the records by itself, so a release needs {how}",
        )
    return Suggestion(known.role, known.reason)


def _by_values(column: ColumnProfile) -> Suggestion | None:
    if column.kind == "date":
        return Suggestion(Role.QUASI_IDENTIFIER, "dates can identify people")
    if column.kind == "text":
        examples = [value for value in column.examples if value not in column.candidates]
        for known in VALUES:
            fitting = sum(known.pattern.fullmatch(value) is not None for value in examples)
            if len(examples) > 1 and fitting >= 0.75 * len(examples):
                return Suggestion(known.role, known.reason)
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
