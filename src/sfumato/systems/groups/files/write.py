"""A harmonised microfile as a Parquet file, to look at or to compare."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfumato.runtime.atomic import new_file
from sfumato.systems.groups.files.microfile import Microfile


def save_microfile(microfile: Microfile, path: Path, *, overwrite: bool = False) -> Path:
    """Write attributes, area, groups and the row of the original file; its owner alone can read it."""
    import pyarrow
    import pyarrow.parquet

    columns = {name: _whole(microfile.column(name)) for name in microfile.attributes}
    columns["area"] = np.array(microfile.areas)[microfile.area_of]
    columns |= {group: flags.astype(np.int8) for group, flags in microfile.members.items()}
    columns["rownum"] = microfile.rows
    with new_file(path, overwrite=overwrite, private=True) as part:
        pyarrow.parquet.write_table(pyarrow.table(columns), part)
    return path


def _whole(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    return values.astype(np.int64) if (values == np.floor(values)).all() else values
