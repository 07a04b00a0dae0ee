"""A first look at a table: some of its rows, and how the values of each column are spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.sources.cells import cleaned, numeric
from sfumato.sources.engines.engine import Engine
from sfumato.sources.profile import ColumnProfile
from sfumato.sources.source import Source

BINS = 24
TOP = 12


def first_rows(engine: Engine, source: Source, limit: int = 50) -> list[list[str | None]]:
    """The first rows as clean text; None where a value is missing."""
    return _rows(engine, source, f"LIMIT {int(limit)}")


def drawn_rows(engine: Engine, source: Source, limit: int) -> list[list[str | None]]:
    """Rows from all over the table, likewise; the same each time: those of the least digests."""
    text = ", ".join(f"coalesce({column.sql}, '')" for column in source.columns)
    return _rows(engine, source, f"ORDER BY md5(concat_ws('|', {text})) LIMIT {int(limit)}")


def _rows(engine: Engine, source: Source, which: str) -> list[list[str | None]]:
    engine.attach(source, "raw")
    cells = ", ".join(f"{cleaned(source, column)} AS {column.sql}" for column in source.columns)
    return [list(row) for row in engine.rows(f"SELECT * FROM (SELECT {cells} FROM raw) AS clean {which}")]


def spreads(engine: Engine, source: Source, columns: Sequence[ColumnProfile]) -> list[dict[str, Any]]:
    """How each profiled column is spread: numbers in equal bins, other values by how often they occur."""
    return [_spread(engine, source, column) for column in columns]


def _spread(engine: Engine, source: Source, column: ColumnProfile) -> dict[str, Any]:
    position = source.column(column.name).sql
    low, high = column.lowest, column.highest
    if column.kind in ("whole", "number") and low is not None and high is not None and column.distinct > TOP:
        return _binned(engine, source, position, low, high, whole=column.kind == "whole")
    result = engine.rows(
        f"SELECT {position} AS v, count(*) AS n FROM profiled WHERE {position} IS NOT NULL GROUP BY {position} "
        f"ORDER BY n DESC, v LIMIT {TOP}"
    )
    stated = sum(int(count) for _, count in result)
    return {
        "kind": "values",
        "labels": [str(value) for value, _ in result],
        "counts": [int(count) for _, count in result],
        "rest": column.present - stated,
    }


def _binned(engine: Engine, source: Source, position: str, low: float, high: float, *, whole: bool) -> dict[str, Any]:
    wide = (high - low) / BINS
    if whole:  # bins of whole numbers hold equally many of them
        wide = max(float(-(-(high - low + 1) // BINS)), 1.0)
    wide = wide or 1.0
    bins = min(int((high - low) / wide) + 1, BINS)
    value = numeric(source, position)
    result = engine.rows(
        f"SELECT least(CAST(floor(({value} - {low!r}) / {wide!r}) AS BIGINT), {bins - 1}) AS b, count(*) FROM profiled "
        f"WHERE {value} BETWEEN {low!r} AND {high!r} GROUP BY b"
    )
    counts = [0] * bins
    for number, count in result:
        counts[int(number)] = int(count)
    return {"kind": "bins", "edges": [low + wide * i for i in range(bins + 1)], "counts": counts, "rest": 0}
