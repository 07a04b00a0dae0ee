"""Which records of the raw table are at risk, and by which columns: rows with their classes, sets of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.auditing.own_values import PERSON, holder_cells
from sfumato.auditing.singling_out import best_sets
from sfumato.auditing.whole import uniqueness
from sfumato.errors import InputError
from sfumato.measures.classes import ClassTable, classify
from sfumato.sources.engines.engine import open_engine
from sfumato.sources.roles import Role
from sfumato.study import ColumnSettings, Study
from sfumato.tables.frequency import FrequencyTable
from sfumato.web.calls.shelf import study_of, table_of, undecided_columns
from sfumato.web.places import Places

MOST_UNCOUNTED = 24  # columns in no figure that are looked at: each is a count over the whole table


def counted_in(study: Study) -> Study:
    """The study with every undecided column as one that outsiders know, until somebody says otherwise."""
    names = undecided_columns(study)
    counted = study.with_columns({name: ColumnSettings(role=Role.QUASI_IDENTIFIER) for name in names})
    if not counted.named(Role.QUASI_IDENTIFIER):
        raise InputError(
            "no column is a quasi-identifier",
            expected="at least one column that outsiders know",
            remedy="give a column the role quasi-identifier",
        )
    return counted


def grid(places: Places, study: str, rows: int) -> dict[str, Any]:
    """Records of the raw table, the smallest classes first, each with its class; sensitive values are masked."""
    table = table_of(counted_in(study_of(places, study)))
    classes = classify(table)
    size = classes.size[classes.index]
    order = np.argsort(size, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(rows, len(order))).astype(np.int64))]
    return {
        "columns": list(table.columns),
        "masked": list(table.sensitive),
        "rows": [
            {
                "cells": [
                    domain.shown(domain.labels[int(codes[position])]) or None
                    for domain, codes in zip(table.domains, table.codes, strict=True)
                ],
                "class": int(size[position]),
            }
            for position in chosen.tolist()
        ],
        "combinations": _combinations(table),
        "below": _below(classes),
        "records": table.records,
    }


def uncounted(places: Places, study: str) -> dict[str, Any]:
    """How unique records would be if somebody also knew one of the columns that are released and in no figure."""
    declared = counted_in(study_of(places, study))
    source = declared.source()
    roles = {name: column.role for name, column in declared.columns.items()}
    known = [name for name in source.names if roles.get(name) is Role.QUASI_IDENTIFIER]
    kept = [name for name in source.names if roles.get(name) is Role.OTHER]
    with open_engine(declared.engine, declared.engine_options) as engine:
        engine.attach(source, "raw")
        unit = holder_cells(source, declared).get(PERSON)
        base = uniqueness(engine, source, known, "raw", unit)
        columns = [
            {"column": name, "unique_share": uniqueness(engine, source, [*known, name], "raw", unit).unique_share}
            for name in kept[:MOST_UNCOUNTED]
        ]
    return {"without": base.unique_share, "columns": columns, "left_out": max(len(kept) - MOST_UNCOUNTED, 0)}


def _combinations(table: FrequencyTable) -> list[dict[str, Any]]:
    codes = np.repeat(table.codes, table.counts, axis=1).astype(np.int64)
    return [
        {"columns": [table.columns[position] for position in places], "unique": share}
        for places, share in best_sets(codes)
        if share > 0
    ]


def _below(classes: ClassTable) -> dict[str, int]:
    """How many records are in classes below common limits."""
    return {str(limit): int(classes.rows[classes.size < limit].sum()) for limit in (2, 3, 5, 10)}
