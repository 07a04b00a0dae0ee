"""The bundled samples: UCI Adult, and its complete rows, with hierarchies (Becker and Kohavi 1996, CC BY 4.0)."""

from __future__ import annotations

import shutil
from pathlib import Path

from sfumato.errors import InputError, nearest
from sfumato.runtime.atomic import new_folder

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
