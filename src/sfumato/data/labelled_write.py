"""Writing of files for SPSS, Stata and Excel, with labels only for values that occur in the rows.

Generalized columns become codes 1, 2, … with the categories as labels, as these programs expect. The meaning of the
codes is returned, so that the file can be read back. The rows are held in memory, which these formats require. A
workbook has the rows on one sheet and the labels on another, and text remains text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from sfumato.data.codebook import Codebook, ColumnLabels, code_text, group_label
from sfumato.data.settings import TITLES
from sfumato.data.statistical import DATES, TIMES, needed
from sfumato.errors import InputError, SfumatoError, shortened
from sfumato.hierarchies.labels import interval, number

SHEET, LABELS = "data", "labels"
MOST_ROWS, MOST_COLUMNS, MOST_TEXT = 1_048_575, 16_384, 32_767
FIRST_DAY = dt.date(1900, 3, 1)  # before this date the program counts a day that did not exist
WRITTEN = dt.datetime(1970, 1, 1)


def write_workbook(path: Path, names: Sequence[str], columns: Sequence[Sequence[object]], book: Codebook) -> None:
    """Write columns of cells; None is an empty one. No text is taken for a formula or a link."""
    writer = needed("xlsxwriter", "writing a workbook of Excel")
    rows = len(columns[0])
    if rows > MOST_ROWS or len(names) > MOST_COLUMNS:
        raise InputError(
            f"a sheet of Excel takes {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns, and there are {rows:,} and "
            f"{len(names):,}",
            expected="a smaller table, or another format",
        )
    columns = [_cells(column) for column in columns]
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with writer.Workbook(str(path), options) as out:
        out.set_properties({"created": WRITTEN})
        formats: dict[type, object] = {dt.date: out.add_format({"num_format": "yyyy-mm-dd"})}
        formats[dt.datetime] = out.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        sheet = out.add_worksheet(SHEET)
        for position, name in enumerate(names):
            sheet.write_string(0, position, name)
        for row in range(rows):
            for position, column in enumerate(columns):
                cell = column[row]
                if isinstance(cell, float | int | dt.date | None):  # a truth value is an int
                    sheet.write(row + 1, position, cell, formats.get(type(cell)))
                else:  # never by `write`, which takes some texts for formulas
                    sheet.write_string(row + 1, position, _short(str(cell), names[position]))
        lines = _label_lines(names, columns, book)
        if lines:
            sheet = out.add_worksheet(LABELS)
            for row, line in enumerate([("column", "value", "label"), *lines]):
                for position, text in enumerate(line):
                    sheet.write_string(row, position, text)


def _cells(column: Sequence[object]) -> Sequence[object]:
    """Return the cells as text where the program cannot represent their days or moments exactly."""
    days = [cell for cell in column if isinstance(cell, dt.date)]
    early = any((cell.date() if isinstance(cell, dt.datetime) else cell) < FIRST_DAY for cell in days)
    fine = any(isinstance(cell, dt.datetime) and cell.microsecond for cell in days)
    if not early and not fine:
        return column
    return [
        cell.isoformat(" ") if isinstance(cell, dt.datetime) else str(cell) if cell is not None else None
        for cell in column
    ]


def _short(text: str, name: str) -> str:
    """Return a text that fits a cell."""
    if len(text) > MOST_TEXT:
        raise InputError(
            f"{name} holds text of {len(text):,} characters, and a cell of Excel takes {MOST_TEXT:,}",
            expected="shorter texts, or another format",
        )
    return text


def _label_lines(names: Sequence[str], columns: Sequence[Sequence[object]], book: Codebook) -> list[tuple[str, ...]]:
    """Return the labels of columns, and of values that occur."""
    lines: list[tuple[str, ...]] = []
    for name, column in zip(names, columns, strict=True):
        about = book.column(name)
        if about.label:
            lines.append((name, "", about.label))
        if about.values:
            values = {
                code_text(float(c)) if isinstance(c, int | float) else str(c) for c in set(column) if c is not None
            }
            labelled = ((value, group_label(value, about.values)) for value in sorted(values))
            lines += [(name, value, label) for value, label in labelled if label]
    return lines


LABEL_BYTES = {"sav": 120, "dta": 32_000}  # length of a value's label
TEXT_BYTES = {"sav": 32_767, "dta": 2_000_000}
EXACT = 2.0**53
SPSS_WORDS = ("ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH")
STATA_WORDS = (
    *("_all", "_b", "byte", "_coef", "_cons", "double", "float", "if", "in", "int", "long", "_n", "_pi"),
    *("_pred", "_rc", "_skip", "str", "strL", "using", "with"),
)


@dataclass(frozen=True)
class Written:
    """Settings to read a written file back: its sheet, the columns' own names, and the meaning of its codes."""

    names: tuple[str, ...] | None = None
    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sheet: str | None = None

    def settings(self) -> dict[str, Any]:
        """Return these settings as a [data] section."""
        codes = {name: dict(codes) for name, codes in self.codes.items()}
        names = None if self.names is None else list(self.names)
        settings = {"codes": codes or None, "names": names, "sheet": self.sheet}
        return {name: value for name, value in settings.items() if value is not None}


