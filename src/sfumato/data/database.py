"""Tables of PostgreSQL and SQLite, which are read through ADBC as Arrow batches.

A password comes from the environment (PGPASSWORD, PGPASSFILE, PGSERVICE …, as for any PostgreSQL client) or from the
password file that the run file names. It is never in a run file, and no message of a driver is ever shown.

The fingerprint of such a table is a SHA-256 over its columns' names and types and the sorted SHA-256 digests of its
rows. The digests are sorted because the order of rows in a database has no meaning and may change.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow

from sfumato.base.trust import note_input
from sfumato.data.failures import failure
from sfumato.data.settings import SQLITE, DataSettings, connectable, quoted_name, quoted_table
from sfumato.errors import DataError, InputError, StudyError, nearest, shortened

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor


def explained(error: Exception, title: str) -> InputError:
    """Return our error for a driver's error, whose text may quote rows, names and addresses."""
    state, text = getattr(error, "sqlstate", None) or "", str(error)
    if isinstance(error, OSError):
        return broke_off(title)
    if found := failure("database", f"{state} {text}"):
        return DataError(f"{title}: {found[0]}", **found[1])
    return DataError(
        f"{title} cannot be read" + (f" (SQLSTATE {state})" if state else ""),
        expected="a table or query that the database can read completely",
    )


def broke_off(title: str) -> DataError:
    return DataError(
        f"{title}: the connection was lost before the last row",
        expected="a stable connection",
        remedy="run it again; nothing was saved",
    )


def driver(path: str) -> tuple[Callable[[str], Connection], type[Exception]]:
    """Return the function that connects to a database, and the error class of the driver."""
    package = "adbc_driver_sqlite" if path.startswith(SQLITE) else "adbc_driver_postgresql"
    try:
        return import_module(f"{package}.dbapi").connect, import_module("adbc_driver_manager").Error
    except ImportError:
        raise InputError(
            "reading from a database needs a driver that is not installed",
            expected="the extra db",
            remedy="pip install 'sfumato[db]'",
        ) from None


def address_of(path: str, password_file: str | None, folder: Path) -> str:
    """Return the address as the driver takes it."""
    if path.startswith(SQLITE):
        file = (folder / path.removeprefix(SQLITE)).absolute()
        if not file.is_file():
            raise DataError(
                f"there is no file {file}",
                expected="an SQLite file",
                remedy="check the path; it is relative to the run file",
            )
        return f"file:{quote(str(note_input(file)))}?mode=ro"
    if password_file is None:
        return connectable(path, None)
    named = (folder / password_file).absolute()
    if not named.is_file():
        raise InputError(f"there is no password file {named}", expected="a file in the format of PostgreSQL's pgpass")
    if named.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            f"the password file {named} can be read by others",
            expected="a file that only you can read",
            remedy=f"chmod 600 {named}",
        )
    return connectable(path, note_input(named))


# What PostgreSQL gives as Arrow and DuckDB takes as a type of its own; anything else PostgreSQL writes as text.
PLAIN = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "bpchar": "VARCHAR",
}
# In SQLite each cell has a type of its own: the highest one of a column decides. Bytes cannot be read.
KINDS = "CASE typeof({0}) WHEN 'null' THEN 0 WHEN 'integer' THEN 1 WHEN 'real' THEN 2 WHEN 'text' THEN 3 ELSE 4 END"
READ_AS = {1: ("BIGINT", "{0}", "0"), 2: ("DOUBLE", "CAST({0} AS REAL)", "0.0")}
TEXT_CELL = ("VARCHAR", "CAST({0} AS TEXT)", "''")
MISSING_TABLE = re.compile(r"SQLSTATE: 42P01|no such table")


