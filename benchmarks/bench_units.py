"""The exact front of Adult where records belong to persons, beside that of records, in one run.

Targets: at most 1.2 times the CPU of records where quasi-identifiers are constant within persons, at most 4 times where
each person has three records that differ.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import sfumato as sf
from benchmarks.timing import cpu_seconds, show
from sfumato.tables.frequency import FrequencyTable
from sfumato.tables.units import units_from

ROWS = 3  # records of a person
TARGETS = {"records": 1.0, "persons, constant": 1.2, "persons, varying": 4.0}


def with_persons(table: FrequencyTable, *, constant: bool) -> FrequencyTable:
    """The same records as those of persons with up to three each, of equal records or of any."""
    tuple_of = np.repeat(np.arange(table.tuples), table.counts)
    if constant:
        place = np.arange(len(tuple_of)) - np.repeat(np.cumsum(table.counts) - table.counts, table.counts)
        person = np.unique(tuple_of * len(tuple_of) + place // ROWS, return_inverse=True)[1]
    else:
        person = np.random.default_rng(1).permutation(np.arange(len(tuple_of)) // ROWS)
    values = {name: np.repeat(held.values, held.counts) for name, held in table.sensitive.items()}
    ones = np.ones(len(tuple_of), dtype=np.int64)
    return replace(table, units=units_from("unit", table.tuples, tuple_of, person.astype(np.int32), ones, values))


def main() -> None:
    study = sf.read(sf.sample("adult")).with_search(max_suppression=0.01, threads=1)
    table = study.table()
    tables = {
        "records": table,
        "persons, constant": with_persons(table, constant=True),
        "persons, varying": with_persons(table, constant=False),
    }
    rows, base = [], 0.0
    for name, one in tables.items():
        front = sf.search(study, table=one)

        def job(one: FrequencyTable = one) -> object:
            return sf.search(study, table=one)

        seconds, _ = cpu_seconds(job)
        base = base or seconds
        rows.append(
            [
                name,
                f"{one.persons:,}",
                str(len(front)),
                f"{front.evaluations:,}",
                f"{seconds:.2f}",
                f"{seconds / base:.2f}",
                f"{TARGETS[name]:g}",
            ]
        )
    heads = ["counted", "number", "points", "nodes evaluated", "CPU s", "to records", "target"]
    show("Exact front of Adult, k and general loss, at most 1 % suppressed", heads, rows)