@dataclass
class _Column:
    """A column to write: its cells and its description."""

    cells: Any
    about: ColumnLabels
    labels: dict[Any, str] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    text: bool = False
    letters: tuple[str, ...] = ()


def write_labelled(
    rows: Path, target: Path, kind: str, names: Sequence[str], book: Codebook, coded: Collection[str] = ()
) -> Written:
    """Write the Parquet file `rows` as another format. `coded` are the columns whose cells are categories."""
    table = pyarrow.parquet.read_table(rows)
    if kind == "xlsx":
        columns = [_plain(table.column(position)) for position in range(len(names))]
        write_workbook(target, names, columns, book)
        return Written(sheet=SHEET)
    parts = [
        _column(table.column(position), name, kind, book.column(name), name in coded)
        for position, name in enumerate(names)
    ]
    own = own_names(names, kind)
    _write(target, kind, own, names, parts)
    without_time(target, kind)
    codes = {name: part.codes for name, part in zip(names, parts, strict=True) if part.codes}
    return Written(tuple(names) if own != list(names) else None, codes)


def _write(target: Path, kind: str, own: Sequence[str], names: Sequence[str], parts: Sequence[_Column]) -> None:
    pandas = needed("pandas", f"writing a file of {TITLES[kind]}")
    writer = needed("pyreadstat", f"writing a file of {TITLES[kind]}")
    frame = pandas.DataFrame({name: part.cells for name, part in zip(own, parts, strict=True)})
    by_name = dict(zip(own, parts, strict=True))
    renamed = [name if name != mine else "" for name, mine in zip(names, own, strict=True)]
    labels = [part.about.label or name for part, name in zip(parts, renamed, strict=True)]
    by_column: dict[str, dict[str, object]] = {
        "variable_value_labels": {name: part.labels for name, part in by_name.items()},
        "variable_format": {n: p.about.format for n, p in by_name.items() if not p.codes and not p.text},
    }
    if kind == "sav":
        labels = [_cut(label, 255) for label in labels]
        by_column["missing_ranges"] = {name: _missing(part.about) for name, part in by_name.items()}
        by_column["variable_measure"] = {n: "nominal" if p.codes else p.about.measure for n, p in by_name.items()}
    else:
        labels = [label[:80] for label in labels]
        by_column["missing_user_values"] = {name: list(part.letters) for name, part in by_name.items()}
    stated = {option: {name: value for name, value in values.items() if value} for option, values in by_column.items()}
    options = {option: values for option, values in stated.items() if values}
    try:
        getattr(writer, f"write_{kind}")(frame, str(target), column_labels=labels, **options)
    except (writer.ReadstatError, writer.PyreadstatError, ValueError, OverflowError) as error:
        # Its text may hold a value; the kind of error is enough.
        raise SfumatoError(
            f"the file of {TITLES[kind]} could not be written ({type(error).__name__})",
            expected="columns that the format can hold",
            remedy="another format, such as csv",
        ) from None


