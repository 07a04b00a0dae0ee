"""Read a codebook: a data dictionary as CSV or JSON, DDI Codebook as XML, or the catalogue of a SAS file.

Labels and missing codes from DDI Codebook (2.5, and 2.1, which differs in its namespace only).

The file may come from anybody: a declaration of entities is refused, nothing outside the file is read.
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.parsers import expat

from sfumato.base.formats import parse_json, read_limited
from sfumato.base.trust import note_input
from sfumato.data.codebook import Codebook, ColumnLabels, code_text
from sfumato.data.csv import detect_encoding
from sfumato.data.labelled_read import catalogue_apart
from sfumato.errors import DataError

MOST_DEPTH = 100


def read_ddi(raw: bytes, name: str) -> Codebook:
    """Return the variables of a codebook.

    >>> text = '<codeBook><dataDscr><var name="sex"><labl>Sex</labl><catgry missing="Y"><catValu>9</catValu>'
    >>> book = read_ddi((text + "<labl>refused</labl></catgry></var></dataDscr></codeBook>").encode(), "a.xml")
    >>> book.column("sex").label, book.column("sex").values, book.column("sex").missing
    ('Sex', {'9': 'refused'}, ('9',))
    """
    reader = _Reader(name)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.EntityDeclHandler = reader.entity
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise DataError(
            f"{name} is not well-formed XML: line {error.lineno}", expected="DDI Codebook 2.5", remedy="export it again"
        ) from None
    if not reader.columns:
        raise DataError(f"{name} describes no variables", expected="DDI Codebook 2.5 with var elements in its dataDscr")
    return Codebook(reader.columns, reader.title)


class _Reader:
    """State of the reader: the variables read so far, and the position in the file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: dict[str, ColumnLabels] = {}
        self.title = ""
        self._open: list[str] = []
        self._texts: list[str] = []
        self._variable = ""
        self._label = ""
        self._values: dict[str, str] = {}
        self._missing: list[str] = []
        self._ranges: list[tuple[float, float]] = []
        self._category = ["", "", ""]  # value, label, whether it means missing

    def entity(self, *_: object) -> None:
        raise DataError(
            f"{self.name} declares entities, which can include other files or endless text",
            expected="DDI Codebook 2.5 without entity declarations",
            remedy="export it again",
        )

    def start(self, tag: str, given: dict[str, str]) -> None:
        self._open.append(tag.rsplit(":", 1)[-1])
        if len(self._open) > MOST_DEPTH:
            raise DataError(f"{self.name} is nested too deeply", expected="DDI Codebook 2.5")
        self._texts = []
        match self._open[-1]:
            case "var":
                self._variable, self._label = given.get("name", given.get("ID", "")).strip(), ""
                self._values, self._missing, self._ranges = {}, [], []
            case "catgry":
                self._category = ["", "", given.get("missing", "N")]
            case "item" if "invalrng" in self._open and "VALUE" in given:
                self._missing.append(given["VALUE"].strip())
            case "range" if "invalrng" in self._open:
                self._range(given)

    def text(self, part: str) -> None:
        self._texts.append(part)

    def end(self, _: str) -> None:
        tag = self._open.pop()
        said = " ".join("".join(self._texts).split())
        self._texts = []
        match tag:
            case "labl" if self._open[-1:] == ["var"]:
                self._label = self._label or said
            case "labl" if self._open[-1:] == ["catgry"]:
                self._category[1] = self._category[1] or said
            case "catValu":
                self._category[0] = said
            case "titl" if not self.title and "stdyDscr" in self._open:
                self.title = said
            case "catgry":
                value, label, missing = self._category
                if value and label:
                    self._values[value] = label
                if value and missing == "Y":
                    self._missing.append(value)
            case "var" if self._variable:
                self.columns[self._variable] = ColumnLabels(
                    self._label, self._values, tuple(dict.fromkeys(self._missing)), tuple(self._ranges)
                )

    def _range(self, given: dict[str, str]) -> None:
        try:
            low = float(given.get("min", given.get("minExclusive", "-inf")))
            high = float(given.get("max", given.get("maxExclusive", "inf")))
        except ValueError:
            return
        if not (math.isnan(low) or math.isnan(high)):
            self._ranges.append((low, high))


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
    """Return a codebook by the ending of its file. A SAS catalogue is keyed by the `formats` of columns."""
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
    """Read one row for each value (column, value, label, missing), and one without a value for a column's label."""
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
    values: dict[str, dict[str, str]] = defaultdict(dict)
    missing: dict[str, list[str]] = defaultdict(list)
    labels: dict[str, str] = {}
    for row in rows[1:]:
        cells = [row[at].strip() if at is not None and at < len(row) else "" for at in places.values()]
        column, value, label, means_missing = cells
        labels.setdefault(column, "")
        if not value:
            labels[column] = label
        elif label:
            values[column][value] = label
        if value and means_missing.lower() in YES:
            missing[column].append(value)
    entries = {name: {"label": labels[name], "values": values[name], "missing": missing[name]} for name in labels}
    return _book(entries.items(), name)


def _from_json(content: object, name: str) -> Codebook:
    """Return columns by name, each with label, values and missing; or a list of such columns, as a release has it."""
    if isinstance(content, dict) and isinstance(content.get("columns"), list | dict):
        content = content["columns"]
    if isinstance(content, list) and all(isinstance(one, dict) and "name" in one for one in content):
        return _book(((str(one["name"]), one) for one in content), name)
    if isinstance(content, dict) and all(isinstance(one, dict) for one in content.values()):
        return _book(((str(column), one) for column, one in content.items()), name)
    raise DataError(f"{name} does not describe columns", expected='{"sex": {"label": "Sex", "values": {"1": "male"}}}')


def _book(entries: Iterable[tuple[str, Mapping[str, object]]], name: str) -> Codebook:
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
