"""A synthetic census for speed runs, made inside DuckDB so that any number of rows costs no Python."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np

from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes

# Eight columns as skewed as a census: most people are alike, a few are not.
COLUMNS = {"age": 90, "sex": 2, "race": 6, "education": 16, "marital": 7, "work": 8, "country": 40, "children": 10}


def census_table(tuples: int, seed: int = 1, columns: dict[str, int] | None = None) -> FrequencyTable:
    """About as many distinct tuples as asked, in memory, with hierarchies that halve."""
    rng = np.random.default_rng(seed)
    sizes = columns or COLUMNS
    records = np.stack([(size * rng.random(int(tuples * 1.6)) ** 2).astype(np.int32) for size in sizes.values()])
    table = from_codes([_domain(name, size) for name, size in sizes.items()], records)
    keep = min(tuples, table.tuples)
    return FrequencyTable(table.domains, np.ascontiguousarray(table.codes[:, :keep]), table.counts[:keep])


def _domain(name: str, size: int) -> object:
    paths = []
    for leaf in range(size):
        path, width = [str(leaf)], 2
        while width < size:
            path.append(f"{leaf // width}/{width}")
            width *= 2
        paths.append((*path, "*"))
    return domain_of(name, {str(leaf): 1 for leaf in range(size)}, Hierarchy.from_paths(name, paths))


def census_file(path: Path, rows: int) -> None:
    """A Parquet or CSV file of synthetic people, with an illness to keep secret."""
    cells = ", ".join(
        f"CAST(floor({size} * power(random(), 4)) AS INTEGER) AS {name}"
        for name, size in {**COLUMNS, "illness": 20}.items()
    )
    format_ = "parquet" if path.suffix == ".parquet" else "csv, header"
    with duckdb.connect(config={"memory_limit": "2GB"}) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"COPY (SELECT {cells} FROM range({rows})) TO '{path}' (FORMAT {format_})")