def _column(cells: pyarrow.ChunkedArray, name: str, kind: str, about: ColumnLabels, coded: bool) -> _Column:
    type_ = cells.type
    if pyarrow.types.is_boolean(type_):
        cells, coded = cells.cast(pyarrow.string()), True
    elif pyarrow.types.is_date(type_) or (pyarrow.types.is_timestamp(type_) and type_.tz is None):
        # The format of the source where it is one of this program, else that of the writer.
        known = (DATES if pyarrow.types.is_date(type_) else TIMES)[kind][0]
        shown = about.format if known.fullmatch(about.format) else ""
        return _Column(_objects(cells), ColumnLabels(about.label, format=shown))
    elif pyarrow.types.is_float64(type_) or (pyarrow.types.is_integer(type_) and _exact(cells)):
        numbers = cells.cast(pyarrow.float64()).to_pandas()
        return _numeric(numbers, {code_text(one) for one in numbers.dropna().unique().tolist()}, about, kind)
    cells = cells.cast(pyarrow.string())
    values = [value for value in cells.unique().to_pylist() if value not in (None, "")]
    if coded and (column := _categories(cells, values, about, kind)) is not None:
        return column
    letters = tuple(
        sorted(v[1:] for v in values if kind == "dta" and v in about.missing and re.fullmatch(r"\.[a-z]", v))
    )
    tagged = {f".{letter}" for letter in letters}
    if values and all(_is_number(value) for value in values if value not in tagged):
        texts = cells.to_pylist()
        if letters:
            mixed = [None if t in (None, "") else t[1:] if t in tagged else float(t) for t in texts]
            pandas = needed("pandas", "writing a file of Stata")
            column = _numeric(pandas.Series(mixed, dtype=object), set(values), about, kind)
            column.letters = letters
            column.labels = {**column.labels} | {
                letter: about.values[f".{letter}"] for letter in letters if f".{letter}" in about.values
            }
            return column
        return _numeric(_floats(texts), set(values), about, kind)
    return _texts(cells, values, name, about, kind)


def _numeric(numbers: Any, occurring: Collection[str], about: ColumnLabels, kind: str) -> _Column:
    about = about.only(occurring)
    labels: dict[Any, str] = {}
    for text, label in about.values.items():
        if _is_number(text) and (float(text).is_integer() or kind == "sav"):
            value = float(text)
            labels[int(value) if value.is_integer() else value] = _cut(label, LABEL_BYTES[kind])
    return _Column(numbers, about, labels)


def _texts(cells: pyarrow.ChunkedArray, values: Sequence[str], name: str, about: ColumnLabels, kind: str) -> _Column:
    longest = max((len(value.encode("utf-8")) for value in values), default=0)
    if longest > TEXT_BYTES[kind]:
        raise InputError(
            f"{name} holds text of {longest:,} bytes, and a file of {TITLES[kind]} takes {TEXT_BYTES[kind]:,}",
            expected="shorter texts, or another format",
        )
    about = about.only(values)
    labels = {value: _cut(label, LABEL_BYTES[kind]) for value, label in about.values.items()} if kind == "sav" else {}
    return _Column(_objects(cells, ""), ColumnLabels(about.label, about.values, about.missing), labels, text=True)


def _categories(cells: pyarrow.ChunkedArray, values: Sequence[str], about: ColumnLabels, kind: str) -> _Column | None:
    """Return categories as codes with labels, or None where a label is too long for the format."""
    ordered = sorted(values, key=_order)
    shown = [group_label(value, about.values) or value for value in ordered]
    if len(set(shown)) < len(shown):
        shown = ordered
    if any(len(label.encode("utf-8")) > LABEL_BYTES[kind] for label in shown):
        return None
    places = {value: position for position, value in enumerate(ordered, start=1)}
    numbers = _floats([str(places[cell]) if cell in places else None for cell in cells.to_pylist()])
    codes = {str(position): value for value, position in places.items()}
    labels: dict[Any, str] = dict(zip(range(1, len(shown) + 1), shown, strict=True))
    return _Column(numbers, ColumnLabels(about.label), labels, codes)


def _order(label: str) -> tuple[bool, float, str]:
    """By number where there is one, then by letter: what depends on the labels alone."""
    low = number(label)
    if low is None and (result := interval(label)) is not None:
        low = result.low
    return (low is None, low or 0.0, label)


