"""A run file to start from: what was found out about a table, with a comment wherever something is to be decided."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.errors import counted, shortened
from sfumato.hierarchies.build import default_widths
from sfumato.runtime.toml import Noted, toml_text, toml_value
from sfumato.sources.known_names import spelled
from sfumato.sources.profile import ColumnProfile, MissingCost
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
    costs: Mapping[str, MissingCost],
    complete: int,
) -> str:
    """The text of a run file. A column that nothing is known about has no role, so nothing runs before it gets one."""
    undecided = sum(suggestion.role is None for _, suggestion in columns)
    head = ["A first run file. The roles are suggestions: check each line and correct it where needed."]
    if undecided:
        head.append(
            f"{counted(undecided, 'column')} {'has' if undecided == 1 else 'have'} no role yet: nothing runs until "
            "each has one. Remove the # and write a role."
        )
    rows = columns[0][0].rows
    rule = Noted(
        "category",
        f'category | drop | wildcard; "drop" would leave out {rows - complete:,} of {rows:,} rows',
        _candidates(candidates, costs),
    )
    declared = [n for n in source.names if (about := source.codebook.column(n)).missing or about.ranges]
    applied = f"The codebook declares missing codes for {shortened(map(_shown, declared))}: they are applied."
    na_words = Noted(list(na), "codes for missing values, in addition to empty cells", [applied] if declared else [])
    settings = {
        "version": 1,
        "data": _data(source, path, password_file, codebook) | {"na": na_words, "missing": rule},
        "columns": Noted(
            {column.name: _column(column, suggestion) for column, suggestion in columns},
            above=[f"Roles: {', '.join(Role)}."],
        ),
    }
    return toml_text(settings, head)


def _data(source: Source, path: str, password_file: str | None, codebook: str | None) -> dict[str, Any]:
    """The [data] section up to what means missing: what it takes to read the table again, nothing left to detect."""
    asked = {"path": path, "table": source.settings.table, "query": source.settings.query}
    asked |= {"password_file": password_file}
    settings: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    dialect = source.dialect
    if dialect is not None:
        settings["separator"] = dialect.separator
        if source.settings.quote is not None:
            settings["quote"] = dialect.quote
        if dialect.decimal == "," or source.settings.decimal is not None:
            settings["decimal"] = dialect.decimal
        if dialect.encoding != "utf-8":
            settings["encoding"] = Noted(dialect.encoding, "detected; check that letters such as é and ß look right")
        if not dialect.header:
            settings["header"] = False
    own = {"sheet": source.settings.sheet, "header_row": source.settings.header_row, "codebook": codebook}
    settings |= {key: value for key, value in own.items() if value is not None}
    if source.settings.names is not None or (dialect is not None and not dialect.header):
        settings["names"] = Noted(list(source.names), "change them to your own")
    return settings


def _candidates(candidates: Mapping[str, Sequence[str]], costs: Mapping[str, MissingCost]) -> list[str]:
    """What may mean missing: `na` holds for every column, so a code is never put there by itself."""
    if not candidates:
        return []
    said = "These may also be codes for missing values; a value listed in na is missing in every column of the table:"
    lines = [said]
    for word, names in candidates.items():
        lines.append(f"  {toml_value(word)} in {shortened(map(_shown, names))}")
        if word in costs:
            lines += [f"    {rule}: {says}" for rule, says in costs[word].sentences().items()]
    return lines


def _column(column: ColumnProfile, suggestion: Suggestion) -> Noted:
    label = f"{_shown(column.label)}: " if column.label else ""
    about = f"{label}{suggestion.reason}; {_seen(column)}"
    tree = recipe(column)
    if suggestion.role is None:
        about += f"; as a quasi_identifier: hierarchy = {toml_value(tree)}"
        return Noted({"role": ""}, about, active=False)
    own = {"hierarchy": tree} if suggestion.role is Role.QUASI_IDENTIFIER else {}
    return Noted({"role": str(suggestion.role)} | own, about)


def _seen(column: ColumnProfile) -> str:
    missing = f", {column.missing:,} missing" if column.missing else ""
    return f"{counted(column.distinct, 'value')}{missing}"


def _shown(name: str) -> str:
    """A name in a comment: one line, whatever it holds."""
    return name if name.isprintable() else toml_value(name)


def recipe(column: ColumnProfile) -> dict[str, Any]:
    """A first hierarchy for a column."""
    if column.kind == "date":
        return {"build": "date"}
    if re.search(r"\b(zip\w*|postal|postcode|plz)\b", spelled(column.name)):
        return {"build": "prefix"}
    if column.kind in ("whole", "number") and column.distinct > 20 and column.lowest is not None and column.typical:
        if (column.highest or 0.0) - column.lowest > 4 * (column.typical[1] - column.typical[0]):
            return {"build": "quantile"}  # a few extreme values would leave everybody else in one interval
        widths = default_widths([column.lowest, column.highest or column.lowest])
        return {"build": "interval", "widths": [int(width) if width == int(width) else width for width in widths]}
    return {"build": "frequency" if column.distinct > 20 else "flat"}
