"""Tables in memory: reading of any object with `__arrow_c_stream__`, and recoded tables of the caller's kind."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from sfumato.base.arrays import Counts64, Floats
from sfumato.errors import DataError, shortened

BLOCK = 1 << 18  # rows that are digested at a time
READ_AGAIN = ("pandas", "polars", "pyarrow")  # tables that can be read as often as needed, and seen to change


def is_frame(table: object) -> bool:
    """Return whether an object is a table in memory: it offers its rows through Arrow's stream interface.

    >>> import pyarrow
    >>> is_frame(pyarrow.table({"age": [31, 42]})), is_frame("people.csv")
    (True, False)
    """
    return hasattr(table, "__arrow_c_stream__") and not isinstance(table, type)


class Frame:
    """A table of the caller. `native` is the caller's object, which is never changed.

    Tables of pandas, polars and pyarrow are read from the caller's object each time, so that the digest shows a change.
    Objects of other kinds, which may be readable only once, are read when the frame is made.

    >>> import pyarrow
    >>> frame = Frame(pyarrow.table({"age": [31, 42], "sex": ["F", "M"]}))
    >>> frame.kind, frame.table().num_rows, frame.digest()[:8]
    ('pyarrow', 2, '944ff256')
    """

    def __init__(self, native: Any) -> None:
        if not is_frame(native):
            raise DataError(
                f"{type(native).__name__} is not a table that can be read",
                expected="a table of pandas, polars, pyarrow or DuckDB, or another with __arrow_c_stream__",
                remedy="collect() a lazy frame first" if "Lazy" in type(native).__name__ else "",
            )
        self.native = native
        again = self.kind in READ_AGAIN and type(native).__name__ != "RecordBatchReader"
        self._once = None if again else _arrow(native)

    def __repr__(self) -> str:
        return f"<Frame of {self.kind}>"

    @property
    def can_be_read_again(self) -> bool:
        return self._once is None

    @property
    def kind(self) -> str:
        """The package that the caller's table is of."""
        return type(self.native).__module__.partition(".")[0].removeprefix("_")

    def table(self) -> pa.Table:
        """Return the rows as an Arrow table; an index of pandas is no column of it."""
        return _arrow(self.native) if self._once is None else self._once

    def digest(self) -> str:
        """Return the SHA-256 over names, types and values. Batches, encodings and kinds of frames do not change it."""
        table = self.table()
        return content_digest(table.schema, table.to_batches())


