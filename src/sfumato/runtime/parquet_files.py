"""Small Parquet files of our own folders, which may come from anybody: a few bytes can stand for billions of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import DataError
from sfumato.runtime.inputs import note_input

if TYPE_CHECKING:
    import pyarrow

MAX_ROWS = 1 << 25


def read_parquet(path: Path, columns: Sequence[str], *, limit: int = MAX_ROWS, expected: str) -> pyarrow.Table:
    """Some columns of whole numbers, unless there are too many rows. What cannot be read is a `DataError`."""
    import pyarrow
    import pyarrow.parquet

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
