"""Figures as a frame of the caller's kind."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.errors import InputError

KINDS = ("pandas", "polars", "pyarrow")


def to_frame(columns: Mapping[str, Sequence[Any]], kind: str | None = None) -> Any:
    """Columns as a frame of pandas, polars or pyarrow; unless a kind is asked for, of the first that is installed.

    >>> to_frame({"k": [1, 2]}, "pyarrow").num_rows
    2
    """
    if kind is None:
        kind = next((name for name in KINDS if importlib.util.find_spec(name)), "pyarrow")
    if kind not in KINDS:
        raise InputError(f'kind = "{kind}"', expected="one of: " + ", ".join(KINDS))
    if importlib.util.find_spec(kind) is None:
        raise InputError(f"{kind} is not installed", expected="an installed package", remedy=f"pip install {kind}")
    given = {name: list(cells) for name, cells in columns.items()}
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(given)
    if kind == "polars":
        import polars

        return polars.DataFrame(given)
    import pyarrow

    return pyarrow.table(given)
