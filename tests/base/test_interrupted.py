"""A command that is stopped says so and leaves nothing behind; what a killed one leaves is private, and swept later."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfumato.base.files import Scratch, new_folder, sweep
from sfumato.cli import run

PROGRAM = """
import os, sys, threading, time
from sfumato.cli import main
from sfumato.data import duckdb as duck

sys.stdout.write("ready\\n")
plain = duck.DuckEngine.run
def slow(self, sql):
    if "TEMP TABLE cells" in sql:
        sys.stdout.write("working\\n")
        sys.stdout.flush()
        plain(self, "CREATE OR REPLACE TEMP TABLE long AS SELECT sum(CAST(hash(a.range, b.range) AS DOUBLE)) AS n "
                    "FROM range(100000) AS a, range(100000) AS b")
    plain(self, sql)
duck.DuckEngine.run = slow
main(sys.argv[1:])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of a table that the engine cannot read as it is, with a folder of its own for temporary files."""
    (tmp_path / "temp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temp"))
    rows = "".join(f"{20 + number % 40},{'FM'[number % 2]}\r\n" for number in range(200))
    (tmp_path / "p.csv").write_bytes(("age,sex\n" + rows).encode())
    flat = '{ role = "quasi_identifier", hierarchy = { build = "flat" } }'
    text = f'version = 1\n[data]\npath = "p.csv"\n[columns]\nage = {flat}\nsex = {flat}\n'
    (tmp_path / "run.toml").write_text(text, "utf-8")
    return tmp_path


@contextmanager
def working(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A search in the middle of a long statement of the engine."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "search", str(folder / "run.toml"), "-o", str(folder / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        assert running.stdout is not None
        while running.stdout.readline() != "working\n":
            assert running.poll() is None
        yield running


@pytest.mark.long
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_is_stopped(folder: Path, sent: signal.Signals, code: int) -> None:
    with working(folder) as running:
        running.send_signal(sent)
        _, said = running.communicate(timeout=120)
    assert running.returncode == code, said
    assert "stopped" in said
    assert "Traceback" not in said
    assert sorted(path.name for path in folder.iterdir()) == ["p.csv", "run.toml", "temp"]
    assert not list((folder / "temp").iterdir())


@pytest.mark.long
def test_what_a_killed_command_leaves_is_private_and_swept_by_the_next(folder: Path) -> None:
    with working(folder) as running:
        running.kill()
        running.communicate(timeout=120)
    copies = list((folder / "temp").rglob("*.csv"))
    assert len(copies) == 1  # the table as UTF-8
    assert stat.S_IMODE(copies[0].stat().st_mode) == 0o600
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in (folder / "temp").iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", "search", str(folder / "run.toml"), "-o", str(folder / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list((folder / "temp").iterdir())


KILLED = """
import os, sys
from pathlib import Path
from sfumato.base.files import new_file, new_folder

path = Path(sys.argv[1])
if sys.argv[2] == "folder":
    with new_folder(path, replace=True) as inside:
        (inside / "secret").write_text("half")
        os._exit(9)
if sys.argv[2] == "renamed":
    with new_folder(path, replace=True) as inside:
        (inside / "secret").write_text("new")
        plain = Path.rename
        Path.rename = lambda one, two: (plain(one, two), os._exit(9))
if sys.argv[2] == "spark":
    from sfumato.data.spark_files import write
    class Frame:
        write = property(lambda self: self)
        def parquet(self, name):
            Path(name).mkdir()
            (Path(name) / "part-00000").write_text("half")
            os._exit(9)
    write(Frame(), path, None)
if sys.argv[2] == "removed":
    from sfumato.base.files import Scratch
    scratch = Scratch(".out-", path.parent)
    (scratch.path / "part").touch()
    os.rmdir = lambda *_, **__: os._exit(9)
    scratch.close()
if sys.argv[2] == "unlocked":
    Path.rename = lambda one, two: os._exit(9)
with new_file(path, overwrite=True) as part:
    part.write_text("half")
    os._exit(9)
"""


def killed(path: Path, kind: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), kind], check=False)
    assert done.returncode == 9


@pytest.mark.parametrize("kind", ["folder", "file", "spark", "unlocked", "removed"])
def test_what_a_killed_writer_leaves_is_swept_by_the_next_writer(tmp_path: Path, kind: str) -> None:
    killed(tmp_path / "out", kind)
    left = list(tmp_path.iterdir())
    assert len(left) == 1
    assert left[0].name.startswith(".")
    assert stat.S_IMODE(left[0].stat().st_mode) == 0o700
    with new_folder(tmp_path / "other"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_folder_that_was_put_aside_when_its_writer_was_killed_comes_back(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/old").touch()
    killed(tmp_path / "out", "renamed")
    assert not (tmp_path / "out").exists()
    with new_folder(tmp_path / "other"):
        pass
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["old"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]


def test_only_our_own_dead_folders_are_swept(tmp_path: Path) -> None:
    mine = Scratch("sfumato-", tmp_path)
    for name in ("sfumato-notes", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "sfumato-file").touch()
    (tmp_path / "sfumato-link").symlink_to(tmp_path / "other")
    (tmp_path / "other" / mine.LOCK).touch()
    before = sorted(tmp_path.iterdir())
    sweep(tmp_path)  # by this process, which holds it,
    elsewhere = "import sys; from pathlib import Path; from sfumato.base.files import sweep; sweep(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", elsewhere, str(tmp_path)], check=True)  # and by another
    assert sorted(tmp_path.iterdir()) == before
    mine.close()
    assert not mine.path.exists()


def test_a_reader_that_goes_away_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", "measures"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_end_of_a_file_is_not_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def ended(*_: object) -> None:
        raise EOFError

    monkeypatch.setattr("sfumato.samples.samples.sample", ended)
    monkeypatch.setattr("sfumato.cli.data.write_sample", ended)
    assert run(["sample", "adult", "-o", "nowhere"]) == 1
    assert "internal error: EOFError" in capsys.readouterr().err
