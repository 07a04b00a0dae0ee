"""The files of an archive (zip) that may come from anybody: named ones alone, in memory, within limits.

Nothing is unpacked to disk, and no name in the archive becomes a path.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from sfumato.errors import DataError
from sfumato.runtime.inputs import note_input

MOST_ENTRIES = 4_096
MOST_BYTES = 2 << 30  # of one file, unpacked
PART = 1 << 20


class Archive:
    """An open archive. Its files are asked for by name."""

    def __init__(self, path: Path, expected: str) -> None:
        self.path, self.expected = path, expected
        try:
            self._zip = zipfile.ZipFile(note_input(path))
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise DataError(f"{path} cannot be opened as an archive: {error}", expected=expected) from error
        names = [entry.filename for entry in self._zip.infolist()]
        if len(names) > MOST_ENTRIES or len(names) != len(set(names)):
            raise DataError(f"{path} holds too many files, or two of one name", expected=expected)
        self._names = frozenset(names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        return sorted(self._names)

    def read(self, name: str, limit: int = MOST_BYTES) -> bytes:
        """One file, unless it is larger than allowed, whatever the archive says of its size."""
        if name not in self._names:
            raise DataError(f"{self.path} holds no {name}", expected=self.expected)
        parts, size = [], 0
        try:
            with self._zip.open(name) as stream:
                while part := stream.read(PART):
                    size += len(part)
                    if size > limit:
                        raise DataError(
                            f"{name} in {self.path} is larger than {limit >> 20:,} MiB", expected=self.expected
                        )
                    parts.append(part)
        except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, NotImplementedError, OSError) as error:
            raise DataError(f"{name} in {self.path} cannot be read: {error}", expected=self.expected) from error
        return b"".join(parts)

    def close(self) -> None:
        self._zip.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
