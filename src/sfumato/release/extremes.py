"""Columns that are released as they are, and hold a value so far out that it may give a person away."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.data.engine import Engine
from sfumato.data.roles import Role
from sfumato.data.rows import cleaned, numeric
from sfumato.release.recode import Recoded
from sfumato.study import Study

TIMES = 100  # the largest value against the 99th percentile
NUMERIC = 0.9  # the share of cells that must be numbers


def extreme_columns(engine: Engine, study: Study, recoded: Recoded) -> list[str]:
    """`other` columns whose largest value is more than 100 times their 99th percentile. The value is never told."""
    found = []
    for column in recoded.columns:
        if study.columns[column.name].role is Role.OTHER:
            cell = cleaned(recoded.source, column)
            value = f"abs({numeric(recoded.source, cell)})"
            most, usual, numbers, cells = engine.rows(
                f"SELECT max(v), percentile_cont(0.99) WITHIN GROUP (ORDER BY v), count(v), count(c) "
                f"FROM (SELECT {value} AS v, {cell} AS c FROM recoded) AS t"
            )[0]
            if numbers and numbers >= NUMERIC * cells and usual > 0 and most > TIMES * usual:
                found.append(column.name)
    return found


def extreme_warnings(names: Sequence[str]) -> list[str]:
    return [
        f"{name} is released as it is, and its largest value is more than {TIMES} times its 99th percentile: "
        "such a value may give a person away. Cut it off, or give the column another role."
        for name in names
    ]
