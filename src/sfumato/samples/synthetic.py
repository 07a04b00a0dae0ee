"""A synthetic census as a study of its own: Parquet parts of any number of rows, and a run file with every role."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sfumato.errors import InputError
from sfumato.runtime.atomic import new_folder, refuse_existing_folder
from sfumato.runtime.toml import toml_text
from sfumato.samples.census import people, plant

PART = 10_000_000  # rows of a part
AREAS, MEMBERS = 1_238, 0.00445
LEAST, MOST = 1_000, 10**10

TREES = {
    "age": {"build": "interval", "widths": [2, 4, 8, 16], "origin": 18},
    "educ": {"build": "breaks", "levels": [[4, 7, 10], [7]]},
    "sex": {"build": "flat"},
    "race": {"build": "flat"},
    "hisp": {"build": "breaks", "levels": [[1]]},
    "marst": {"build": "flat"},
    "state": {"build": "prefix"},
}
DROPPED = ("puma", "uhrs", "tran", "depart", "ttime", "wkswork", "inctot", "english")
RUN = {
    "version": 1,
    "data": {"path": "people-*.parquet"},
    "columns": {name: {"role": "quasi_identifier", "hierarchy": tree} for name, tree in TREES.items()}
    | {"military": {"role": "sensitive"}}
    | {name: {"role": "drop"} for name in DROPPED},
    "search": {"max_suppression": 0.01},
}


def write_people(
    folder: str | Path, records: int, seed: int = 1, progress: Callable[[int, int], object] | None = None
) -> Path:
    """Write `people-000.parquet`, … and `run.toml` to a new folder, whole or not at all. Returns the run file's path.

    The rows of a part are made a quarter of a million at a time, so that any number of them takes little memory.
    """
    import pyarrow
    import pyarrow.parquet

    folder = Path(folder).absolute()
    refuse_existing_folder(folder)
    if not LEAST <= records <= MOST:
        raise InputError(f"{records:,} records", expected=f"{LEAST:,} to {MOST:,}")
    census = plant(records, max(round(records * MEMBERS), 1), min(AREAS, records // 100), seed)
    with new_folder(folder, private=False) as whole:
        (whole / "run.toml").write_text(toml_text(RUN), encoding="utf-8")
        done, writer = 0, None
        for columns in people(census, seed):
            table = pyarrow.table(columns)
            if writer is None:
                path = whole / f"people-{done // PART:03d}.parquet"
                writer = pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
            before, done = done, done + table.num_rows
            if done // PART > before // PART or done == records:
                writer.close()
                writer = None
            if progress is not None and progress(done, records):
                raise KeyboardInterrupt
    return folder / "run.toml"
