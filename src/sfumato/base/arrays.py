"""Array types, Arrow tables that are made from arrays and lists, and sorting in compiled loops.

Arrow tables are made from bytes because `pyarrow.table` imports pandas, where it is installed, to check its input. That
costs two thirds of a processor second in every command and every worker process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.base.compiled import compiled

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


RUN = 8  # up to this number, insertion sort is faster


@compiled
def sort_by(keys: Floats | npt.NDArray[np.integer], places: Codes, number: int, spare: Codes) -> None:
    """Sort the first `number` places by their keys. Equal keys keep their order. `spare` is a buffer of this size.

    numpy's own sorts take seconds to compile into a loop.

    >>> places = np.array([0, 1, 2, 3], dtype=np.int32)
    >>> sort_by(np.array([2.0, 1.0, 2.0, 0.0]), places, 4, np.empty(4, dtype=np.int32))
    >>> places.tolist()
    [3, 1, 0, 2]
    """
    # Short runs are sorted by insertion and then merged, which is stable and needs one buffer.
    for begin in range(0, number, RUN):
        for i in range(begin + 1, min(begin + RUN, number)):
            one = places[i]
            key = keys[one]
            j = i
            while j > begin and keys[places[j - 1]] > key:
                places[j] = places[j - 1]
                j -= 1
            places[j] = one
    width = RUN
    while width < number:
        for begin in range(0, number, 2 * width):
            middle, end = min(begin + width, number), min(begin + 2 * width, number)
            a, b = begin, middle
            for at in range(begin, end):
                if a < middle and (b >= end or keys[places[a]] <= keys[places[b]]):
                    spare[at] = places[a]
                    a += 1
                else:
                    spare[at] = places[b]
                    b += 1
        for at in range(number):
            places[at] = spare[at]
        width *= 2
