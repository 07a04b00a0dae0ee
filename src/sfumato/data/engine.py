"""The interface of an engine, which reads records. Only two steps need records: compressing and recoding a table.

All engines get the same SQL text: standard SQL, with positions as identifiers (`c0`), labels as quoted text, and text
as STRING. Every engine defines the following functions, because the engines' own functions differ.

- `trimmed(x)` removes blanks of any kind from both ends.
- `double_text(x)` and `float_text(x)` write a floating number with the fewest digits that identify it.
- `digest(x)` is the SHA-256 of a text in hexadecimal digits.
- `hex_number(x)` is the number that up to 16 such digits write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

from sfumato.data.settings import EngineOptions
from sfumato.data.source import Arrays, Cells, Change, Row, Source
from sfumato.errors import StudyError, nearest

ENGINES = ("duckdb", "spark")


class Engine(Protocol):
    """An engine that runs SQL. It is a context manager, which frees tables and memory at its end.

    With `ordered`, the rows of a source have an order and `r` numbers them from 1. Without, `r` only identifies rows.
    """

    name: str
    ordered: bool

    def attach(self, source: Source, view: str) -> None:
        """Make a source readable as a view with columns `c0`, `c1`, …, and as `{view}_numbered` with `r` beside them"""

    def run(self, sql: str) -> None:
        """Run CREATE OR REPLACE TEMP TABLE … AS, CREATE OR REPLACE TEMP VIEW … AS, or DROP TABLE."""

    def rows(self, sql: str) -> list[Row]:
        """Return a small result as Python rows."""

    def arrays(self, sql: str) -> Arrays:
        """Return a result without NULLs as one array per column."""

    def upload(self, name: str, columns: Mapping[str, Cells]) -> None:
        """Make a temporary table of the engine from a small table."""

    def write(self, sql: str, path: Path, like: Source, names: Sequence[str]) -> None:
        """Write a query's result in the format and dialect of a source: a file, or a folder of parts in its order."""

    def hashed(self, cells: Sequence[str]) -> str:
        """Return SQL for a whole number of 64 bits that looks random and depends on the cells alone."""

    def stream(self, sql: str, change: Change, view: str) -> None:
        """Make a view of a query's rows, changed by `change` in Arrow record batches, which can be read once.

        `change` must return batches of one schema, which is found by calling it with an empty batch.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def open_engine(name: str = "duckdb", options: EngineOptions | None = None) -> Engine:
    """Return an engine by name.

    >>> with open_engine() as engine:
    ...     engine.rows("SELECT 1 + 1")
    [(2,)]
    """
    options = options or EngineOptions()
    if name == "spark":
        from sfumato.data.spark import SparkEngine

        return SparkEngine(options)
    if name != "duckdb":
        raise StudyError(f'unknown engine "{name}"', expected="an engine", remedy=nearest(name, ENGINES))
    if options.master is not None or options.conf:
        raise StudyError(
            "master and conf under [engine_options] are Spark's, and the engine is duckdb",
            expected="memory_limit, temp_folder or threads",
            remedy='engine = "spark", or leave them out',
        )
    from sfumato.data.duckdb import DuckEngine  # a command that reads no records waits for no engine

    return DuckEngine(options)


def require_order(engine: Engine, what: str) -> None:
    """Raise where a step needs the order of the rows and the engine has none."""
    if not engine.ordered:
        raise StudyError(
            f"{what} needs numbered rows, which the engine {engine.name} does not provide",
            expected='engine = "duckdb"',
            remedy='set engine = "duckdb", or leave it out',
        )
