"""The mapping of a microfile in SQL: who meets conditions, and each attribute as an expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sfumato.errors import StudyError, counted, nearest, shortened
from sfumato.sources.cells import cleaned, numeric
from sfumato.sources.engines.engine import quoted
from sfumato.sources.source import Source
from sfumato.study.file_mapping import Attribute, FileMapping

Conditions = Mapping[str, str | tuple[str, ...]]  # column → patterns; all columns must match, each any of its own


def matches(source: Source, column: str, patterns: str | Iterable[str]) -> str:
    """SQL that is true where a cell is named by any of the patterns, and never NULL."""
    cell = cleaned(source, source.column(column))
    number = numeric(source, cell)
    listed = [patterns] if isinstance(patterns, str) else list(patterns)
    return "(" + " OR ".join(_pattern(cell, number, pattern) for pattern in listed) + ")"


def _pattern(cell: str, number: str, pattern: str) -> str:
    if pattern == "":
        return f"{cell} IS NULL"
    if pattern.endswith("*"):
        return f"coalesce({cell} LIKE {quoted(_literal(pattern[:-1]) + '%')} ESCAPE '!', FALSE)"
    low, dots, high = pattern.partition("..")
    if dots:
        bounds = [f"{number} {sign} {_number(end)}" for sign, end in ((">=", low), ("<=", high)) if end]
        return f"coalesce({' AND '.join(bounds) or f'{cell} IS NOT NULL'}, FALSE)"
    try:
        return f"coalesce({number} = {_number(pattern)}, FALSE)"
    except StudyError:
        return f"coalesce({cell} = {quoted(pattern)}, FALSE)"


def _literal(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _number(text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        raise StudyError(
            f'the pattern "{text}" has no number', expected='a range such as "2..7", or "55*", or a value'
        ) from None


def meets(source: Source, conditions: Iterable[Conditions]) -> str:
    """SQL that is true for rows that meet all parts of any of the conditions."""
    parts = [" AND ".join(matches(source, name, p) for name, p in one.items()) or "TRUE" for one in conditions]
    return "(" + " OR ".join(f"({part})" for part in parts) + ")" if parts else "FALSE"


def expression(source: Source, attribute: Attribute) -> str:
    """SQL for the value of an attribute; NULL where nothing gives one."""
    cell = cleaned(source, source.column(attribute.column))
    number = numeric(source, cell)
    branches = [f"WHEN {meets(source, [case.when])} THEN {case.value!r}" for case in attribute.cases]
    if attribute.blank is not None:
        branches.append(f"WHEN {cell} IS NULL THEN {attribute.blank!r}")
    branches += [f"WHEN {_pattern(cell, number, pattern)} THEN {v!r}" for pattern, v in attribute.recode.items()]
    if attribute.recode:
        return f"CASE {' '.join(branches)} ELSE NULL END"
    for factor in attribute.multiply:
        by = numeric(source, cleaned(source, source.column(factor))) if isinstance(factor, str) else repr(factor)
        number = f"{number} * {by}"
    if attribute.divide != 1:
        number = f"{number} / {attribute.divide!r}"
    if attribute.rounded:  # halves to the even number, in words that every engine knows
        half = f"2 * floor((floor({number}) + 1) / 2)"
        number = f"CASE WHEN {number} - floor({number}) = 0.5 THEN {half} ELSE floor({number} + 0.5) END"
    return f"CASE {' '.join(branches)} ELSE {number} END" if branches else number


def check_columns(source: Source, mapping: FileMapping) -> None:
    """Every column that the mapping reads is in the file."""
    wanted: dict[str, str] = {}
    for name, attribute in mapping.attributes.items():
        wanted.update(dict.fromkeys(attribute.columns, f"the attribute {name}"))
    wanted.update(dict.fromkeys(mapping.area, "the area"))
    for conditions in (*mapping.leave_out, *mapping.only):
        wanted.update(dict.fromkeys(conditions, "a condition"))
    absent = [column for column in wanted if column not in source.names]
    if absent:
        listed = shortened(f"{column} (for {wanted[column]})" for column in absent)
        raise StudyError(
            f"{source.title} lacks {counted(len(absent), 'column')} that the mapping reads: {listed}",
            expected="every attribute in both files",
            remedy=nearest(absent[0], source.names),
        )
