"""Arrow tables that are made from arrays and lists, and Parquet files of integers.

Arrow tables are made from bytes because `pyarrow.table` imports pandas, where it is installed, to check its input. That
costs two thirds of a processor second in every command and every worker process. The rows of a Parquet file are counted
before it is read, because a few bytes can encode billions of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from sfumato.base.arrays import Counts64
from sfumato.base.trust import note_input
from sfumato.errors import DataError

Array = np.ndarray[Any, Any]
Column = Sequence[str | None] | Sequence[int] | Array


def arrow_table(columns: Mapping[str, Column]) -> pyarrow.Table:
    """Return a table of numbers (arrays, or lists of whole numbers) and texts (other lists, None where one is missing).

    >>> arrow_table({"label": ["é", None, ""], "code": np.arange(3, dtype=np.int32), "n": [7, 8, 9]}).to_pylist()[:2]
    [{'label': 'é', 'code': 0, 'n': 7}, {'label': None, 'code': 1, 'n': 8}]
    """
    arrays = [_array(values) for values in columns.values()]
    return pyarrow.Table.from_arrays(arrays, names=list(columns))


def _array(values: Column) -> pyarrow.Array:
    if not isinstance(values, np.ndarray) and not (values and all(isinstance(value, int) for value in values)):
        return _texts([None if value is None else str(value) for value in values])
    numbers = np.ascontiguousarray(values, dtype=None if isinstance(values, np.ndarray) else np.int64)
    if numbers.dtype.kind not in "iuf":  # texts in an array, or a rare type
        return pyarrow.array(values)
    kind = pyarrow.from_numpy_dtype(numbers.dtype)
    return pyarrow.Array.from_buffers(kind, len(numbers), [None, pyarrow.py_buffer(numbers)])


def _texts(values: Sequence[str | None]) -> pyarrow.Array:
    raw = [b"" if value is None else value.encode("utf-8") for value in values]
    ends = np.zeros(len(raw) + 1, np.int64)
    np.cumsum([len(text) for text in raw], out=ends[1:])
    present = np.packbits(np.array([value is not None for value in values], np.bool_), bitorder="little")
    parts = [pyarrow.py_buffer(part) for part in (present, ends, b"".join(raw))]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(raw), parts)


def array_of(table: pyarrow.Table, name: str) -> Array:
    """Return a column of numbers of which none is missing, as an array.

    >>> array_of(arrow_table({"n": [7, 8, 9]}), "n").tolist()
    [7, 8, 9]
    """
    column = table.column(name)
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(chunks) if chunks else np.empty(0, column.type.to_pandas_dtype())


MAX_ROWS = 1 << 25
MAX_COLUMNS = 10_000


def read_parquet(path: Path, columns: Sequence[str], *, limit: int = MAX_ROWS, expected: str) -> pyarrow.Table:
    """Return some columns of whole numbers, unless there are too many rows. Any other file is a `DataError`."""
    try:
        with pyarrow.parquet.ParquetFile(note_input(path)) as file:
            if file.metadata.num_rows > limit:
                raise DataError(f"{path} has more than {limit:,} rows", expected=expected)
            kinds = {name: file.schema_arrow.field(name).type for name in columns}
            if not all(pyarrow.types.is_integer(kind) for kind in kinds.values()):
                raise DataError(f"{path} cannot be read: its columns are not whole numbers", expected=expected)
            table = file.read(list(columns))
    except (OSError, KeyError, ValueError, TypeError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read", expected=expected) from error
    if any(table.column(name).null_count for name in columns):
        raise DataError(f"{path} cannot be read: it lacks cells", expected=expected)
    return table


def write_numbers(path: Path, columns: Mapping[str, Counts64]) -> None:
    """Write named columns of whole numbers of one length."""
    pyarrow.parquet.write_table(arrow_table(columns), path)


def read_numbers(path: Path, *, expected: str) -> dict[str, Counts64]:
    """Return the columns that `write_numbers` wrote, whatever their names."""
    try:
        names = pyarrow.parquet.read_schema(path).names
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read", expected=expected) from error
    if len(names) > MAX_COLUMNS or len(set(names)) < len(names):
        raise DataError(f"{path} has too many columns, or two of one name", expected=expected)
    table = read_parquet(path, names, limit=MAX_ROWS // max(len(names), 1), expected=expected)
    return {name: array_of(table, name) for name in names}
