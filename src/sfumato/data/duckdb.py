"""The engine DuckDB: embedded, out of core, without network access."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import duckdb
import pyarrow

from sfumato.base.arrow import arrow_table
from sfumato.base.files import Scratch, new_file, sweep
from sfumato.base.progress import Recorder, active
from sfumato.data.csv import NATIVE_ENCODINGS, not_in_encoding
from sfumato.data.database import Database
from sfumato.data.settings import EngineOptions, quoted_name
from sfumato.data.source import STREAMED, Arrays, Cells, Change, Row, Source, engine_name, transcoded
from sfumato.data.treatment import attach_treated
from sfumato.errors import DataError, InputError, MemoryLimitError, SfumatoError, StudyError, counted

UNREADABLE = (duckdb.IOException, duckdb.InvalidInputException, duckdb.ConversionException)
LOOK = 0.5  # seconds between two reports of progress
# Our functions for what engines do differently (data/engine.py). This engine defines their meaning.
MACROS = {
    "trimmed": "trim(x)",
    "double_text": "CAST(x AS VARCHAR)",
    "float_text": "CAST(x AS VARCHAR)",
    "digest": "sha256(x)",
    "hex_number": "CAST('0x' || x AS UBIGINT)",
}
LINE = re.compile(r"CSV Error on Line: (\d+)")
WIDTHS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_most: int | None = None  # limit in bytes for any engine of this process


def bound_memory(limit: int) -> None:
    """Limit the memory of every engine of this process, whatever its options are."""
    global _most
    _most = limit


class DuckEngine:
    """One in-memory DuckDB; large intermediate results spill to a temporary folder of its own."""

    name = "duckdb"
    ordered = True

    def __init__(self, options: EngineOptions) -> None:
        sweep(options.folder())
        self._scratch = Scratch(parent=options.temp_folder)
        self._folder = self._scratch.path
        # These two are on by default and would use the network.
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": str(self._folder / "spill"),
        }
        if options.memory_limit is not None:
            config["memory_limit"] = options.memory_limit
        if options.threads is not None:
            config["threads"] = str(options.threads)
        try:
            self._connection = duckdb.connect(":memory:", config=config)
            with suppress(duckdb.Error):  # in a notebook it asks for ipywidgets, which nothing else needs
                # Progress is tracked but not printed.
                self._connection.execute("SET enable_progress_bar = true")
                self._connection.execute("SET enable_progress_bar_print = false")
            self._bound()
            for name, meaning in MACROS.items():
                self._connection.execute(f"CREATE MACRO {name}(x) AS {meaning}")
        except duckdb.Error as error:
            self._scratch.close()
            raise StudyError(
                "the engine refuses its options", expected='memory_limit such as "2GB", threads from 1'
            ) from error
        self._sources: list[Source] = []
        self._frames: dict[str, pyarrow.Table] = {}

    def _bound(self) -> None:
        """Lower the memory limit of the engine to that of the process, if it is higher."""
        if _most is None:
            return
        result = self._connection.execute("SELECT value FROM duckdb_settings() WHERE name = 'memory_limit'").fetchone()
        number, unit = str(result[0] if result else "").split()
        if float(number) * UNITS.get(unit, 1 << 50) > _most:
            self._connection.execute(f"SET memory_limit = '{_most}B'")

    def attach(self, source: Source, view: str) -> None:
        if source.untreated is not None:
            attach_treated(self, source, source.untreated, view, "CREATE OR REPLACE VIEW")
            return
        if source.frame is not None:
            # The engine reads the buffers of the table without a copy.
            names = [column.sql for column in source.columns]
            self._frames[f"{view}_frame"] = source.frame.table().rename_columns(names)
            self._connection.register(f"{view}_frame", self._frames[f"{view}_frame"])
            rows = f"SELECT * FROM {view}_frame"
        elif source.database is not None:
            self._read(source, source.database, view)
            rows = f"SELECT * FROM {view}_rows"
        else:
            readable = transcoded(source, self._folder / f"utf8-{len(self._sources)}")
            self._sources.append(readable)
            rows = scan(readable, self._folder)
        self.run(f"CREATE OR REPLACE VIEW {view} AS {rows}")
        self.run(f"CREATE OR REPLACE VIEW {view}_numbered AS SELECT row_number() OVER () AS r, * FROM {view}")

    def _read(self, source: Source, database: Database, view: str) -> None:
        """Copy the rows of a database to a table once, so that all figures are from the same moment."""
        cells = ", ".join(
            f"CAST(c{position} AS {type_}) AS c{position}" for position, type_ in enumerate(database.types)
        )
        rows = f"SELECT {cells} FROM incoming WHERE mark = 0"
        with database.batches() as (reader, failed):
            self._connection.register("incoming", reader)
            try:
                self._connection.execute(f"CREATE OR REPLACE TABLE {view}_rows AS {rows}")
            except duckdb.Error as error:
                raise failed[0] if failed else self._explained(error) from None
            finally:
                self._connection.unregister("incoming")
        texts = (f"CAST({column.sql} AS VARCHAR)" for column in source.columns)
        row = " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)
        digests = self._connection.sql(f"SELECT sha256({row}) AS d FROM {view}_rows ORDER BY d")
        batches = digests.to_arrow_reader(100_000)
        database.note(digest for batch in batches for digest in batch.column(0).to_pylist())

    def run(self, sql: str) -> None:
        with self._watched():
            self._connection.execute(sql)

    def rows(self, sql: str) -> list[Row]:
        with self._watched():
            return self._connection.execute(sql).fetchall()

    def arrays(self, sql: str) -> Arrays:
        with self._watched():
            return dict(self._connection.execute(sql).fetchnumpy())

    def upload(self, name: str, columns: Mapping[str, Cells]) -> None:
        self._connection.register("uploaded", arrow_table(columns))
        self.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM uploaded")
        self._connection.unregister("uploaded")

    def write(self, sql: str, path: Path, like: Source, names: Sequence[str]) -> None:
        listed = ", ".join(f"c{i} AS {quoted_name(name)}" for i, name in enumerate(names))
        dialect = like.dialect
        if dialect is None:
            options = "FORMAT parquet"
        else:
            # What reads a dialect must read it back, so the quote is forced only where a cell needs it.
            quote = f", QUOTE {quoted(dialect.quote)}, ESCAPE {quoted(dialect.quote)}" if dialect.quote else ""
            header = "true" if dialect.header else "false"
            options = f"FORMAT csv, DELIMITER {quoted(dialect.separator)}{quote}, HEADER {header}"
            if path.suffix == ".gz":
                options += ", COMPRESSION gzip"
        with new_file(path, overwrite=True) as part, self._watched():
            try:
                self._connection.execute(f"COPY (SELECT {listed} FROM ({sql})) TO {quoted(str(part))} ({options})")
            except duckdb.IOException:
                raise InputError(
                    f"{path.name} could not be written", expected="a folder with free space", remedy="free some space"
                ) from None

    def hashed(self, cells: Sequence[str]) -> str:
        return f"hash({', '.join(cells)})"

    def stream(self, sql: str, change: Change, view: str) -> None:
        with self._watched():
            # A second cursor reads while the first one writes; what is held at a time is a batch.
            self._reading = self._connection.cursor()
            for name, table in self._frames.items():  # which are known to one connection only
                self._reading.register(name, table)
            reader = self._reading.sql(sql).to_arrow_reader(STREAMED)
        empty = pyarrow.record_batch([pyarrow.array([], field.type) for field in reader.schema], schema=reader.schema)
        changed = (change(batch) for batch in reader)
        self._connection.register(view, pyarrow.RecordBatchReader.from_batches(change(empty).schema, changed))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._scratch.close()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Report the progress of a statement to a listener. Ctrl-C stops the statement, and errors become ours."""
        ended, recorder = threading.Event(), active()
        watcher = None
        if recorder is not None and recorder.heard:
            watcher = threading.Thread(target=self._look, args=(recorder, ended), daemon=True)
            watcher.start()
        try:
            yield
        except duckdb.Error as error:
            raise self._explained(error) from None  # its text holds rows
        except RuntimeError as error:
            if "interrupt" in str(error).lower():
                raise KeyboardInterrupt from None
            raise
        finally:
            ended.set()
            if watcher is not None:
                watcher.join()

    def _look(self, recorder: Recorder, ended: threading.Event) -> None:
        while not ended.wait(LOOK):
            share = self._connection.query_progress()
            recorder.share(share / 100 if share > 0 else None)

    def _explained(self, error: duckdb.Error) -> SfumatoError:
        """Return our error for an engine's error, whose text would print a row with sensitive values."""
        message = str(error)
        if isinstance(error, duckdb.OutOfMemoryException):
            return MemoryLimitError(
                "the table does not fit the engine's memory limit",
                expected="enough memory, or disk space for temporary files",
                remedy="raise memory_limit, or set temp_folder to a disk with free space, under [engine_options]",
            )
        line = LINE.search(message)
        if line is None and self._sources and isinstance(error, UNREADABLE):
            return DataError(
                f"{self._sources[-1].path.name} could not be read completely ({type(error).__name__})",
                expected="a complete file, written in one format throughout",
                remedy="check the line ends, the quotes and that the file is complete; if there are several "
                "files, that they have the same format",
            )
        if line is None or not self._sources:
            return SfumatoError(f"the engine failed ({type(error).__name__})", remedy="please report it with its trace")
        source = self._sources[-1]
        if "unicode" in message:
            encoding = source.dialect.encoding if source.dialect else "utf-8"
            return not_in_encoding(source.path.name, encoding, int(line[1]))
        widths = WIDTHS.search(message)
        if widths:
            count, first = self._rejected(source)
            return DataError(
                f"{counted(count, 'row does', 'rows do')} not have {widths[1]} fields; "
                f"the first is line {first or line[1]}, with {widths[2]}",
                expected=f"{widths[1]} fields in every row",
                remedy="correct those lines, or check the separator and the quotes",
            )
        return DataError(
            f"line {line[1]} of {source.path.name} cannot be read",
            expected="closed quotes and text in the declared encoding",
            remedy='quote = "" under [data] if the file does not quote its values',
        )

    def _rejected(self, source: Source) -> tuple[int, int]:
        """Return how many rows the reader refuses, and the first of their line numbers."""
        try:
            self._connection.execute(f"SELECT count(*) FROM ({scan(source, self._folder, rejects=True)})").fetchall()
            result = self._connection.execute("SELECT count(DISTINCT line), min(line) FROM reject_errors").fetchone()
        except duckdb.Error:
            return 1, 0
        return (int(result[0]), int(result[1])) if result and result[0] else (1, 0)


