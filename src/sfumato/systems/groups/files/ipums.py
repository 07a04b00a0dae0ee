"""IPUMS extracts: fixed-width or CSV files with a DDI codebook, converted to Parquet with `ipumspy`."""

from __future__ import annotations

import warnings
from pathlib import Path

from sfumato.errors import DataError, StudyError
from sfumato.runtime.atomic import new_file
from sfumato.runtime.inputs import note_input

CHUNK = 200_000


def convert_extract(ddi: Path, path: Path, data: Path | None = None, *, overwrite: bool = False) -> tuple[int, int]:
    """Convert an extract, a chunk at a time; the number of rows and columns. Values stay as the codebook codes them."""
    try:
        from ipumspy import readers
    except ImportError:
        raise StudyError(
            "reading IPUMS extracts needs ipumspy", expected='the extra "ipums"', remedy='pip install "sfumato[ipums]"'
        ) from None
    import pyarrow
    import pyarrow.parquet

    if not ddi.is_file():
        raise DataError(f"there is no file {ddi}", expected="the codebook of an extract")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for a citation, which our docs ask for as well
        codebook = readers.read_ipums_ddi(note_input(ddi))
    extract = data or ddi.parent / codebook.file_description.filename
    if not extract.is_file():
        raise DataError(f"there is no file {extract.name}", expected="the extract beside its codebook, or named")
    writer, rows, columns = None, 0, 0
    with new_file(path, overwrite=overwrite, private=True) as part:
        for chunk in readers.read_microdata_chunked(codebook, note_input(extract), chunksize=CHUNK):
            table = pyarrow.Table.from_pandas(chunk, preserve_index=False)
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(part, table.schema)
            writer.write_table(table.cast(writer.schema))
            rows, columns = rows + table.num_rows, table.num_columns
        if writer is None:
            raise DataError(f"{extract.name} has no rows", expected="an extract with rows")
        writer.close()
    return rows, columns
