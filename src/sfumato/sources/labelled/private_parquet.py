"""Parquet that only its owner can read, written batch by batch, with columns called `c0`, `c1`, …"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

TYPES = {
    "string": "VARCHAR",
    "double": "DOUBLE",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP",
    "bool": "BOOLEAN",
}


class PrivateParquet:
    """A file that is written in a scratch folder; `types` are Arrow's, one for each column."""

    def __init__(self, path: Path, types: Sequence[Any]) -> None:
        import pyarrow
        import pyarrow.parquet

        self.path = path
        self._schema = pyarrow.schema([(f"c{position}", type_) for position, type_ in enumerate(types)])
        with suppress(FileNotFoundError):
            path.unlink()
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._writer = pyarrow.parquet.ParquetWriter(self._file, self._schema)

    def write(self, arrays: Sequence[Any]) -> None:
        import pyarrow

        self._writer.write_table(pyarrow.Table.from_arrays(list(arrays), schema=self._schema))

    @property
    def types(self) -> list[str]:
        """The types as the engine calls them."""
        return [TYPES[str(field.type)] for field in self._schema]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self._file.close()