def content_digest(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> str:
    """Return the SHA-256 over names, types and values of Arrow data.

    Each column has three digests: of the cells with a value, of the lengths of the values, and of their bytes. So the
    division into batches and the encoding of text make no difference.
    """
    columns = [_Column(field.type) for field in schema]
    for batch in batches:
        for start in range(0, batch.num_rows, BLOCK):
            for column, cells in zip(columns, batch.slice(start, BLOCK).columns, strict=True):
                column.update(cells)
    digest = hashlib.sha256()
    for field, column in zip(schema, columns, strict=True):
        name = field.name.encode()
        digest.update(len(name).to_bytes(8, "little") + name + column.digest())
    return digest.hexdigest()


def file_digest(files: Sequence[Path]) -> str:
    """Return the content digest of a table in Parquet files, which is that of the frame they were written from."""
    try:
        schema = without_index(parquet.read_schema(files[0]))

        def batches() -> Iterator[pa.RecordBatch]:
            for file in files:
                with parquet.ParquetFile(file) as opened:
                    yield from opened.iter_batches(BLOCK, columns=schema.names)

        return content_digest(schema, batches())
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{files[0].name} cannot be read as Parquet", expected="a complete Parquet file") from error


class _Column:
    """The digests of one column while its cells come in."""

    def __init__(self, type_: pa.DataType) -> None:
        types = pa.types
        value = type_.value_type if types.is_dictionary(type_) else type_
        self._valid, self._lengths, self._bytes = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
        if types.is_string(value) or types.is_large_string(value) or types.is_string_view(value):
            self.name = "string"
        elif types.is_date(value):
            self.name = "date"
        elif types.is_boolean(value) or types.is_integer(value) or types.is_floating(value) or types.is_temporal(value):
            self.name = str(value)
        elif types.is_null(value):
            self.name = "null"
        else:  # decimals, binary and other rare kinds, by what they look like
            self.name = f"{value} as text"

    def update(self, cells: pa.Array) -> None:
        cells = without_categories(cells)
        if not cells.null_count:
            self._valid.update(b"\1" * len(cells))
        else:
            self._valid.update(_raw(cells.is_valid().cast(pa.uint8())))
        if self.name == "null":
            return
        if self.name == "string" or self.name.endswith(" as text"):
            texts = cells.cast(pa.large_string() if self.name == "string" else _text_type(cells.type))
            texts = texts.fill_null("" if pa.types.is_large_string(texts.type) else b"")
            _, offsets, data = texts.buffers()
            ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
            self._lengths.update(np.diff(ends).tobytes())
            if data is not None:
                self._bytes.update(memoryview(data)[ends[0] : ends[-1]])
            return
        if self.name == "date":
            cells = cells.cast(pa.date32()).cast(pa.int32())
        elif pa.types.is_boolean(cells.type):
            cells = cells.cast(pa.uint8())
        elif pa.types.is_temporal(cells.type):
            cells = cells.view(pa.int64() if cells.type.bit_width == 64 else pa.int32())
        self._bytes.update(_raw(cells.fill_null(0) if cells.null_count else cells))

    def digest(self) -> bytes:
        return self.name.encode() + b"".join(part.digest() for part in (self._valid, self._lengths, self._bytes))


def _raw(cells: pa.Array) -> memoryview:
    """Return the bytes of an array of fixed width without missing values."""
    return memoryview(cells.to_numpy(zero_copy_only=False)).cast("B")


def _text_type(type_: pa.DataType) -> pa.DataType:
    binary = pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_)
    return pa.large_binary() if binary or pa.types.is_fixed_size_binary(type_) else pa.large_string()


def without_categories(cells: pa.Array) -> pa.Array:
    """Return categories as their values, and views of text as text, as casts and every reader of Parquet know them."""
    coded = pa.types.is_dictionary(cells.type)
    type_ = cells.type.value_type if coded else cells.type
    if pa.types.is_string_view(type_):
        type_ = pa.large_string()
    return cells.dictionary.cast(type_).take(cells.indices) if coded else cells.cast(type_)


def without_index(schema: pa.Schema) -> pa.Schema:
    """Return the schema without columns that hold an index of pandas."""
    about = (schema.metadata or {}).get(b"pandas")
    held = json.loads(about)["index_columns"] if about else []
    index = {name for name in held if isinstance(name, str)}
    return pa.schema([field for field in schema if field.name not in index], schema.metadata) if index else schema


def _arrow(native: Any) -> pa.Table:
    """Return the table in Arrow. The messages of other packages are not shown: they hold values."""
    try:
        table = pa.table(native)
    except Exception as error:  # noqa: BLE001 - whatever the other package raises
        unreadable = _unreadable_columns(native)
        what = f"{shortened(unreadable)} cannot be read" if unreadable else "the table cannot be read"
        raise DataError(
            f"{what} ({type(error).__name__})",
            expected="columns of one kind of value each: numbers, text, dates, true or false, categories",
            remedy="turn a column of mixed values into text first" if unreadable else "",
        ) from None
    kept = without_index(table.schema)
    if len(kept) < len(table.schema):
        table = table.select(kept.names)
    for position, field in enumerate(table.schema):
        if pa.types.is_null(field.type):  # a column of nothing but missing values
            table = table.set_column(position, field.name, table.column(position).cast(pa.string()))
    return table


