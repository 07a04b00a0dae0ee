"""What an engine must do. Only two steps of Sfumato touch raw rows, compress and recode, and both go through it.

The SQL text that is handed to an engine is the same for all of them: standard SQL, identifiers that are positions
(`c0`), labels as quoted text, text as STRING. Five functions are ours, and every engine defines them, because the
engines' own differ: `trimmed(x)` takes blanks of any kind off both ends, `double_text(x)` and `float_text(x)` write a
floating number with as few digits as tell it apart, `digest(x)` is the SHA-256 of a text in hexadecimal digits, and
`hex_number(x)` the number that up to 16 such digits write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from sfumato.data.settings import EngineOptions
from sfumato.data.source import Source
from sfumato.errors import StudyError, nearest

ENGINES = ("duckdb", "spark")


class Engine(Protocol):
    """A place where SQL runs. Use it as a context manager: leaving it frees what it holds.

    `ordered` tells whether a source's rows have a place of their own, which `r` numbers from 1; otherwise `r` only
    tells rows apart.
    """

    name: str
    ordered: bool

    def attach(self, source: Source, view: str) -> None:
        """Make a source readable as a view with columns `c0`, `c1`, …, and as `{view}_numbered` with `r` beside them"""

    def run(self, sql: str) -> None:
        """Run CREATE OR REPLACE TEMP TABLE … AS, CREATE OR REPLACE TEMP VIEW … AS, or DROP TABLE."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return a small result as Python rows."""

    def arrays(self, sql: str) -> dict[str, np.ndarray[Any, Any]]:
        """Return a result without NULLs as one array per column."""

    def upload(self, name: str, columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]) -> None:
        """A small table of ours as a temporary table of the engine's."""

    def write(self, sql: str, path: Path, like: Source, names: Sequence[str]) -> None:
        """Write a query's result in the format and dialect of a source: a file, or a folder of parts in its order."""

    def hashed(self, cells: Sequence[str]) -> str:
        """SQL for a whole number of 64 bits that depends on the cells alone, and looks drawn at random."""

    def stream(self, sql: str, change: Callable[[Any], Any], view: str, rows: int = 200_000) -> None:
        """A view, to be read once, of a query's rows after `change` has had each Arrow record batch of them.

        `change` must give batches of one schema; it is asked once with an empty batch to tell it.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


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
    from sfumato.data.duckdb import DuckEngine

    return DuckEngine(options)


def require_order(engine: Engine, what: str) -> None:
    """Raise where rows have no place of their own and something needs one."""
    if not engine.ordered:
        raise StudyError(
            f"{what} needs numbered rows, which the engine {engine.name} does not provide",
            expected='engine = "duckdb"',
            remedy='set engine = "duckdb", or leave it out',
        )
