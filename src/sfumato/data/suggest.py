"""Suggest a role for a column, with the reason. A suggestion is never applied by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sfumato.data.profile import ColumnProfile
from sfumato.data.roles import Role

NAMES: tuple[tuple[Role, str, str], ...] = (
    (
        Role.WEIGHT,
        r"(sampling|survey|sample|final|person|household|instance|design|hh)s? ?(weights?|wgts?)|fnlwgt|pwgtp",
        "its name says survey weight",
    ),
    (
        Role.IDENTIFIER,
        r"\b(id|ids|hid|uid|uuid|ssn|seqn|serialno|serial|passport|email|e mail|phone|telephone number|address|iban|"
        r"surname|firstname|lastname|(first|last|full) ?name|name|account|licen[cs]e|record number|patient number)\b",
        "its name says identifier",
    ),
    (
        Role.SENSITIVE,
        r"\b(income|salary|wage|earnings|disease|diagnos\w*|illness|hiv|aids|cancer|diabetes|depress\w*|suicid\w*|drugs?|"
        r"marijuana|cocaine|heroin|methamphetamine|alcohol\w*|debt|savings|expend\w*|wealth|crime|convict\w*|abortion|"
        r"sexual\w*|orientation|political\w*|union|treatment|medication|capital|credit amount|amount)\b",
        "people keep it to themselves",
    ),
    (
        Role.QUASI_IDENTIFIER,
        r"\b(age|born|birth\w*|dob|sex|gender|race\w*|ethnic\w*|hispanic|etni|marital|marstat|civil|hhcivil|marri\w*|"
        r"zip\w*|postal|postcode|plz|city|town|village|county|region|state|province|country|nation\w*|citizen\w*|urbrur|"
        r"urban|rural|education\w*|educ|edu|schooling|degree|occupation\w*|occucode|job|profession|workclass|industry|"
        r"religion|language|relat\w*|household size|family ?size|family|children|military|veteran|armed|disab\w*|"
        r"height|municipality|district|area|puma|socprof)\b",
        "outsiders often know it",
    ),
)


@dataclass(frozen=True)
class Suggestion:
    """A role and why."""

    role: Role
    reason: str


def suggest(column: ColumnProfile) -> Suggestion:
    """A role from the column's name and values."""
    if column.present == 0:
        return Suggestion(Role.DROP, "it is empty")
    if column.distinct == 1:
        return Suggestion(Role.DROP, "it has one value")
    words = spelled(column.name)
    for role, pattern, reason in NAMES:
        if re.search(pattern, words):
            if role is Role.IDENTIFIER and column.distinct < column.present / 20:
                continue  # a "name" that hundreds share names nobody
            if role is Role.WEIGHT and (column.missing or column.kind not in ("whole", "number")):
                return Suggestion(Role.DROP, f"{reason}, but not every record has a number")
            if role is Role.QUASI_IDENTIFIER and column.missing > column.rows / 2:
                return Suggestion(Role.OTHER, f"{reason}, but most are missing; check")
            return Suggestion(role, reason)
    if column.distinct == column.present and column.present > 20 and column.kind != "number":
        return Suggestion(Role.IDENTIFIER, "every record has its own value")
    if column.kind == "date":
        return Suggestion(Role.QUASI_IDENTIFIER, "dates single people out")
    if column.kind in ("number", "whole") and column.distinct > 100:
        return Suggestion(Role.OTHER, "many numbers; check")
    return Suggestion(Role.OTHER, "nothing says more; check")


def spelled(name: str) -> str:
    """A column name as lower-case words.

    >>> spelled("AgeInYearsAtScreening"), spelled("marital-status")
    ('age in years at screening', 'marital status')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return re.sub(r"[^0-9a-zà-ÿ]+", " ", apart.lower()).strip()
