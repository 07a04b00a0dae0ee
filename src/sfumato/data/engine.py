"""What an engine must do. Only two steps of Sfumato touch raw rows, compress and recode, and both go through it.

The SQL text that is handed to an engine is the same for all of them: standard SQL, identifiers that are
positions (`c0`), labels as quoted text.
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


class Engine(Protocol):
    """A place where SQL runs. Use it as a context manager: leaving it frees what it holds."""

    name: str

    def attach(self, source: Source, view: str) -> None:
        """Make a source readable as a view with columns `c0`, `c1`, …"""

    def run(self, sql: str) -> None:
        """Run a statement that returns nothing."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """A small result as Python rows."""

    def arrays(self, sql: str) -> dict[str, np.ndarray[Any, Any]]:
        """A result without NULLs as one array per column."""

    def upload(self, name: str, columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]) -> None:
        """A small table of ours as a temporary table of the engine's."""

    def write(self, sql: str, path: Path, like: Source, names: Sequence[str]) -> None:
        """Write a query's result to a file in the format and dialect of a source."""

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
    """An engine by name.

    >>> with open_engine() as engine:
    ...     engine.rows("SELECT 1 + 1")
    [(2,)]
    """
    if name == "duckdb":
        from sfumato.data.duck import DuckEngine

        return DuckEngine(options or EngineOptions())
    raise StudyError(f'unknown engine "{name}"', expected="an engine", remedy=nearest(name, ["duckdb"]))


def quoted(text: str) -> str:
    """A text literal in SQL.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
