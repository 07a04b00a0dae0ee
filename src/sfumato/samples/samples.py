"""The bundled samples: UCI Adult, and its complete rows, with hierarchies (Becker and Kohavi 1996, CC BY 4.0).

A synthetic census as a study of its own: Parquet parts of any number of rows, and a run file with every role.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from sfumato.base.files import new_folder, refuse_existing_folder
from sfumato.base.settings import toml_text
from sfumato.errors import InputError, nearest
from sfumato.samples.census import people, plant

FOLDER = Path(__file__).parent
SAMPLES = ("adult", "adult-complete")  # and census, which is made, not copied


def sample(name: str = "adult") -> Path:
    """The run file of a bundled sample.

    Args:
        name: "adult" has all 32,561 rows, "adult-complete" the 30,162 without a missing value, which the papers use.

    Returns:
        The path of its run file.

    >>> sample("adult").name
    'run.toml'
    """
    if name not in SAMPLES:
        raise InputError(f'there is no sample "{name}"', expected="a sample", remedy=nearest(name, SAMPLES))
    return FOLDER / name / "run.toml"


def write_sample(name: str, folder: str | Path) -> Path:
    """Copy a sample into a new folder: the table, its hierarchies, a run file. Returns the run file's path."""
    folder = Path(folder)
    with new_folder(folder, private=False) as inside:
        shutil.copytree(sample(name).parent, inside, dirs_exist_ok=True)
    return folder / "run.toml"


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
    import pyarrow.parquet  # here, as reading a sample does not need it

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
