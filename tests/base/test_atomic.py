"""Files and folders are written whole or not at all, and what is private is readable by its owner alone."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.methods.channel.files import channel_run
from tests.methods.groups.files import protected_study
from tests.release.fronts import front_of, small

from sfumato.base.files import new_file, new_folder, write_bytes, write_text
from sfumato.cli import run
from sfumato.errors import InputError
from sfumato.front import Front
from sfumato.methods.run import Checkpoint
from sfumato.papers.groups import make_census
from sfumato.samples.samples import write_people, write_sample

LEVELS = {"age": 1, "post code": 1, "sex": 0}


def modes(root: Path) -> dict[str, int]:
    """Permissions of a path and of everything below it that differ from 0700 for folders and 0600 for files."""
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}
    return {path.name: mode for path, mode in found.items() if mode != (0o700 if path.is_dir() else 0o600)}


@pytest.mark.usefixtures("_generous")
def test_fronts_are_private(tmp_path: Path) -> None:
    front_of(small(tmp_path), [LEVELS]).save(tmp_path / "front")
    assert modes(tmp_path / "front") == {}
    assert run(["map", str(tmp_path / "front")]) == 0
    assert modes(tmp_path / "front") == {}


@pytest.mark.usefixtures("_generous")
def test_states_of_searches_are_private(tmp_path: Path) -> None:
    Checkpoint(tmp_path / ".front.state", small(tmp_path), "abc").save(lambda: {"a": np.arange(3)}, now=True)
    assert modes(tmp_path / ".front.state") == {}


@pytest.mark.usefixtures("_generous")
def test_channel_fronts_are_private(tmp_path: Path) -> None:
    small(tmp_path)
    declared = channel_run(tmp_path, tmp_path / "people.csv", columns=["ill"], points=2)
    out = tmp_path / "front"
    assert run(["search", str(declared), "-o", str(out)]) == 0
    assert modes(out) == {}
    assert run(["channel", "export", str(out), "--point", "0", "-o", str(tmp_path / "channel.json")]) == 0
    assert modes(tmp_path / "channel.json") == {}


@pytest.mark.usefixtures("_generous")
def test_protections_and_their_swaps_are_private(tmp_path: Path) -> None:
    protected_study(tmp_path)
    assert run(["search", str(tmp_path / "run.toml"), "-o", str(tmp_path / "out")]) in (0, 3)
    assert '"givers"' in (tmp_path / "out/front.json").read_text("utf-8")
    assert modes(tmp_path / "out") == {}


@pytest.mark.usefixtures("_generous")
def test_converted_people_are_private(tmp_path: Path) -> None:
    protected_study(tmp_path)
    target = tmp_path / "harmonised.parquet"
    assert run(["groups", "harmonise", str(tmp_path / "run.toml"), "-o", str(target)]) == 0
    assert modes(target) == {}


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def stopped(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


Writer = Callable[[Path], object]
WRITERS: dict[str, tuple[str, Writer]] = {
    "front": ("sfumato.front.front.seal", lambda path: a_front(path.parent).save(path)),
    "census": ("sfumato.papers.groups.write_census", lambda path: make_census(path, 4000, 60, 12)),
    "sample": ("shutil.copytree", lambda path: write_sample("adult", path)),
    "people": ("pyarrow.parquet.ParquetWriter", lambda path: write_people(path, 2000)),
}


def a_front(folder: Path) -> Front:
    (folder / "source").mkdir()
    return front_of(small(folder / "source"), [LEVELS])


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_nothing_and_names_the_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, write = WRITERS[name]
    monkeypatch.setattr(where, full)
    with pytest.raises(InputError, match=r"cannot write .*/out: No space left on device"):
        write(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.name != "source"] == []


@pytest.mark.parametrize("name", WRITERS)
def test_ctrl_c_leaves_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where, write = WRITERS[name]
    monkeypatch.setattr(where, stopped)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.name != "source"] == []


def test_a_new_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    with new_folder(tmp_path / "out", private=False) as inside:
        (inside / "a").write_text("a", "utf-8")
        assert not (tmp_path / "out").exists()
        assert stat.S_IMODE(inside.parent.stat().st_mode) == 0o700  # nobody else looks in before it is complete
    assert (tmp_path / "out/a").read_text("utf-8") == "a"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_existing_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="already exists"), new_folder(tmp_path / "out"):
        raise AssertionError("nothing is written")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="already exists"), new_folder(tmp_path / "link"):
        raise AssertionError("nothing is written")
    with pytest.raises(InputError, match="no folder"), new_folder(tmp_path / "no" / "out"):
        raise AssertionError("nothing is written")


def test_a_folder_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="already exists"), new_folder(tmp_path / "out"):
        (tmp_path / "out").mkdir()
    assert list((tmp_path / "out").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_is_replaced_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    for text in ("one", "two"):
        with new_folder(tmp_path / "out", replace=True) as inside:
            (inside / text).touch()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["two"]
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "out", replace=True) as inside:
        stopped((inside / "three").touch())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["two"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_everything_is_flushed_before_the_name_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    plain = os.fsync

    def note(handle: int) -> None:
        flushed.append(os.fstat(handle).st_ino)
        plain(handle)

    monkeypatch.setattr(os, "fsync", note)
    with new_folder(tmp_path / "out") as inside:
        (inside / "sub").mkdir()
        (inside / "sub/a").write_text("a", "utf-8")
    wanted = [tmp_path / "out/sub/a", tmp_path / "out/sub", tmp_path / "out", tmp_path]
    assert [path.stat().st_ino for path in wanted] == flushed


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", "one")
    with pytest.raises(InputError, match="already exists"):
        write_text(path, "two")
    write_bytes(path, b"three", overwrite=True, private=True)
    assert path.read_bytes() == b"three"
    assert modes(path) == {}
    with pytest.raises(KeyboardInterrupt), new_file(path, overwrite=True) as part:
        stopped(part.write_text("half", "utf-8"))
    with pytest.raises(InputError, match=r"cannot write .*a\.txt: No space left"), new_file(path, overwrite=True):
        full()
    assert path.read_bytes() == b"three"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_the_reason_of_a_failed_copy_is_named(tmp_path: Path) -> None:
    """shutil reports many files at once, and pyarrow has a number without words: neither has a `strerror`."""
    failures = [
        shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]),
        OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"),
    ]
    for failure in failures:
        with pytest.raises(InputError, match="No space left on device") as caught, new_folder(tmp_path / "out"):
            raise failure
        assert "None" not in str(caught.value)
