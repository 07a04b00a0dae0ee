"""Reading of SPSS, Stata and SAS files in chunks into private Parquet files with columns `c0`, `c1`, …

Codes remain the values. Labels and missing codes go into a codebook. The packages are those of an extra, which are
imported when they are needed.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow
import pyarrow.parquet

from sfumato.data.codebook import Codebook, ColumnLabels, code_text
from sfumato.data.settings import TITLES
from sfumato.errors import DataError, InputError


def needed(module: str, why: str) -> ModuleType:
    """Return a module of the extra; an error that says how to install it where it is not there."""
    require(module, why)
    return importlib.import_module(module)


def require(module: str, why: str) -> None:
    """Raise unless a module of the extra is installed; it is not loaded yet."""
    if importlib.util.find_spec(module) is None:
        raise InputError(
            f"{why} needs the package {module.replace('_', '-')}, which is not installed",
            expected="Sfumato with its extra labelled",
            remedy="pip install 'sfumato[labelled]'",
        )


TYPES = {
    "string": "VARCHAR",
    "double": "DOUBLE",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP",
    "bool": "BOOLEAN",
}


if TYPE_CHECKING:
    from pyreadstat import metadata_container

Cell = str | float | None
Write = Callable[[Sequence[pyarrow.Array]], None]


@contextmanager
def private_parquet(
    path: Path, types: Sequence[pyarrow.DataType]
) -> Iterator[Callable[[Sequence[pyarrow.Array]], None]]:
    """Write a file in a scratch folder. The function that is returned writes some rows: an array for each type."""
    schema = pyarrow.schema([(f"c{position}", type_) for position, type_ in enumerate(types)])
    path.unlink(missing_ok=True)
    private = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(private, "wb") as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        yield lambda arrays: writer.write_table(pyarrow.Table.from_arrays(list(arrays), schema=schema))


CELLS = 4_000_000  # held at a time
SMALLEST = 1000  # rows of a chunk at least
READERS = {"sav": "read_sav", "dta": "read_dta", "sas7bdat": "read_sas7bdat"}
DAY = 86_400
# How dates are counted: the first day in days since 1970, and how many units a day has.
SPSS_ZERO, ZERO = -141_428, -3_653  # 14 October 1582, 1 January 1960
DATES = {
    "sav": (re.compile(r"(A|E|J|S)?DATE\d+|(MO|Q|WK)YR\d+"), SPSS_ZERO, DAY),
    "dta": (re.compile(r"%-?(td|d).*"), ZERO, 1),
    "sas7bdat": (
        re.compile(r"(DATE|DDMMYY\w?|MMDDYY\w?|YYMMDD\w?|MONYY|WORDDATE|WEEKDATE|E8601DA|JULIAN)\d*"),
        ZERO,
        1,
    ),
}
TIMES = {
    "sav": (re.compile(r"(DATETIME|YMDHMS)[\d.]+"), SPSS_ZERO, DAY),
    "dta": (re.compile(r"%-?t[cC].*"), ZERO, DAY * 1000),
    "sas7bdat": (re.compile(r"(DATETIME|E8601DT)[\d.]*"), ZERO, DAY),
}


def convert(path: Path, kind: str, target: Path, encoding: str | None = None) -> tuple[list[str], list[str], Codebook]:
    """Write the rows as Parquet to `target`; the names and types of the columns, and what the file says of them.

    Stata and SAS have letters for different kinds of missing (.a to .z). A column that has some is read as text, so
    that they stay apart; they are declared as missing.
    """
    reader = needed("pyreadstat", f"a file of {TITLES[kind]}")
    lettered: dict[str, set[str]] = {}
    for again in (False, True):
        letters = {name: set[str]() for name in lettered}
        meta = _write(reader, path, kind, target, encoding, lettered, letters)
        if again or letters.keys() == lettered.keys():
            break
        lettered = letters
    types = _types(meta, kind, lettered)
    return list(meta.column_names), [str(type_) for type_ in types], _codebook(meta, letters)


def catalogue(path: Path) -> dict[str, dict[str, str]]:
    """Return the labels of a SAS catalogue, by the names of its formats."""
    reader = needed("pyreadstat", "a SAS catalogue")
    try:
        _, meta = reader.read_sas7bcat(str(path), output_format="dict")
    except (reader.ReadstatError, reader.PyreadstatError, ValueError) as error:
        raise unreadable_file(path, "sas7bcat", str(error)) from None
    return {
        name: {code_text(_number(value)): str(label) for value, label in labels.items()}
        for name, labels in meta.value_labels.items()
    }


def _write(
    reader: ModuleType,
    path: Path,
    kind: str,
    target: Path,
    encoding: str | None,
    lettered: Mapping[str, set[str]],
    letters: dict[str, set[str]],
) -> metadata_container:
    """Return one pass over the file; `letters` gets the letters of missing values that occur, by column."""
    meta = _read(reader, path, kind, encoding, metadataonly=True)[1]
    if any(not isinstance(name, str) for name in meta.column_names):
        raise unreadable_file(path, kind)
    if not meta.column_names:
        raise DataError(f"{path.name} has no columns", expected="a table with rows")
    types = _types(meta, kind, lettered)
    size, rows, last = max(CELLS // len(meta.column_names), SMALLEST), 0, False
    with private_parquet(target, types) as write:
        while not last:
            columns, _ = _read(reader, path, kind, encoding, row_offset=rows, row_limit=size)
            arrays = []
            for name, type_ in zip(meta.column_names, types, strict=True):
                cells = columns[name]
                if meta.readstat_variable_types[name] != "string" and kind != "sav":
                    seen = {cell for cell in cells if isinstance(cell, str)}
                    if seen:
                        letters.setdefault(name, set()).update(seen)
                arrays.append(_array(cells, str(type_), kind, meta, name))
            write(arrays)
            last = len(arrays[0]) < size
            rows += len(arrays[0])
    if rows == 0:
        raise DataError(f"{path.name} has columns and no rows", expected="a table with rows")
    return meta


def _read(
    reader: ModuleType, path: Path, kind: str, encoding: str | None, **options: int
) -> tuple[Mapping[str, Sequence[Cell]], metadata_container]:
    """Return some rows of the file by column, and what the file says of itself."""
    read = getattr(reader, READERS[kind])
    named = {} if encoding is None else {"encoding": encoding}
    try:
        columns, meta = read(
            str(path), output_format="dict", user_missing=True, disable_datetime_conversion=True, **named, **options
        )
    except (reader.ReadstatError, reader.PyreadstatError, ArithmeticError, ValueError, MemoryError) as error:
        raise unreadable_file(path, kind, str(error)) from None
    return columns, meta


def unreadable_file(path: Path, kind: str, text: str = "") -> DataError:
    """Return the error for a file; `text` is that of its reader."""
    if "encoding" in text or "convert" in text:
        return DataError(
            f"{path.name} holds text that is not in the encoding that it names",
            expected="text in the declared encoding",
            remedy='encoding = "latin-1" or another under [data]',
        )
    return DataError(
        f"{path.name} cannot be read as a file of {TITLES[kind]}",
        expected="a complete file in a version that ReadStat knows, without a password",
        remedy="check that it is complete, or save it again in its program",
    )


def _types(meta: metadata_container, kind: str, lettered: Mapping[str, set[str]]) -> list[pyarrow.DataType]:
    """Return the Arrow type of each column: text, numbers, days or moments."""

    def type_of(name: str) -> pyarrow.DataType:
        if meta.readstat_variable_types[name] == "string" or name in lettered:
            return pyarrow.string()
        shown = meta.original_variable_types[name] or ""
        if DATES[kind][0].fullmatch(shown):
            return pyarrow.date32()
        return pyarrow.timestamp("us") if TIMES[kind][0].fullmatch(shown) else pyarrow.float64()

    return [type_of(name) for name in meta.column_names]


def _array(cells: Sequence[Cell], type_: str, kind: str, meta: metadata_container, name: str) -> pyarrow.Array:
    if type_ == "string":
        if meta.readstat_variable_types[name] == "string":
            return pyarrow.array([cell if cell else None for cell in cells], pyarrow.string())
        return pyarrow.array([_lettered(cell) for cell in cells], pyarrow.string())
    numbers = np.array([None if isinstance(cell, str) else cell for cell in cells], dtype=np.float64)
    if type_ == "double":
        return pyarrow.array(numbers, from_pandas=True)
    for span in meta.missing_ranges.get(name, ()):  # a day that means missing is no day
        numbers[(numbers >= span["lo"]) & (numbers <= span["hi"])] = np.nan
    _, zero, units = (DATES if type_.startswith("date") else TIMES)[kind]
    there = np.isfinite(numbers)
    days = np.where(there, numbers, 0.0) / units + zero
    there &= np.abs(days) < 10**7
    if type_.startswith("date"):
        result = np.where(there, np.floor(days), 0).astype(np.int32)
        return pyarrow.array(result, pyarrow.int32(), mask=~there).cast(pyarrow.date32())
    whole = np.where(there, numbers, 0.0) * (DAY * 1_000_000 / units)
    moments = np.rint(whole).astype(np.int64) + zero * DAY * 1_000_000
    return pyarrow.array(moments, pyarrow.int64(), mask=~there).cast(pyarrow.timestamp("us"))


def _lettered(cell: Cell) -> str | None:
    """Return a number as text, a letter for a missing value with a point before."""
    if cell is None or cell != cell:
        return None
    return f".{cell}" if isinstance(cell, str) else code_text(float(cell))


def _codebook(meta: metadata_container, letters: Mapping[str, set[str]]) -> Codebook:
    result = {}
    for name in meta.column_names:
        text = meta.readstat_variable_types[name] == "string"
        labels = {
            (f".{value}" if isinstance(value, str) and not text else code_text(_number(value))): str(label)
            for value, label in (meta.variable_value_labels.get(name) or {}).items()
        }
        codes, ranges = [f".{letter}" for letter in sorted(letters.get(name, ()))], []
        for span in meta.missing_ranges.get(name, ()):
            if span["lo"] == span["hi"]:
                codes.append(code_text(_number(span["lo"])))
            elif not text:
                ranges.append((float(span["lo"]), float(span["hi"])))
        measure = meta.variable_measure.get(name, "") or ""
        result[name] = ColumnLabels(
            label=(meta.column_names_to_labels.get(name) or "").strip(),
            values=labels,
            missing=tuple(codes),
            ranges=tuple(ranges),
            format=meta.original_variable_types.get(name) or "",
            measure="" if measure == "unknown" else measure,
        )
    return Codebook(result, (meta.file_label or "").strip())


def _number(value: object) -> object:
    return float(value) if isinstance(value, int) else value
