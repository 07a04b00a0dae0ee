"""Read a codebook: a data dictionary as CSV or JSON, DDI Codebook as XML, or the catalogue of a SAS file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import DataError
from sfumato.runtime.inputs import note_input
from sfumato.runtime.json_files import parse_json, read_limited
from sfumato.sources.codebook import Codebook, ColumnLabels, code_text
from sfumato.sources.dialect import detect_encoding
from sfumato.sources.labelled.apart import catalogue_apart
from sfumato.sources.labelled.ddi import read_ddi

MOST_BYTES = 64 << 20
HEADS = {
    "column": ("column", "variable", "name", "field"),
    "value": ("value", "code"),
    "label": ("label", "description", "meaning"),
    "missing": ("missing",),
}
YES = ("yes", "y", "true", "1", "x")
EXPECTED = "a codebook: a CSV or JSON data dictionary, DDI Codebook (.xml), or a SAS catalogue (.sas7bcat)"


def read_codebook(path: Path, formats: Mapping[str, str] | None = None) -> Codebook:
    """A codebook by the ending of its file. A SAS catalogue goes by the `formats` of columns instead of their names."""
    if not path.is_file():
        raise DataError(f"there is no codebook {path}", expected=EXPECTED, remedy="check the path under [data]")
    note_input(path)
    ending = path.suffix.lower()
    if ending == ".sas7bcat":
        return _catalogue(path, formats or {})
    raw = read_limited(path, MOST_BYTES)
    if ending == ".xml":
        return read_ddi(raw, path.name)
    if ending == ".json":
        return _from_json(parse_json(raw, path.name), path.name)
    if ending in (".csv", ".tsv", ".txt"):
        return _from_csv(raw, path.name)
    raise DataError(f"{path.name} is no codebook that can be read", expected=EXPECTED)


def _from_csv(raw: bytes, name: str) -> Codebook:
    """A row for each value (column, value, label, missing), and one without a value for the label of the column."""
    try:
        text = raw.decode("utf-8-sig" if detect_encoding(raw) == "utf-8" else detect_encoding(raw))
    except UnicodeDecodeError:
        raise DataError(f"{name} is not text", expected=EXPECTED) from None
    head = text.split("\n", 1)[0]
    separator = max(",;\t", key=head.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if any(row)]
    except csv.Error as error:
        raise DataError(f"{name} is not valid CSV: {error}", expected=EXPECTED) from None
    names = [cell.strip().lower() for cell in rows[0]] if rows else []
    places = {head: next((names.index(word) for word in words if word in names), None) for head, words in HEADS.items()}
    if places["column"] is None or places["label"] is None:
        raise DataError(
            f"{name} does not name its columns",
            expected="a header with column and label, and where values have labels also value and missing",
            remedy="column,value,label,missing",
        )
    entries: dict[str, dict[str, Any]] = {}

    def cell(row: list[str], head: str) -> str:
        position = places[head]
        return row[position].strip() if position is not None and position < len(row) else ""

    for row in rows[1:]:
        entry = entries.setdefault(cell(row, "column"), {"values": {}, "missing": []})
        value, label = cell(row, "value"), cell(row, "label")
        if not value:
            entry["label"] = label
        elif label:
            entry["values"][value] = label
        if value and cell(row, "missing").lower() in YES:
            entry["missing"].append(value)
    return _book(entries.items(), name)


def _from_json(content: Any, name: str) -> Codebook:
    """Columns by name, each with label, values and missing; or a list of such columns, as a release has it."""
    if isinstance(content, dict) and isinstance(content.get("columns"), list | dict):
        content = content["columns"]
    if isinstance(content, list) and all(isinstance(one, dict) and "name" in one for one in content):
        return _book(((str(one["name"]), one) for one in content), name)
    if isinstance(content, dict) and all(isinstance(one, dict) for one in content.values()):
        return _book(((str(column), one) for column, one in content.items()), name)
    raise DataError(f"{name} does not describe columns", expected='{"sex": {"label": "Sex", "values": {"1": "male"}}}')


def _book(entries: Iterable[tuple[str, Mapping[str, Any]]], name: str) -> Codebook:
    result = {}
    for column, entry in entries:
        values, missing = entry.get("values") or {}, entry.get("missing") or ()
        if not isinstance(values, dict):
            raise DataError(f"{name}: the values of {column} are not understood", expected='{"1": "male"}')
        result[column] = ColumnLabels(
            label=str(entry.get("label") or ""),
            values={_code(value): str(label) for value, label in values.items()},
            missing=tuple(_code(code) for code in missing) if isinstance(missing, list | tuple) else (),
        )
    return Codebook(result)


def _code(value: object) -> str:
    return code_text(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def _catalogue(path: Path, formats: Mapping[str, str]) -> Codebook:
    by_format = {name.upper(): labels for name, labels in catalogue_apart(path).items()}
    return Codebook(
        {
            column: ColumnLabels(values=by_format[shown.upper().rstrip(".0123456789")])
            for column, shown in formats.items()
            if shown.upper().rstrip(".0123456789") in by_format
        }
    )
