"""Columns that are released as they are, and hold a value so far out that it may give a person away."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.data.engine import Engine
from sfumato.data.roles import Role
from sfumato.data.rows import cleaned, numeric
from sfumato.release.recode import Recoded
from sfumato.study import Study

TIMES = 100  # the largest value against what most values stay below
MOST = 0.99  # the share of values that is most
NUMERIC = 0.9  # the share of cells that must be numbers


def extreme_columns(engine: Engine, study: Study, recoded: Recoded) -> list[str]:
    """`other` columns whose largest value is more than 100 times what 99 % of them stay below. It is never told.

    Two scans for all columns together, and counts instead of a percentile, which would hold every value.
    """
    columns = [column for column in recoded.columns if study.columns[column.name].role is Role.OTHER]
    if not columns:
        return []
    cells = []
    for i, column in enumerate(columns):
        cell = cleaned(recoded.source, column)
        cells += [f"abs({numeric(recoded.source, cell)}) AS v{i}", f"{cell} AS t{i}"]
    values = f"SELECT {', '.join(cells)} FROM recoded"
    parts = [f"max(v{i}), count(v{i}), count(t{i})" for i in range(len(columns))]
    found = engine.rows(f"SELECT {', '.join(parts)} FROM ({values}) AS t")[0]
    most = {
        i: found[3 * i] for i in range(len(columns)) if found[3 * i] and found[3 * i + 1] >= NUMERIC * found[3 * i + 2]
    }
    if not most:
        return []
    parts = [
        f"count(CASE WHEN v{i} > 0 THEN 1 END), count(CASE WHEN v{i} < {float(top) / TIMES!r} THEN 1 END)"
        for i, top in most.items()
    ]
    near = engine.rows(f"SELECT {', '.join(parts)} FROM ({values}) AS t")[0]
    named = []
    for place, i in enumerate(most):
        positive, below = near[2 * place : 2 * place + 2]
        numbers = found[3 * i + 1]
        if positive > (1 - MOST) * numbers and below >= MOST * numbers:
            named.append(columns[i].name)
    return named


def extreme_warnings(names: Sequence[str]) -> list[str]:
    return [
        f"{name} is released as it is, and its largest value is more than {TIMES} times its 99th percentile: "
        "such a value may give a person away. Cut it off, or give the column another role."
        for name in names
    ]
