"""A Spark session to run SQL in: the user's own where one is active, else one that is started and kept for the process.

Starting Spark takes seconds and a study opens its engine several times, so what was started once stays until the
process ends or other options are asked for; then the Java process ends too, because its memory is set at its start.
Each engine works in a session of its own above it: its settings and views touch nobody else's.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import sys
from typing import Any

from sfumato.errors import InputError, StudyError
from sfumato.sources.settings import EngineOptions

# What makes the same SQL text mean the same as in DuckDB, and files come out the same whoever set the cluster up.
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

_started: tuple[EngineOptions, Any, Any] | None = None  # options, context, and the gateway if it was started here


def open_session(options: EngineOptions) -> Any:
    """A new session for one engine."""
    try:
        from pyspark import SparkContext
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(
            "the engine spark needs PySpark, which is not installed",
            expected="the extra spark",
            remedy="pip install 'sfumato[spark]'",
        ) from None
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
        from pyspark import SparkContext

        SparkContext._gateway = SparkContext._jvm = None
        gateway.shutdown()
        gateway.proc.stdin.close()  # Java ends with it
        try:
            gateway.proc.wait(ENDS)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()


def _own(options: EngineOptions) -> Any:
    """The context of ours for these options, started unless it runs."""
    global _started
    if _started is not None and _started[0] == options and _running(_started[1]):
        return _started[1]
    stop()
    _refuse_unreachable(options.master)
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf()
    for name, value in (STARTING | MEANING | _limits(options) | options.conf | MEANING).items():
        conf.set(name, value)
    try:
        # Spark greets on the standard error of the process it is started from, before it reads how loud it may be.
        gateway = None if SparkContext._gateway else launch_gateway(conf, {"stderr": subprocess.DEVNULL})
        context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, OSError, ValueError) as error:
        raise _not_started(error) from None
    except Exception as error:
        if type(error).__module__.startswith("py4j"):
            raise _not_started(error) from None
        raise
    # This Python on the workers as well, unless another is named: theirs may lack what ours has.
    named = os.environ.get("PYSPARK_PYTHON")
    context.pythonExec = named or sys.executable
    _started = (options, context, gateway)
    return context


def _running(context: Any) -> bool:
    return context._jsc is not None and not context._jsc.sc().isStopped()


def _limits(options: EngineOptions) -> dict[str, str]:
    """Our options in Spark's words."""
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
    """Spark itself would try for a minute, and then stop with a trace."""
    for host, port in MASTER.findall(master or "")[:1]:
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError:
            raise InputError(
                f"there is no Spark master at {master}",
                expected="a master that runs and can be reached from here",
                remedy="start it, or check the host and the port",
            ) from None


def _not_started(error: Exception) -> InputError:
    return InputError(
        f"Spark could not be started ({type(error).__name__})",
        expected="Java 17 or newer, a master such as local[*] or spark://host:7077, and settings that Spark knows",
        remedy="install a Java runtime, or set JAVA_HOME; check [engine_options]",
    )
