"""The engine Spark: the same SQL on this machine, on a cluster, or in an active session.

A release is correct even if workers are lost. Spark then repeats a task, which must produce the same rows, or rows
would be missing or duplicated. So every query is a function of the rows of a file split alone. Row numbers (`r`) are
the split and the position in it, and splits are fixed when a query is planned. Salts are literals in the SQL text.
Random values (`stream`) are written once, committed by a rename, and read from that file. A second draw for a record
would reveal more about a person than one report may.

The session is the user's own where one is active. Else one is started, which takes seconds, and kept for the process
until other options are needed. Then the Java process ends too, because its memory is set at its start. Each engine has
a session of its own, so that settings and views are separate.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import duckdb
import pyarrow

from sfumato.base.files import Scratch, sweep
from sfumato.data.failures import failure
from sfumato.data.settings import EngineOptions
from sfumato.data.source import STREAMED, Arrays, Cells, Change, Row, Source, quoted, transcoded
from sfumato.data.spark_files import frame, write
from sfumato.data.treatment import attach_treated
from sfumato.errors import DataError, InputError, SfumatoError, StudyError

with suppress(ImportError):  # `open_session` says what to install
    from py4j.java_gateway import JavaGateway
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext, StorageLevel, cloudpickle
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.functions import arrow_udf, broadcast, monotonically_increasing_id
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

# These settings give SQL text the meaning that it has in DuckDB, on any cluster.
MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
# How a session of ours starts. Its logs would print rows; a page for the network, and progress in our output, are not
# asked for. Results are frequency tables, which must fit this process anyway.
STARTING = {
    "spark.app.name": "sfumato",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.maxResultSize": "0",
}
MASTER = re.compile(r"spark://([^:/]+):(\d+)")
SIZE = re.compile(r"(\d+)\s*([kmgt])i?b?", re.IGNORECASE)

ENDS = 30  # seconds that Java has to end by itself

# Options, context, and the gateway if it was started here.
_started: tuple[EngineOptions, SparkContext, JavaGateway | None] | None = None


def open_session(options: EngineOptions) -> SparkSession:
    """Return a new session for one engine."""
    if find_spec("pyspark") is None:
        raise InputError(
            "the engine spark needs PySpark, which is not installed",
            expected="the extra spark",
            remedy="pip install 'sfumato[spark]'",
        )
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).disabled = True  # they write messages with values in them to the standard error
    active = SparkContext._active_spark_context
    try:
        if active is None or (_started is not None and active is _started[1]):
            active = _own(options)
        elif options.master is not None and options.master != active.master:
            raise StudyError(
                f"a Spark session with the master {active.master} is active, and the run file says {options.master}",
                expected="the same master, or none in the run file",
            )
        session = SparkSession(active).newSession()
        for name, value in (options.conf | MEANING).items():
            if name.startswith("spark.sql.") and session.conf.isModifiable(name):
                session.conf.set(name, value)
    except PySparkException as error:
        raise StudyError(
            f"Spark refuses its settings ({error.getCondition() or type(error).__name__})",
            expected="settings that Spark knows under [engine_options] conf",
        ) from None
    return session


def stop() -> None:
    """Stop what was started here."""
    global _started
    if _started is None:
        return
    _, context, gateway = _started
    _started = None
    context.stop()
    if gateway is not None and gateway.proc is not None:
        SparkContext._gateway = SparkContext._jvm = None
        gateway.shutdown()
        gateway.proc.stdin.close()  # Java ends with it
        try:
            gateway.proc.wait(ENDS)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()


def _own(options: EngineOptions) -> SparkContext:
    """Return the context of ours for these options, started unless it runs."""
    global _started
    if _started is not None and _started[0] == options:
        java = _started[1]._jsc
        if java is not None and not java.sc().isStopped():
            return _started[1]
    stop()
    _refuse_unreachable(options.master)
    conf = SparkConf()
    for name, value in (STARTING | MEANING | _limits(options) | options.conf | MEANING).items():
        conf.set(name, value)
    try:
        # Spark greets on the standard error of the process it is started from, before it reads how loud it may be.
        gateway = None if SparkContext._gateway else launch_gateway(conf, {"stderr": subprocess.DEVNULL})
        context = SparkContext(conf=conf, gateway=gateway)
    except Exception as error:
        refused = isinstance(error, PySparkException | OSError | ValueError)
        if not refused and not type(error).__module__.startswith("py4j"):
            raise
        raise InputError(
            f"Spark could not be started ({type(error).__name__})",
            expected="Java 17 or newer, a master such as local[*] or spark://host:7077, and settings that Spark knows",
            remedy="install a Java runtime, or set JAVA_HOME; check [engine_options]",
        ) from None
    # This Python on the workers as well, unless another is named: theirs may lack what ours has.
    named = os.environ.get("PYSPARK_PYTHON")
    context.pythonExec = named or sys.executable
    _started = (options, context, gateway)
    return context


def _limits(options: EngineOptions) -> dict[str, str]:
    """Return our options as settings of Spark."""
    local = options.master is None or options.master.startswith("local")
    result: dict[str, str] = {}
    if options.master is not None:
        result["spark.master"] = options.master
    elif options.threads is not None:
        result["spark.master"] = f"local[{options.threads}]"
    if local:  # nothing to be reached from elsewhere
        result |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if options.temp_folder is not None:
            result["spark.local.dir"] = options.temp_folder
    elif options.threads is not None:
        result["spark.cores.max"] = str(options.threads)
    if options.memory_limit is not None:
        size = SIZE.fullmatch(options.memory_limit.strip())
        if size is None:
            raise StudyError(f'memory_limit = "{options.memory_limit}"', expected='a size such as "2GB"')
        result["spark.driver.memory" if local else "spark.executor.memory"] = f"{size[1]}{size[2].lower()}"
    return result


def _refuse_unreachable(master: str | None) -> None:
    """Refuse a master that cannot be reached, for which Spark would wait a minute and then print a trace."""
    for host, port in MASTER.findall(master or "")[:1]:
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError:
            raise InputError(
                f"there is no Spark master at {master}",
                expected="a master that runs and can be reached from here",
                remedy="start it, or check the host and the port",
            ) from None


TABLE = re.compile(r"CREATE OR REPLACE TEMP TABLE (\w+) AS (.*)", re.DOTALL)
DROP = re.compile(r"DROP TABLE (\w+)")
# What DuckDB's trim takes for a blank: the Unicode category Zs.
BLANKS = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
UNREADABLE = re.compile(r"FAILED_READ_FILE|MALFORMED_RECORD|CANNOT_READ_FILE|PATH_NOT_FOUND|PARQUET_TYPE|CORRUPT")


class SparkEngine:
    """A Spark session of its own, with our functions in it, and a temporary folder that the workers must see too."""

    name = "spark"
    ordered = False

    def __init__(self, options: EngineOptions) -> None:
        temporary = options.folder()
        self._session = open_session(options)
        self._held: dict[str, DataFrame] = {}
        self._sources: list[Source] = []
        with self._explaining(), _by_value():
            self._define()
        sweep(temporary)
        self._scratch = Scratch(parent=temporary)
        self._folder = self._scratch.path

    def _define(self) -> None:
        """Define our functions (data/engine.py). They are lambdas, because PySpark reads annotations in its own way."""
        meaning = f"trim(BOTH {quoted(BLANKS)} FROM x)"
        self._session.sql(f"CREATE TEMPORARY FUNCTION trimmed(x STRING) RETURNS STRING RETURN {meaning}")
        self._session.sql("CREATE TEMPORARY FUNCTION digest(x STRING) RETURNS STRING RETURN sha2(x, 256)")
        whole = "CAST(conv(x, 16, 10) AS DECIMAL(20, 0))"
        self._session.sql(f"CREATE TEMPORARY FUNCTION hex_number(x STRING) RETURNS DECIMAL(20, 0) RETURN {whole}")
        self._session.udf.register("double_text", arrow_udf(lambda values: _double_text(values), "string"))
        self._session.udf.register("float_text", arrow_udf(lambda values: _float_text(values), "string"))

    def attach(self, source: Source, view: str) -> None:
        if source.untreated is not None:
            attach_treated(self, source, source.untreated, view, "CREATE OR REPLACE TEMP VIEW")
            return
        if source.frame is not None:
            raise StudyError(
                "a table in memory cannot be read by Spark",
                expected='engine = "duckdb", which reads it where it is',
                remedy="leave engine out; for Spark, write the table to Parquet files",
            )
        readable = transcoded(source, self._folder / f"utf8-{len(self._sources)}")
        self._sources.append(readable)
        with self._explaining():
            rows = frame(self._session, readable)
            rows.createOrReplaceTempView(view)
            rows.withColumn("r", monotonically_increasing_id()).createOrReplaceTempView(f"{view}_numbered")

    def run(self, sql: str) -> None:
        with self._explaining():
            if table := TABLE.fullmatch(sql):
                self._hold(table[1], self._session.sql(table[2]))
            elif gone := DROP.fullmatch(sql):
                self._free(gone[1])
            else:
                self._session.sql(sql)

    def rows(self, sql: str) -> list[Row]:
        with self._explaining():
            return [tuple(row) for row in self._session.sql(sql).collect()]

    def arrays(self, sql: str) -> Arrays:
        with self._explaining():
            result = self._session.sql(sql).toArrow()
        return {name: result.column(name).to_numpy() for name in result.column_names}

    def upload(self, name: str, columns: Mapping[str, Cells]) -> None:
        with self._explaining():
            # Ours are small beside the rows: every worker gets them whole, and the rows stay where they are.
            broadcast(self._session.createDataFrame(pyarrow.table(dict(columns)))).createOrReplaceTempView(name)

    def write(self, sql: str, path: Path, like: Source, names: Sequence[str]) -> None:
        with self._explaining():
            write(self._session.sql(sql).toDF(*names), path, like.dialect)

    def hashed(self, cells: Sequence[str]) -> str:
        # A missing cell alone would leave the hash as it is, wherever it stood.
        return f"xxhash64({', '.join(f'{cell}, {cell} IS NULL' for cell in cells)})"

    def stream(self, sql: str, change: Change, view: str) -> None:
        def changed(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            return (change(batch) for batch in batches)

        folder = self._folder / f"stream-{view}"
        with self._explaining(), _by_value():
            self._session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(STREAMED))
            result = self._session.sql(sql)
            schema = to_arrow_schema(result.schema)
            empty = pyarrow.record_batch([pyarrow.array([], field.type) for field in schema], schema=schema)
            result = result.mapInArrow(changed, from_arrow_schema(change(empty).schema))
            result.write.mode("overwrite").parquet(str(folder))
            self._session.read.parquet(str(folder)).createOrReplaceTempView(view)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._held):
            try:
                self._free(name)
            except Exception as error:
                ended = type(error).__module__.startswith(("py4j", "pyspark")) or isinstance(error, ConnectionError)
                if not ended:  # the memory of a cluster that ended is free
                    raise
        self._scratch.close()

    def _hold(self, name: str, result: DataFrame) -> None:
        """Keep a temporary table on the workers, in memory or on their disks. A lost part is computed once more."""
        before = self._held.get(name)
        result.persist(StorageLevel.MEMORY_AND_DISK)
        result.count()
        result.createOrReplaceTempView(name)
        self._held[name] = result
        if before is not None:
            before.unpersist()

    def _free(self, name: str) -> None:
        result = self._held.pop(name, None)
        if result is not None:
            result.unpersist()

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Raise our error for an engine's error, whose text would print rows with sensitive values."""
        try:
            yield
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise self._explained(error) from None

    def _explained(self, error: Exception) -> SfumatoError:
        condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        text = "ConnectionError" if isinstance(error, ConnectionError) else f"{condition} {error}"
        if found := failure("spark", text):
            return InputError(found[0], **found[1])
        if UNREADABLE.search(text) and self._sources:
            return DataError(
                f"{self._sources[-1].path.name} could not be read completely ({condition})",
                expected="complete files, written in one format throughout, that every worker sees under the same name",
                remedy="check the line ends, the quotes, and that the files are complete and have the same format",
            )
        return SfumatoError(f"the engine failed ({condition})", remedy="please report it with its trace")


@contextmanager
def _by_value() -> Iterator[None]:
    """Functions of ours travel to the workers as they are: what is needed there is pyarrow and numpy, not Sfumato."""
    package = sys.modules[__name__.partition(".")[0]]
    cloudpickle.register_pickle_by_value(package)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(package)


def _double_text(values: pyarrow.Array) -> pyarrow.Array:
    """Return doubles as DuckDB and Python write them: with the fewest digits that identify them."""
    coded = values.dictionary_encode()
    texts = [None if value is None else repr(value) for value in coded.dictionary.to_pylist()]
    return pyarrow.array(texts, pyarrow.string()).take(coded.indices)


def _float_text(values: pyarrow.Array) -> pyarrow.Array:
    """Return singles as DuckDB writes them. Workers need DuckDB for such columns, because its format is its own."""
    coded = values.dictionary_encode()
    with duckdb.connect() as connection:
        different = connection.from_arrow(pyarrow.table({"x": coded.dictionary}))
        texts = [row[0] for row in different.project("CAST(x AS VARCHAR)").fetchall()]
    return pyarrow.array(texts, pyarrow.string()).take(coded.indices)