def _unreadable_columns(native: Any) -> list[str]:
    """Return the columns that do not become Arrow by themselves."""
    names = list(getattr(native, "columns", ()))
    failed = []
    for name in names:
        try:
            pa.table(native[[name]])
        except (pa.ArrowException, TypeError, ValueError, AttributeError, NotImplementedError, OverflowError):
            failed.append(str(name))
    return failed if len(failed) < max(len(names), 2) else []


@dataclass(frozen=True, eq=False)
class Labels:
    """A recoded column: for each row the place of its label. A label of None is a missing value."""

    labels: Sequence[str | None]
    codes: Counts64

    def values(self) -> npt.NDArray[np.object_]:
        held = np.empty(len(self.labels), dtype=object)
        held[:] = self.labels
        return held[self.codes]

    @property
    def categories(self) -> list[str]:
        return list(dict.fromkeys(label for label in self.labels if label is not None))


@dataclass(frozen=True, eq=False)
class Numbers:
    """A rounded column: the number of each row, NaN where it is missing."""

    values: Floats


def rebuilt(frame: Frame, rows: Counts64, places: Sequence[int], recoded: Mapping[int, Labels | Numbers]) -> Any:
    """Return the rows and columns at those places; columns that are not recoded keep their types.

    pandas keeps the index. A column of categories has categories again; a rounded column has numbers, and any other
    recoded column is text.
    """
    if frame.kind == "pandas":
        return _pandas(frame.native, rows, places, recoded)
    if frame.kind == "polars":
        return _polars(frame.native, rows, places, recoded)
    table = _recoded_arrow(frame.table(), rows, places, recoded)
    if frame.kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table)
    return table


def _pandas(native: Any, rows: Counts64, places: Sequence[int], recoded: Mapping[int, Labels | Numbers]) -> Any:
    pandas = sys.modules["pandas"]  # the caller's table is one of its own, so it was imported
    out = native.iloc[rows, list(places)].copy()
    for at, position in enumerate(places):
        if position not in recoded:
            continue
        column, was = recoded[position], native.dtypes.iloc[position]
        if isinstance(column, Numbers):
            out.isetitem(at, pandas.Series(column.values, index=out.index))
            continue
        values = column.values()
        if isinstance(was, pandas.CategoricalDtype):
            values = pandas.Categorical(values, categories=column.categories)
        text = isinstance(was, pandas.StringDtype) or str(was) == "string[pyarrow]"
        out.isetitem(at, pandas.Series(values, index=out.index, dtype=was if text else None))
    return out


def _polars(native: Any, rows: Counts64, places: Sequence[int], recoded: Mapping[int, Labels | Numbers]) -> Any:
    polars = sys.modules["polars"]
    names = [native.columns[position] for position in places]
    columns = []
    for position, column in recoded.items():
        name = native.columns[position]
        if isinstance(column, Numbers):
            columns.append(polars.Series(name, column.values, nan_to_null=True))
            continue
        text = polars.Series(name, list(column.labels), dtype=polars.String).gather(column.codes)
        categories = native.schema[name] in (polars.Categorical, polars.Enum)
        columns.append(text.cast(polars.Categorical) if categories else text)
    return native.select(names)[rows].with_columns(columns)


def _recoded_arrow(
    table: pa.Table, rows: Counts64, places: Sequence[int], recoded: Mapping[int, Labels | Numbers]
) -> pa.Table:
    out = {}
    for position in places:
        name, cells = table.column_names[position], table.column(position)
        if position in recoded:
            column = recoded[position]
            if isinstance(column, Numbers):
                out[name] = pa.array(column.values, from_pandas=True)
                continue
            text = pa.array(list(column.labels), pa.string()).take(pa.array(column.codes))
            out[name] = text.dictionary_encode() if pa.types.is_dictionary(cells.type) else text
        else:
            view = pa.types.is_string_view(cells.type)  # which Arrow cannot take from
            out[name] = (cells.cast(pa.large_string()) if view else cells).take(pa.array(rows))
    return pa.table(out)
