"""A table where it is: its columns, and a fingerprint that changes when a byte of it does.

Names of files and texts as an engine can be given them: it reads some characters as a pattern, an escape or more.

The mark that a disguised file carries beside itself: FILE.channel.json, with the channel that made it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from sfumato.base.formats import read_json
from sfumato.data.codebook import Codebook
from sfumato.data.csv import Dialect
from sfumato.data.frame import Frame, file_digest
from sfumato.data.settings import DataSettings
from sfumato.errors import DataError, InputError, MeasureError, shortened

if TYPE_CHECKING:
    from sfumato.data.database import Database


TEXT = "VARCHAR"
STREAMED = 200_000  # rows that are changed at a time
Row = tuple[Any, ...]  # of a result: its types are those of the query
Cells = Sequence[Any] | np.ndarray[Any, Any]
Arrays = dict[str, np.ndarray[Any, Any]]
Change = Callable[[pa.RecordBatch], pa.RecordBatch]


class Treated(Protocol):
    """A treatment of a column when it is read. `data.treatment` has the kinds."""

    def sql(self, source: Source, column: Column) -> str:
        """Return the treated value of a column."""

    def expects(self) -> str:
        """Return which values can be treated."""

    def type_of(self, column: Column) -> str:
        """Return the type of the treated column."""

    def labels(self, decimal: str) -> tuple[str, ...]:
        """Return the labels of bands, from the lowest."""


@dataclass(frozen=True)
class Column:
    """A column of the source: its name as written, its type, and its position.

    SQL names a column by its position (`c0`, `c1`, …), so that any name in a file is harmless.
    """

    name: str
    type: str
    position: int

    @property
    def sql(self) -> str:
        return f"c{self.position}"

    @property
    def is_text(self) -> bool:
        return self.type == TEXT


@dataclass(frozen=True)
class Source:
    """A readable table. `open_source` makes it from the beginning of a table, without reading its rows.

    `path` is the user's text. The rows are read from `files`, which are the files that it named when it was opened.
    The `originals` are the user's own files where they were converted, and `held` keeps the conversion. `codebook` has
    the labels of columns and values. Where columns are treated (`data.treatment`), `untreated` is the source before.
    """

    path: Path
    format: str
    columns: tuple[Column, ...]
    settings: DataSettings
    dialect: Dialect | None = None
    native_names: tuple[str, ...] = ()
    database: Database | None = None
    frame: Frame | None = None
    files: tuple[Path, ...] = ()
    originals: tuple[Path, ...] = ()
    held: object = None
    codebook: Codebook = field(default_factory=Codebook, repr=False)
    untreated: Source | None = field(default=None, repr=False)
    treatments: Mapping[str, Treated] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name of the source in messages."""
        if self.frame is not None:
            return "the table in memory"
        return self.path.name if self.database is None else self.database.title

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def decimal(self) -> str:
        """The decimal mark of its numbers."""
        return self.dialect.decimal if self.dialect else "."

    def column(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the bytes of every file, in name order; of a database or a frame, over what it holds."""
        if self.frame is not None:
            return self.frame.digest()
        if self.settings.digest == "content" and self.format == "parquet" and self.files:
            return file_digest(self.files)
        if self.database is not None:
            if self.database.digest is None:
                self.database.scan(self)
            return self.database.digest or ""  # of the rows that were read last, which are the measured ones
        digest = hashlib.sha256()
        for file in self.originals or self.files:
            with file.open("rb") as stream:
                while block := stream.read(1 << 22):
                    digest.update(block)
        return digest.hexdigest()


def transcoded(source: Source, folder: Path) -> Source:
    """Return the same source as plain UTF-8 in `folder`, where the engine cannot read it as it is."""
    dialect = source.dialect
    if dialect is None or dialect.native:
        return source
    folder.mkdir(parents=True, exist_ok=True)
    files = tuple(folder / f"{number}.csv" for number in range(len(source.files)))
    for file, target in zip(source.files, files, strict=True):
        _transcode(file, target, dialect.encoding)
    return replace(source, files=files, dialect=replace(dialect, encoding="utf-8", mixed_ends=False))


def _transcode(file: Path, target: Path, encoding: str) -> None:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as raw:
        reader = io.TextIOWrapper(raw, encoding=encoding, newline=None)  # any line end becomes one
        private = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(private, "w", encoding="utf-8", newline="") as out:
            try:
                while block := reader.read(1 << 20):
                    out.write(block)
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{file.name} is not {encoding.upper()}: {error.reason}",
                    expected=f"text in {encoding.upper()}",
                ) from error


PATTERN = re.compile(r"([*?\[])")
ODD = re.compile(r"[*?\[\]{}\\#%\x00-\x1f\x7f\ud800-\udfff]")  # the last are bytes that are not UTF-8
ENDINGS = re.compile(r"(\.[A-Za-z0-9]+){0,2}$")  # the endings by which the engine recognizes a compressed file


def engine_name(file: Path, folder: Path) -> str:
    """Return a path that DuckDB reads as this file. For special characters it is a link, which is made in `folder`.

    DuckDB cannot escape all names: a backslash next to a bracket has no escape, and the ending of a compressed file is
    not recognized after a question mark.
    """
    path = file.absolute()
    if ODD.search(str(path)):
        ending = ENDINGS.search(path.name)
        link = folder.absolute() / f"{secrets.token_hex(8)}{ending[0] if ending else ''}"
        link.symlink_to(path)
        path = link
    return PATTERN.sub(r"[\1]", str(path))  # the folder of the links may be odd as well


def quoted(text: str) -> str:
    r"""Return a text literal in SQL. A backslash is written by its number, because some engines take it as an escape.

    >>> print(quoted("it's"), quoted("a\\b"))
    'it''s' ('a' || chr(92) || 'b')
    """
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\\")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(92) || ".join(parts) + ")"


SUFFIX = ".channel.json"


def mark_of(path: Path) -> Path:
    """Return the path of the mark of a file.

    >>> mark_of(Path("out/survey.csv")).name
    'survey.csv.channel.json'
    """
    return path.with_name(path.name + SUFFIX)


def disguised_columns(path: Path) -> list[str]:
    """Return the columns of a file that a channel has disguised, by its mark."""
    try:
        return [str(name) for name in read_json(mark_of(path))["notes"]["disguised"]]
    except (InputError, KeyError, TypeError):
        return []


def refuse_disguised(path: Path, measured: list[str]) -> None:
    """Refuse disguised columns: measures of frequencies are not defined for random values (docs/readings.md, 3.7)."""
    result = [name for name in disguised_columns(path) if name in measured]
    if result:
        raise MeasureError(
            f"{shortened(result)} in {path.name} is disguised by randomized response: k-anonymity and the other "
            "measures of equivalence classes are not defined for it",
            expected="columns whose values are the records' own; a class of equal reports is no class of equal people",
            remedy='external.html beside it says what the disguise guarantees; role = "drop" measures the others',
        )
