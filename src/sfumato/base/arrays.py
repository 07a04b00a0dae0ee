"""Array types, and Arrow tables that are made from arrays and lists.

Arrow tables are made from bytes because `pyarrow.table` imports pandas, where it is installed, to check its input. That
costs two thirds of a processor second in every command and every worker process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow


Codes = npt.NDArray[np.int32]
Index = npt.NDArray[np.uint32]
Counts64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


Column = Sequence[str | None] | Sequence[int] | np.ndarray[Any, Any]


def arrow_table(columns: Mapping[str, Column]) -> pyarrow.Table:
    """Return a table of numbers (arrays, or lists of whole numbers) and texts (other lists, None where one is missing).

    >>> arrow_table({"label": ["é", None, ""], "code": np.arange(3, dtype=np.int32), "n": [7, 8, 9]}).to_pylist()[:2]
    [{'label': 'é', 'code': 0, 'n': 7}, {'label': None, 'code': 1, 'n': 8}]
    """
    import pyarrow

    arrays = [_array(values) for values in columns.values()]
    return pyarrow.Table.from_arrays(arrays, names=list(columns))


def _array(values: Column) -> pyarrow.Array:
    import pyarrow

    if not isinstance(values, np.ndarray) and not (values and all(isinstance(value, int) for value in values)):
        return _texts([None if value is None else str(value) for value in values])
    numbers = np.ascontiguousarray(values, dtype=None if isinstance(values, np.ndarray) else np.int64)
    if numbers.dtype.kind not in "iuf":  # texts in an array, or a rare type
        return pyarrow.array(values)
    kind = pyarrow.from_numpy_dtype(numbers.dtype)
    return pyarrow.Array.from_buffers(kind, len(numbers), [None, pyarrow.py_buffer(numbers)])


def _texts(values: Sequence[str | None]) -> pyarrow.Array:
    import pyarrow

    raw = [b"" if value is None else value.encode("utf-8") for value in values]
    ends = np.zeros(len(raw) + 1, np.int64)
    np.cumsum([len(text) for text in raw], out=ends[1:])
    present = np.packbits(np.array([value is not None for value in values], np.bool_), bitorder="little")
    parts = [pyarrow.py_buffer(part) for part in (present, ends, b"".join(raw))]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(raw), parts)


def array_of(table: pyarrow.Table, name: str) -> np.ndarray[Any, Any]:
    """Return a column of numbers of which none is missing, as an array.

    >>> array_of(arrow_table({"n": [7, 8, 9]}), "n").tolist()
    [7, 8, 9]
    """
    column = table.column(name)
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(chunks) if chunks else np.empty(0, column.type.to_pandas_dtype())
