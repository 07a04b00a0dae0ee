"""Columns that are released as they are, and hold a value so far out that it may give a person away."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sfumato.sources.cells import cleaned, numeric
from sfumato.sources.engines.engine import Engine
from sfumato.sources.roles import Role
from sfumato.sources.source import Column, Source
from sfumato.study import Study

TIMES = 100  # the largest value against what most values stay below
MOST = 0.99  # the share of values that is most
NUMERIC = 0.9  # the share of cells that must be numbers


def extreme_columns(engine: Engine, study: Study, written: Source) -> list[str]:
    """`other` columns of a released file whose largest value is more than 100 times what 99 % of them stay below.

    The value is never told. Two scans for all columns together, and counts instead of a percentile, which would hold
    every value. The file is the engine's view `written`.
    """
    columns = [c for c in written.columns if c.name in study.columns and study.columns[c.name].role is Role.OTHER]
    if not columns:
        return []
    values = f"SELECT {', '.join(cell for i, c in enumerate(columns) for cell in _cells(written, c, i))} FROM written"
    parts = [f"max(v{i}), count(v{i}), count(t{i})" for i in range(len(columns))]
    counts = engine.rows(f"SELECT {', '.join(parts)} FROM ({values}) AS t")[0]
    largest: dict[int, float] = {}
    for i in range(len(columns)):
        top, numbers, cells = counts[3 * i : 3 * i + 3]
        if top and numbers >= NUMERIC * cells:
            largest[i] = min(float(top), sys.float_info.max)
    if not largest:
        return []
    parts = [
        f"count(CASE WHEN v{i} > 0 THEN 1 END), count(CASE WHEN v{i} < {top / TIMES!r} THEN 1 END)"
        for i, top in largest.items()
    ]
    near = engine.rows(f"SELECT {', '.join(parts)} FROM ({values}) AS t")[0]
    named = []
    for position, i in enumerate(largest):
        positive, below = near[2 * position : 2 * position + 2]
        numbers = counts[3 * i + 1]
        if positive > (1 - MOST) * numbers and below >= MOST * numbers:
            named.append(columns[i].name)
    return named


def _cells(written: Source, column: Column, position: int) -> tuple[str, str]:
    """A cell as a number, and as what it is."""
    if column.is_text or written.settings.na:
        cell = cleaned(written, column)
        return f"abs({numeric(written, cell)}) AS v{position}", f"{cell} AS t{position}"
    return f"abs(TRY_CAST({column.sql} AS DOUBLE)) AS v{position}", f"{column.sql} AS t{position}"


def extreme_warnings(names: Sequence[str]) -> list[str]:
    return [
        f"{name} is released with a largest value that is more than {TIMES} times its 99th percentile: "
        "such a value may identify a person. Top-code it, or give the column another role."
        for name in names
    ]
