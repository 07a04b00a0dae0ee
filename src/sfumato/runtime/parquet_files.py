"""Small Parquet files of our own folders, which may come from anybody: a few bytes can stand for billions of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import DataError
from sfumato.runtime.arrays import Counts64
from sfumato.runtime.arrow import array_of, arrow_table
from sfumato.runtime.inputs import note_input

if TYPE_CHECKING:
    import pyarrow

MAX_ROWS = 1 << 25
MAX_COLUMNS = 10_000


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


def write_numbers(path: Path, columns: Mapping[str, Counts64]) -> None:
    """Named columns of whole numbers, of one length."""
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow_table(columns), path)


def read_numbers(path: Path, *, expected: str) -> dict[str, Counts64]:
    """The columns that `write_numbers` wrote, whatever their names."""
    import pyarrow
    import pyarrow.parquet

    try:
        names = pyarrow.parquet.read_schema(path).names
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read", expected=expected) from error
    if len(names) > MAX_COLUMNS or len(set(names)) < len(names):
        raise DataError(f"{path} has too many columns, or two of one name", expected=expected)
    table = read_parquet(path, names, limit=MAX_ROWS // max(len(names), 1), expected=expected)
    return {name: array_of(table, name) for name in names}
