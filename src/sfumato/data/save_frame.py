"""Saving of a table in memory as a Parquet file that is read back as the same table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.data.source import Source
from sfumato.errors import DataError, shortened


def write_frame(source: Source, path: Path) -> Path:
    """Write a table in memory as Parquet. Raise a `DataError` if a column would be read back differently."""
    import pyarrow
    import pyarrow.parquet

    if source.frame is None:
        raise DataError(f"{source.title} is not in memory", expected="a table in memory")
    table = _plain_table(source.frame.table()).rename_columns(list(source.names))
    try:
        pyarrow.parquet.write_table(table, path)
    except (pyarrow.ArrowException, OSError) as error:  # its text may hold values
        raise DataError(
            f"the table could not be written as Parquet ({type(error).__name__})",
            expected="columns that Parquet has a type for, and a folder with free space",
        ) from None
    written = open_source(DataSettings(path=str(path), digest="content"))
    pairs = zip(source.columns, written.columns, strict=True)
    changed = [ours.name for ours, theirs in pairs if ours.type != theirs.type]
    if changed or written.fingerprint != source.fingerprint:
        raise DataError(
            f"{shortened(changed) or 'the table'} would not be read back from Parquet as it is in memory",
            expected="columns of numbers, text, dates, times, true or false, categories",
            remedy="turn the column into text or a number first",
        )
    return path


def _plain_table(table: Any) -> Any:
    """Return the table without categories and views of text: both become text, which every reader of Parquet knows."""
    import pyarrow

    columns = {}
    for position, field in enumerate(table.schema):
        cells = table.column(position)
        if pyarrow.types.is_dictionary(field.type):
            held = field.type.value_type
            held = pyarrow.large_string() if pyarrow.types.is_string_view(held) else held
            cells = pyarrow.chunked_array([c.dictionary.cast(held).take(c.indices) for c in cells.chunks], held)
        elif pyarrow.types.is_string_view(field.type):
            cells = cells.cast(pyarrow.large_string())
        columns[f"c{position}"] = cells
    return pyarrow.table(columns)
