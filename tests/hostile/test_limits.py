"""What is read from a folder is read within limits of size and depth, and its numbers are finite."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from sfumato.base.trust import sealed
from sfumato.cli import run
from tests.hostile.folders import command_of
from tests.hostile.limits import Memory, limited

DEEP = 100_000
LARGE = 2 << 30
MEGABYTES = 1024


def large(path: Path) -> None:
    """More than anybody has memory for, in no room on the disk."""
    os.truncate(path, LARGE)


def deep(path: Path) -> None:
    path.write_text('{"format": ' + "[" * DEEP + "]" * DEEP + "}", "utf-8")


def some_deep(path: Path) -> None:
    """Less deep than a parser refuses by itself, and deeper than anything of ours."""
    text = path.read_text("utf-8").rstrip()
    path.write_text(text[:-1] + ', "more": ' + "[" * 200 + "]" * 200 + "}", "utf-8")


def not_a_number(path: Path) -> None:
    path.write_text(path.read_text("utf-8").rstrip()[:-1] + ', "more": NaN}', "utf-8")


def infinite(path: Path) -> None:
    path.write_text(path.read_text("utf-8").rstrip()[:-1] + ', "more": [1e999]}', "utf-8")


def half_a_character(path: Path) -> None:
    path.write_text(path.read_text("utf-8").rstrip()[:-1] + ', "more": "\\ud800"}', "utf-8")


WAYS = (large, deep, some_deep, not_a_number, infinite, half_a_character)
FILES = [
    ("front", "front.json", "pick FOLDER --max-loss 0.9"),
    ("cuts", "front.json", "predict MADE/own.toml --against FOLDER"),
    ("release", "private/manifest.json", "verify FOLDER"),
    ("release", "private/manifest.json", "apply FOLDER MADE/people.csv -o OUT"),
    ("swapped", "private/manifest.json", "verify FOLDER"),
    ("disguise", "private/channel.json", "verify FOLDER"),
    ("protection", "front.json", "publish FOLDER -o OUT"),
    ("channel", "front.json", "channel export FOLDER --point 0 -o OUT"),
    ("analyst", "data.csv.channel.json", "channel estimate FOLDER/data.csv"),
    ("analyst", "coin.json", "channel measure FOLDER/coin.json --data MADE/jobs.csv"),
]


def refused(line: str, folder: Path, made: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command, which refuses in little time and memory; what it said."""
    with Memory() as memory, limited(60):
        code = run(command_of(line)(folder, made, folder.parent / "out"))
    printed = capsys.readouterr()
    assert memory.megabytes < MEGABYTES
    assert code == (4 if line.startswith("verify") else 2), printed.err  # verify names a difference
    assert "was made elsewhere, or was changed, and its content" not in printed.err  # a fault, caught at the door
    assert not (folder.parent / "out").exists()
    return printed.out + printed.err


CASES = [(*file, way) for file in FILES for way in WAYS if (file[1], way) != ("private/channel.json", large)]
# `verify` takes the digest of every file first, which needs time for 2 GB, and no memory


@pytest.mark.parametrize(("kind", "name", "line", "way"), CASES)
def test_json_of_a_folder_is_read_within_limits(
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    name: str,
    line: str,
    way: Callable[[Path], None],
) -> None:
    folder = tmp_path / "evil"
    shutil.copytree(made / kind, folder)
    way(folder / name)
    assert Path(name).name in refused(line, folder, made, capsys)


@pytest.mark.parametrize(("kind", "name"), [("front", "run.toml"), ("run-lattice", "run.toml")])
def test_a_run_file_is_read_within_limits(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, name: str
) -> None:
    folder = tmp_path / "evil"
    shutil.copytree(made / kind, folder)
    large(folder / name)
    line = "pick FOLDER --max-loss 0.9" if kind == "front" else "search FOLDER/run.toml -o OUT"
    assert "run.toml has more than" in refused(line, folder, made, capsys)


@pytest.mark.parametrize("packed", [False, True])
def test_a_hierarchy_is_read_within_limits(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], packed: bool
) -> None:
    folder = tmp_path / "evil"
    shutil.copytree(made / "run-lattice", folder)
    if packed:  # a small file that becomes a large one
        with gzip.open(folder / "codes.csv.gz", "wb", compresslevel=1) as stream:
            for _ in range(LARGE >> 26):
                stream.write(bytes(1 << 24))
        text = (folder / "run.toml").read_text("utf-8").replace("codes.csv", "codes.csv.gz")
        (folder / "run.toml").write_text(text, "utf-8")
    else:
        large(folder / "codes.csv")
    assert "larger than" in refused("audit --run FOLDER/run.toml", folder, made, capsys)


def repeated(path: Path, columns: dict[str, int], rows: int) -> None:
    """A small Parquet file of very many equal rows, with the notes of the one that it replaces."""
    notes = pyarrow.parquet.read_schema(path).metadata
    some = 1 << 22
    table = pyarrow.table({name: pyarrow.array(np.full(some, value)) for name, value in columns.items()})
    with pyarrow.parquet.ParquetWriter(path, table.schema.with_metadata(notes), compression="zstd") as writer:
        for _ in range(rows // some):
            writer.write_table(table.replace_schema_metadata(notes))


@pytest.mark.long
def test_classes_of_a_front_are_read_within_limits(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "evil"
    shutil.copytree(made / "cuts", folder)
    columns = dict.fromkeys(("recoding", "size", "diversity", "records", "cost"), 1)
    repeated(folder / "classes.parquet", columns, 1 << 26)
    assert "classes" in refused("ask FOLDER --max-loss 0.9", folder, made, capsys)


def test_a_seal_is_read_within_limits(made: Path, tmp_path: Path) -> None:
    """A changed file is known by its size, before it is read; a seal that names a file a million times is none."""
    folder = tmp_path / "front"
    shutil.copytree(made / "front", folder)
    assert sealed(folder / "run.toml")
    with Memory() as memory:
        large(folder / "seal")
        assert not sealed(folder / "run.toml")
    assert memory.megabytes < MEGABYTES
