"""The same table as each kind of frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow

Columns = dict[str, list[Any]]
MAKERS: dict[str, Callable[[Columns], Any]] = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
}
SIX: Columns = {
    "age": [31, 31, 35, 42, 42, 42],
    "zip": ["10115", "10115", "10117", "20095", "20095", "20097"],
    "disease": ["flu", "cold", "flu", "flu", "flu", "asthma"],
    "name": ["Ada", "Bob", "Cyd", "Dee", "Eve", "Fay"],
}
ROLES: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["disease"], "drop": ["name"]}


def columns_of(frame: Any) -> Columns:
    """The cells of a frame, whatever its kind; no value is None."""
    table = pyarrow.table(frame)
    names = [name for name in table.column_names if not name.startswith("__index")]
    return {name: table.column(name).to_pylist() for name in names}


def adult(folder: Path) -> tuple[Path, Any]:
    """The bundled Adult sample: its run file, and its table as pandas reads it, text as text."""
    import sfumato as sf

    run = sf.sample("adult-complete")
    settings = sf.read(run).data
    names = list(settings.names or ())
    frame = pandas.read_csv(
        run.parent / settings.path, names=names, header=None, skipinitialspace=True, dtype=str, keep_default_na=False
    )
    return run, frame