class Database:
    """A table or a query of a database. `digest` is the digest of the rows that were read last by `scan`."""

    def __init__(self, settings: DataSettings, folder: Path, scan: Callable[[Any], None]) -> None:
        self.scan = scan
        self.path, self.table = settings.path, settings.table
        self.sqlite = settings.path.startswith(SQLITE)
        self.digest: str | None = None
        self._address = address_of(settings.path, settings.password_file, folder)
        if (settings.table is None) == (settings.query is None):
            raise StudyError(
                "a database needs a table or a query" + (", not both" if settings.table else ""),
                expected='table = "people" or query = "SELECT …" under [data]',
                remedy="" if settings.table else f"tables: {shortened(self.tables(), 24)}",
            )
        asked = (settings.query or f"SELECT * FROM {quoted_table(str(settings.table))}").strip().rstrip(";")
        self._from = f"FROM ({asked}) AS t"
        self._cells: list[str] = []
        self._first = "1"
        self.names: list[str] = []
        self.types: list[str] = []
        self._look()

    @property
    def title(self) -> str:
        """How messages call it: never with its whole address."""
        where = self.path.removeprefix(SQLITE).rpartition("/")[2].partition("?")[0]
        return f"{self.table or 'the query'} of {where or 'the database'}"

    @property
    def file_name(self) -> str:
        """The name of a file that is released from it."""
        return (re.sub(r"\W+", "-", self.table or "query").strip("-") or "table") + ".parquet"

    def tables(self) -> list[str]:
        """Return the tables there are to read."""
        sql = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            if self.sqlite
            else "SELECT CASE WHEN table_schema = current_schema() THEN '' ELSE table_schema || '.' END || table_name "
            "FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
        )
        with self._connected() as cursor:
            cursor.execute(sql)
            return [str(row[0]) for row in cursor.fetchall()]

    @contextmanager
    def batches(self) -> Iterator[tuple[pyarrow.RecordBatchReader, list[DataError]]]:
        """Return the rows as an Arrow reader, and a list that holds an error if they end too early.

        Columns are `mark` (rows with 0 are the table's), then `c0`, `c1`, …
        """
        cells = ", ".join(["0 AS mark", *(f"{cell} AS c{position}" for position, cell in enumerate(self._cells))])
        # SQLite's driver takes the types from the first row, so the first row is ours, and marked.
        before = f"SELECT {self._first} UNION ALL " if self.sqlite else ""
        with self._connected() as cursor:
            cursor.execute(f"{before}SELECT {cells} {self._from}")
            reader = cursor.fetch_record_batch()
            failed: list[DataError] = []
            yield _renamed(reader, self.title, failed), failed

    def note(self, digests: Iterable[str]) -> None:
        """Take note of the rows that were read, by their sorted digests."""
        result = hashlib.sha256(repr(list(zip(self.names, self.types, strict=True))).encode())
        for digest in digests:
            result.update(digest.encode())
        if self.digest not in (None, result.hexdigest()):
            raise DataError(
                f"{self.title} changed between two readings",
                expected="a table that does not change while it is read",
                remedy="run it again, or read a copy of the table",
            )
        self.digest = result.hexdigest()

    @contextmanager
    def _connected(self) -> Iterator[Cursor]:
        connect, error_type = driver(self.path)
        try:
            with connect(self._address) as connection, connection.cursor() as cursor:
                yield cursor
        except (error_type, OSError) as error:
            if MISSING_TABLE.search(str(error)):
                raise self._no_table() from None
            raise explained(error, self.title) from None

    def _no_table(self) -> DataError:
        known: list[str] = []
        with suppress(InputError):
            known = self.tables()
        remedy = nearest(self.table, known) if self.table and known else "check the names and schemas of its tables"
        return DataError(f"{self.title}: there is no such table", expected="a table of the database", remedy=remedy)

    def _look(self) -> None:
        """Find the columns, and the way in which each is read."""
        with self._connected() as cursor:
            cursor.execute(f"SELECT * {self._from} LIMIT 0")
            schema = cursor.fetch_record_batch().schema
            self.names = list(schema.names)
            if self.sqlite:
                self._look_at_cells(cursor)
            else:
                self._look_at_types(schema)

    def _look_at_types(self, schema: pyarrow.Schema) -> None:
        for field in schema:
            about = field.metadata or {}
            kind, cell = about.get(b"POSTGRESQL:type", b"").decode(), quoted_name(field.name)
            cell = f"NULLIF({cell}, 'NaN')" if kind == "numeric" else cell
            self._cells.append(cell if kind in PLAIN else f"CAST({cell} AS text)")
            exact = _decimal(int(about.get(b"POSTGRESQL:typmod", b"-1")))
            self.types.append(exact if kind == "numeric" else PLAIN.get(kind, "VARCHAR"))

    def _look_at_cells(self, cursor: Cursor) -> None:
        cells = [quoted_name(name) for name in self.names]
        cursor.execute("SELECT " + ", ".join(f"max({KINDS.format(cell)})" for cell in cells) + f" {self._from}")
        kinds = [int(kind or 0) for kind in cursor.fetchone()]
        bytes_in = [name for name, kind in zip(self.names, kinds, strict=True) if kind == 4]
        if bytes_in:
            raise DataError(
                f"columns with bytes in them: {shortened(bytes_in)}",
                expected="text and numbers",
                remedy="query = … with the other columns",
            )
        for cell, kind in zip(cells, kinds, strict=True):
            type_, asked, sample = READ_AS.get(kind, TEXT_CELL)
            self.types.append(type_)
            self._cells.append(asked.format(cell))
            self._first += f", {sample}"


def _renamed(reader: pyarrow.RecordBatchReader, title: str, failed: list[DataError]) -> pyarrow.RecordBatchReader:
    kinds = [field.type for field in reader.schema]
    schema = pyarrow.schema([("mark", kinds[0]), *((f"c{position}", kind) for position, kind in enumerate(kinds[1:]))])

    def batches() -> Iterator[pyarrow.RecordBatch]:
        try:
            for batch in reader:
                yield pyarrow.record_batch(batch.columns, schema=schema)
        except OSError:  # the driver's text is not for showing; the engine would print it
            failed.append(broke_off(title))
            raise OSError("rows are missing at the end") from None

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def _decimal(modifier: int) -> str:
    """Return the type of a numeric column with declared digits: exact where they are known and few enough.

    >>> _decimal(327686), _decimal(-1)
    ('DECIMAL(5, 2)', 'DOUBLE')
    """
    digits, scale = (modifier - 4) >> 16, (modifier - 4) & 0xFFFF
    return f"DECIMAL({digits}, {scale})" if modifier > 4 and digits <= 38 and scale <= digits else "DOUBLE"
