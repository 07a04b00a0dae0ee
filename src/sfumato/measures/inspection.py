"""Look at a table nobody has declared anything about yet, and write a run file to start from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.data.compress import Use, compress
from sfumato.data.engine import open_engine
from sfumato.data.hierarchies.build import default_widths
from sfumato.data.profile import ColumnProfile, complete_rows, profile
from sfumato.data.roles import Role
from sfumato.data.settings import DataSettings, EngineOptions
from sfumato.data.source import Source, open_source
from sfumato.data.suggest import Suggestion, spelled, suggest
from sfumato.data.toml import toml_comment, toml_key, toml_value
from sfumato.measures.singling_out import MOST_COLUMNS, Combination, combinations_that_single_out


@dataclass(frozen=True)
class Inspection:
    """What a look at a table showed."""

    source: Source
    columns: tuple[ColumnProfile, ...]
    suggestions: tuple[Suggestion, ...]
    combinations: tuple[Combination, ...]
    complete: int

    @property
    def rows(self) -> int:
        return self.columns[0].rows

    def as_dict(self) -> dict[str, Any]:
        described = zip(self.columns, self.suggestions, strict=True)
        return {
            "rows": self.rows,
            "columns": {
                column.name: column.as_dict() | {"suggested_role": str(found.role), "reason": found.reason}
                for column, found in described
            },
            "combinations": [{"columns": list(c.columns), "unique": c.unique} for c in self.combinations],
        }

    def run_file(self, path: str, password_file: str | None = None) -> str:
        """A run file to start from; `path` is how it calls the table, `password_file` the password of a database."""
        return _run_file(self, path, password_file)


def inspect(path: str, options: EngineOptions | None = None, **settings: Any) -> Inspection:
    """Profile a table, suggest roles, and find the few columns that single most records out.

    `settings` are those of the [data] section; encoding and header are detected unless given.
    """
    source = open_source(DataSettings.given(path=path, **({"encoding": "auto", "header": "auto"} | settings)))
    with open_engine("duckdb", options) as engine:
        columns = profile(engine, source)
        suggestions = _one_weight([suggest(column) for column in columns])
        chosen = [c.name for c, s in zip(columns, suggestions, strict=True) if s.role is Role.QUASI_IDENTIFIER]
        if len(chosen) < 2:
            chosen += [c.name for c, s in zip(columns, suggestions, strict=True) if s.role is Role.OTHER]
        uses = [Use(name, Role.QUASI_IDENTIFIER, "category") for name in chosen[:MOST_COLUMNS]]
        found: list[Combination] = []
        if uses and columns[0].rows > 1:
            found = combinations_that_single_out(compress(engine, source, uses))
        measured = [c.name for c, s in zip(columns, suggestions, strict=True) if s.role.measured]
        complete = complete_rows(engine, source, measured, na_words(columns, source))
    best = [c for size in (1, 2, 3) for c in [c for c in found if len(c.columns) == size][:3]]
    return Inspection(source, tuple(columns), tuple(suggestions), tuple(best), complete)


def na_words(columns: Sequence[ColumnProfile], source: Source) -> list[str]:
    """What seems to mean missing in a table: what was declared, and the usual words that occur."""
    return sorted({word for column in columns for word in column.na_words} | set(source.settings.na))


def _one_weight(found: list[Suggestion]) -> list[Suggestion]:
    """A table has one weight; a second one is left out."""
    weights = [place for place, suggestion in enumerate(found) if suggestion.role is Role.WEIGHT]
    for place in weights[1:]:
        found[place] = Suggestion(Role.DROP, "its name says survey weight, and only one can be used")
    return found


def _run_file(inspection: Inspection, path: str, password_file: str | None) -> str:
    source = inspection.source
    lines = [
        "# A run file to start from. The roles are suggestions: read each line, change what is wrong.",
        "version = 1",
    ]
    lines += ["", "[data]", f"path = {toml_value(path)}"]
    asked = {"table": source.settings.table, "query": source.settings.query, "password_file": password_file}
    lines += [f"{key} = {toml_value(value)}" for key, value in asked.items() if value is not None]
    if source.dialect is not None:
        dialect = source.dialect
        lines.append(f"separator = {toml_value(dialect.separator)}")
        if source.settings.quote is not None:
            lines.append(f"quote = {toml_value(dialect.quote)}")
        if dialect.decimal == "," or source.settings.decimal is not None:
            lines.append(f'decimal = "{dialect.decimal}"')
        if dialect.encoding != "utf-8":
            lines.append(f'encoding = "{dialect.encoding}"  # detected; check that letters such as é and ß look right')
        if not dialect.header:
            lines.append("header = false")
    if source.settings.names is not None or (source.dialect is not None and not source.dialect.header):
        lines.append(f"names = {toml_value(list(source.names))}  # change them to your own")
    words = na_words(inspection.columns, source)
    lines.append(f"na = {toml_value(words)}  # what means missing, beside an empty cell")
    left = f'"drop" would leave {inspection.complete:,} of {inspection.rows:,} rows'
    rule = "drop" if inspection.complete >= 0.8 * inspection.rows else "category"
    lines.append(f'missing = "{rule}"  # drop | category | wildcard; {left}')
    lines += ["", f"# Roles: {', '.join(Role)}.", "[columns]"]
    for column, suggestion in zip(inspection.columns, inspection.suggestions, strict=True):
        tree = f", hierarchy = {_recipe(column)}" if suggestion.role is Role.QUASI_IDENTIFIER else ""
        told = toml_comment(f"{suggestion.reason}; {_seen(column)}")
        lines.append(f'{toml_key(column.name)} = {{ role = "{suggestion.role}"{tree} }}  {told}')
    return "\n".join(lines) + "\n"


def _seen(column: ColumnProfile) -> str:
    missing = f", {column.missing:,} missing" if column.missing else ""
    return f"{column.distinct:,} values{missing}"


def _recipe(column: ColumnProfile) -> str:
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