def quoted(text: str) -> str:
    """Return a text literal of this engine as one token, as the name of a file must be."""
    return "'" + text.replace("'", "''") + "'"


def scan(source: Source, folder: Path, rejects: bool = False) -> str:
    """Return the SELECT that reads a source, its columns named by position; `folder` is for links to its files."""
    files = "[" + ", ".join(quoted(engine_name(file, folder)) for file in source.files) + "]"
    if source.dialect is None:
        listed = ", ".join(f"{quoted_name(native)} AS c{i}" for i, native in enumerate(source.native_names))
        return f"SELECT {listed} FROM read_parquet({files}, hive_partitioning=false)"
    dialect = source.dialect
    columns = ", ".join(f"'{column.sql}': 'VARCHAR'" for column in source.columns)
    options = [
        "auto_detect=false",
        f"delim={quoted(dialect.separator)}",
        f"quote={quoted(dialect.quote)}",
        f"escape={quoted(dialect.quote)}",
        f"header={'true' if dialect.header else 'false'}",
        f"encoding={quoted(NATIVE_ENCODINGS[dialect.encoding])}",
        f"skip={dialect.skip}",
        "hive_partitioning=false",
        f"columns={{{columns}}}",
    ]
    if rejects:
        options.append("store_rejects=true, rejects_limit=0")
    return f"SELECT * FROM read_csv({files}, {', '.join(options)})"