def _plain(cells: pyarrow.ChunkedArray) -> Any:
    """Return a column for a workbook, as numbers if all its texts are plain numbers."""
    if (
        pyarrow.types.is_string(cells.type)
        or pyarrow.types.is_decimal(cells.type)
        or pyarrow.types.is_float32(cells.type)
    ):
        texts = cells.cast(pyarrow.string())
        values = [value for value in texts.unique().to_pylist() if value not in (None, "")]
        if values and all(_is_number(value) for value in values):
            return [None if cell in (None, "") else float(cell) for cell in texts.to_pylist()]
        return [cell or None for cell in texts.to_pylist()]
    if pyarrow.types.is_integer(cells.type) and not _exact(cells):
        return cells.cast(pyarrow.string()).to_pylist()
    return cells.to_pylist()


def _is_number(value: str) -> bool:
    """Return whether a text is a number that programs read and write in the same way.

    >>> [_is_number(text) for text in ("39", "2.5", "007", "1e5", "nan", "x")]
    [True, True, False, False, False, False]
    """
    try:
        result = float(value)
    except ValueError:
        return False
    return abs(result) < 1e15 and code_text(result) == value


def _exact(cells: pyarrow.ChunkedArray) -> bool:
    import pyarrow.compute  # which a command waits for that writes no such file

    ends = pyarrow.compute.min_max(cells).as_py()
    return all(end is None or abs(end) <= EXACT for end in ends.values())


def _floats(texts: Sequence[str | None]) -> Any:
    pandas = needed("pandas", "writing a labelled file")
    return pandas.Series([float("nan") if text in (None, "") else float(text) for text in texts], dtype="float64")


def _objects(cells: pyarrow.ChunkedArray, nothing: object = None) -> Any:
    pandas = needed("pandas", "writing a labelled file")
    return pandas.Series([nothing if cell is None else cell for cell in cells.to_pylist()], dtype=object)


def _missing(about: ColumnLabels) -> list[object]:
    """Return the missing codes in the form of SPSS: at most three codes, or a range and a code."""
    codes: list[object] = [float(code) if _is_number(code) else code for code in about.missing]
    ranges: list[object] = [{"lo": low, "hi": high} for low, high in about.ranges]
    if len(ranges) > 1 or len(codes) > (1 if ranges else 3):
        raise InputError(
            f"{len(codes)} codes{f' and {len(ranges)} ranges' if ranges else ''} mean missing in one column, "
            "and SPSS takes three, or a range and one more",
            expected="another format, such as csv",
        )
    return [*ranges, *codes]


def _cut(label: str, most: int) -> str:
    """Return a label of at most so many bytes."""
    return label.encode("utf-8")[:most].decode("utf-8", "ignore")


def own_names(names: Sequence[str], kind: str) -> list[str]:
    """Return names that the program takes: letters, digits and underlines, none twice, none of its own words.

    >>> own_names(["age", "post code", "Post_code", "long"], "dta")
    ['age', 'post_code', 'Post_code_2', 'long_']
    """
    limit = 64 if kind == "sav" else 32
    reserved = {word.upper() for word in (SPSS_WORDS if kind == "sav" else STATA_WORDS)}
    result: list[str] = []
    for position, name in enumerate(names, start=1):
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = plain if re.match("[A-Za-z]" if kind == "sav" else "[A-Za-z_]", plain) else f"v_{plain}"
        plain = plain[:limit].rstrip("_") if kind == "sav" else plain[:limit]
        if plain.upper() in reserved or re.fullmatch(r"str\d+", plain):
            plain += "_" if kind == "dta" else "_x"
        if plain.lower() in {other.lower() for other in result}:
            plain = f"{plain[: limit - 6]}_{position - 1}"
        result.append(plain)
    if len({name.lower() for name in result}) < len(result):
        raise InputError(
            f"a file of {TITLES[kind]} cannot name all columns apart: {shortened(names)}",
            expected="names of letters and digits",
            remedy="names = [...] under [data]",
        )
    return result


def without_time(path: Path, kind: str) -> None:
    """Remove the time of writing from the header of a file, because a release must not reveal it."""
    with path.open("r+b") as stream:
        head = stream.read(4096)
        if kind == "sav" and head[:3] == b"$FL":
            stream.seek(84)
            stream.write(b"01 Jan 70" + b"00:00:00")
        elif kind == "dta" and (start := head.find(b"<timestamp>")) >= 0:
            size = head[start + 11]
            stream.seek(start + 12)
            stream.write(b"01 Jan 1970 00:00"[:size].ljust(size))
