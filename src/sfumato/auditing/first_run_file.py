"""A run file to start from: what was found out about a table, with a comment wherever something is to be decided."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sfumato.errors import counted, shortened
from sfumato.hierarchies.build import default_widths
from sfumato.runtime.toml import toml_key, toml_value
from sfumato.sources.known_names import spelled
from sfumato.sources.profile import ColumnProfile
from sfumato.sources.roles import Role
from sfumato.sources.source import Source
from sfumato.sources.suggest import Suggestion


def first_run_file(
    source: Source,
    columns: Sequence[tuple[ColumnProfile, Suggestion]],
    *,
    path: str,
    password_file: str | None,
    codebook: str | None = None,
    na: Sequence[str],
    candidates: Mapping[str, Sequence[str]],
    complete: int,
) -> str:
    """The text of a run file. A column that nothing is known about has no role, so nothing runs before it gets one."""
    undecided = sum(suggestion.role is None for _, suggestion in columns)
    lines = ["# A first run file. The roles are suggestions: check each line and correct it where needed."]
    if undecided:
        lines.append(
            f"# {counted(undecided, 'column')} {'has' if undecided == 1 else 'have'} no role yet: nothing runs until "
            "each has one. Remove the # and write a role."
        )
    lines += ["version = 1", *_data(source, path, password_file, codebook), *_missing(na, candidates)]
    rows = columns[0][0].rows
    left = f'"drop" would leave {complete:,} of {rows:,} rows'
    rule = "drop" if complete >= 0.8 * rows else "category"
    lines.append(f'missing = "{rule}"  # drop | category | wildcard; {left}')
    lines += ["", f"# Roles: {', '.join(Role)}.", "[columns]"]
    return "\n".join([*lines, *(_line(*described) for described in columns)]) + "\n"


def _data(source: Source, path: str, password_file: str | None, codebook: str | None) -> list[str]:
    """The [data] section up to what means missing: what it takes to read the table again, nothing left to detect."""
    lines = ["", "[data]", f"path = {toml_value(path)}"]
    asked = {"table": source.settings.table, "query": source.settings.query, "password_file": password_file}
    lines += [f"{key} = {toml_value(value)}" for key, value in asked.items() if value is not None]
    dialect = source.dialect
    if dialect is not None:
        lines.append(f"separator = {toml_value(dialect.separator)}")
        if source.settings.quote is not None:
            lines.append(f"quote = {toml_value(dialect.quote)}")
        if dialect.decimal == "," or source.settings.decimal is not None:
            lines.append(f'decimal = "{dialect.decimal}"')
        if dialect.encoding != "utf-8":
            lines.append(f'encoding = "{dialect.encoding}"  # detected; check that letters such as é and ß look right')
        if not dialect.header:
            lines.append("header = false")
    if source.settings.sheet is not None:
        lines.append(f"sheet = {toml_value(source.settings.sheet)}")
    if source.settings.header_row is not None:
        lines.append(f"header_row = {source.settings.header_row}")
    if codebook is not None:
        lines.append(f"codebook = {toml_value(codebook)}")
    declared = [n for n in source.names if (about := source.codebook.column(n)).missing or about.ranges]
    if declared:
        lines.append(f"# The codebook declares missing codes for {shortened(map(_shown, declared))}: they are applied.")
    if source.settings.names is not None or (dialect is not None and not dialect.header):
        lines.append(f"names = {toml_value(list(source.names))}  # change them to your own")
    return lines


def _missing(na: Sequence[str], candidates: Mapping[str, Sequence[str]]) -> list[str]:
    """What means missing, and what may: `na` holds for every column, so a code is never put there by itself."""
    lines = [f"na = {toml_value(list(na))}  # codes for missing values, in addition to empty cells"]
    if candidates:
        lines.append(
            "# These may also be codes for missing values; a value listed in na is missing in every column of "
            "the table:"
        )
    for word, names in candidates.items():
        lines.append(f"#   {toml_value(word)} in {shortened(map(_shown, names))}")
    return lines


def _line(column: ColumnProfile, suggestion: Suggestion) -> str:
    key = toml_key(column.name)
    label = f"{_shown(column.label)}: " if column.label else ""
    about = f"{label}{suggestion.reason}; {_seen(column)}"
    if suggestion.role is None:
        return f'# {key} = {{ role = "" }}  # {about}; as a quasi_identifier: hierarchy = {recipe(column)}'
    tree = f", hierarchy = {recipe(column)}" if suggestion.role is Role.QUASI_IDENTIFIER else ""
    return f'{key} = {{ role = "{suggestion.role}"{tree} }}  # {about}'


def _seen(column: ColumnProfile) -> str:
    missing = f", {column.missing:,} missing" if column.missing else ""
    return f"{counted(column.distinct, 'value')}{missing}"


def _shown(name: str) -> str:
    """A name in a comment: one line, whatever it holds."""
    return name if name.isprintable() else toml_value(name)


def recipe(column: ColumnProfile) -> str:
    """A first hierarchy for a column."""
    if column.kind == "date":
        return '{ build = "date" }'
    if re.search(r"\b(zip\w*|postal|postcode|plz)\b", spelled(column.name)):
        return '{ build = "prefix" }'
    if column.kind in ("whole", "number") and column.distinct > 20 and column.lowest is not None and column.typical:
        if (column.highest or 0.0) - column.lowest > 4 * (column.typical[1] - column.typical[0]):
            return '{ build = "quantile" }'  # a few extreme values would leave everybody else in one interval
        widths = default_widths([column.lowest, column.highest or column.lowest])
        return f'{{ build = "interval", widths = [{", ".join(f"{w:g}" for w in widths)}] }}'
    return '{ build = "frequency" }' if column.distinct > 20 else '{ build = "flat" }'
