"""Reading of files with Spark as DuckDB reads them, and atomic writing of folders of parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet

from sfumato.base.files import Scratch, sweep
from sfumato.base.trust import refuse_input
from sfumato.data.csv import Dialect
from sfumato.data.duckdb import DuckEngine
from sfumato.data.settings import EngineOptions
from sfumato.data.source import Source
from sfumato.errors import DataError, InputError, StudyError, counted, shortened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHARSETS = {"utf-8": "UTF-8", "latin-1": "ISO-8859-1"}
SURROGATE = re.compile(r"[\ud800-\udfff]")  # in names that are not UTF-8
PATTERN = re.compile(r"([\\*?\[\]{}])")
# The types of Parquet whose text, order and number are the same in both engines, as DuckDB calls them.
TYPES = {
    "VARCHAR": "string",
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "UTINYINT": "smallint",
    "USMALLINT": "int",
    "UINTEGER": "bigint",
    "UBIGINT": "decimal(20,0)",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIMESTAMP": "timestamp_ntz",
}


def frame(session: SparkSession, source: Source) -> DataFrame:
    """Return a source as a data frame with the columns `c0`, `c1`, …"""
    if source.database is not None:
        raise StudyError(
            "the engine spark reads files, and the table is in a database",
            expected='engine = "duckdb"',
            remedy="export the table as Parquet for Spark, or let DuckDB read the database",
        )
    files = source.files
    hidden = [file.name for file in files if file.name.startswith((".", "_"))]
    if hidden:
        raise DataError(
            f"Spark passes over files such as {hidden[0]}", expected="names that start with a letter or a number"
        )
    odd = [file.name for file in files if ":" in file.name or SURROGATE.search(str(file.absolute()))]
    if odd:
        raise DataError(
            f"Spark cannot read a file called {odd[0]!r}",
            expected="a name without a colon, in UTF-8",
            remedy='rename the file, or set engine = "duckdb"',
        )
    paths = [PATTERN.sub(r"\\\1", str(file.absolute())) for file in files]
    names = [column.sql for column in source.columns]
    if source.dialect is not None:
        kinds = ", ".join(f"{name} STRING" for name in names)
        rows = session.read.schema(kinds).options(**_reading(source.dialect)).csv(paths)
        _refuse_other_rows(rows, source)
        return rows
    _refuse_other_columns(files)
    _refuse_types(source, None)  # some types Spark does not even open
    result = session.read.parquet(*paths)
    _refuse_types(source, [kind for _, kind in result.dtypes])
    return result.toDF(*names)


def _reading(dialect: Dialect) -> dict[str, str | int | bool]:
    return _writing(dialect) | {
        "encoding": CHARSETS[dialect.encoding],
        "mode": "FAILFAST",
        "multiLine": bool(dialect.quote),  # a quoted cell may hold a line break, so one task reads the whole file
        "maxCharsPerColumn": -1,
    }


def _writing(dialect: Dialect) -> dict[str, str | int | bool]:
    quote = dialect.quote or "\0"
    return {
        "sep": dialect.separator,
        "quote": quote,
        "escape": quote,
        "header": dialect.header,
        "nullValue": "",
        "emptyValue": "",
        "ignoreLeadingWhiteSpace": False,
        "ignoreTrailingWhiteSpace": False,
    }


def _refuse_other_rows(result: DataFrame, source: Source) -> None:
    """Refuse files whose rows DuckDB would not read: Spark accepts open quotes, blank lines and wrong encodings.

    DuckDB reads the file once, as the fingerprint does, and reports the wrong line.
    """
    with DuckEngine(EngineOptions()) as engine:
        engine.attach(source, "raw")
        inside = " OR ".join(f"{column.sql} LIKE '%' || chr(13) || '%'" for column in source.columns)
        rows, returns = engine.rows(f"SELECT count(*), count(CASE WHEN {inside} THEN 1 END) FROM raw")[0]
    if returns:
        raise DataError(
            f"in {source.title}, {counted(returns, 'row has', 'rows have')} a carriage return inside a cell, which "
            "Spark would take out",
            expected="cells without one",
            remedy='write the table as Parquet, or set engine = "duckdb"',
        )
    there = result.count()
    if there != rows:
        raise DataError(
            f"Spark reads {there} rows of {source.title}, and there are {rows}",
            expected="a file without blank lines, written in one format throughout",
            remedy='write the table as Parquet, or set engine = "duckdb"',
        )


def _refuse_other_columns(files: Sequence[Path]) -> None:
    """Refuse files with different columns: Spark takes those of one file and reads NULL where another lacks one."""
    first: list[str] | None = None
    for file in files:
        try:
            names = list(pyarrow.parquet.read_schema(file).names)
        except (OSError, ValueError) as error:
            raise DataError(f"{file.name} is not a whole Parquet file", expected="Parquet files") from error
        first = names if first is None else first
        if names != first:
            raise DataError(
                f"{file.name} has different columns from {files[0].name}",
                expected="the same columns in every file",
                remedy="put the columns in the same order",
            )


def _refuse_types(source: Source, kinds: Sequence[str] | None) -> None:
    strange = []
    for position, column in enumerate(source.columns):
        plain = column.type.replace(" ", "").lower()
        known = plain if plain.startswith("decimal") else TYPES.get(column.type)
        if known is None or (kinds is not None and kinds[position] != known):
            strange.append(f"{column.name} ({column.type})")
    if strange:
        raise DataError(
            f"Spark does not write the values of {shortened(strange)} as DuckDB does",
            expected="text, numbers, dates, and times without a zone",
            remedy='write such columns as text, or set engine = "duckdb"',
        )


def write(frame: DataFrame, path: Path, dialect: Dialect | None) -> None:
    """Write a data frame as a folder of parts in its order.

    A task that is repeated, because a worker was lost or slow, must not leave rows twice. So each attempt writes under
    its own name, and the one that Spark acknowledges is renamed. The folder gets its name when all parts are complete.
    """
    refuse_input(path)
    zipped = path.suffix == ".gz"
    sweep(path.parent, ".")
    with Scratch(".sfumato-parts-", path.parent) as scratch:
        part = scratch.path / "parts"
        if dialect is None:
            frame.write.parquet(str(part.absolute()))
        else:
            options = _writing(dialect) | ({"compression": "gzip"} if zipped else {})
            frame.write.options(**options).csv(str(part.absolute()))
        _settle(part, path, ".parquet" if dialect is None else ".csv.gz" if zipped else ".csv")


def _settle(part: Path, path: Path, ending: str) -> None:
    written = sorted(part.glob("part-*")) if (part / "_SUCCESS").is_file() else []
    if not written:
        raise InputError(
            f"Spark's workers wrote {path.name} where this machine does not see it",
            expected="a folder that this machine and every worker see under the same name",
            remedy="publish to a shared file system",
        )
    whole = part / "whole"
    whole.mkdir()
    for number, file in enumerate(written):  # Spark's own names reveal the run of the machine
        file.rename(whole / f"part-{number:05d}{ending}")
    if path.is_file():
        path.unlink()
    whole.rename(path)
