"""Machine code does not outlive a change in a loop that it holds, is ours alone, and is made again where damaged."""

from __future__ import annotations

import os
import pickle
import runpy
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.base import compiled


def test_a_module_is_known_by_all_that_it_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels = compiled.PACKAGE / "methods/cuts/kernels.py"
    assert {compiled.PACKAGE / "methods/cuts/kernels.py", compiled.PACKAGE / "base/arrays.py"} <= set(
        compiled.sources(kernels)
    )
    (tmp_path / "inner.py").write_text("A = 1\n")
    (tmp_path / "outer.py").write_text("from sfumato import nowhere\nfrom sfumato.inner import (\n    A,\n)\n")
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path)
    before = compiled.digest.__wrapped__(tmp_path / "outer.py")
    assert compiled.digest.__wrapped__(tmp_path / "outer.py") == before
    (tmp_path / "inner.py").write_text("A = 2\n")
    compiled._read.cache_clear()  # within one process a module is read once
    assert compiled.digest.__wrapped__(tmp_path / "outer.py") != before


PROGRAM = """
from sfumato.base.compiled import compiled

@compiled
def twice(x):
    return 2 * x

print(twice(21), len(twice.stats.cache_hits), sum(twice.stats.cache_hits.values()))
"""


def twice(folder: Path, **environment: str) -> str:
    """Run a compiled loop in a process of its own; what it says, and whether its machine code was found."""
    program = folder / "program.py"
    program.write_text(PROGRAM, "utf-8")
    plain = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, str(program)],
        env=plain | {"XDG_CACHE_HOME": str(folder / "cache")} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def kept(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.nb?"))


NEW, FOUND = "42 0 0", "42 1 1"


def test_machine_code_is_found_again(tmp_path: Path) -> None:
    assert [twice(tmp_path), twice(tmp_path)] == [NEW, FOUND]


@pytest.fixture
def again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """The same loop, compiled or loaded as a new process would, in this one."""
    (tmp_path / "program.py").write_text("def twice(x):\n    return 2 * x\n", "utf-8")
    function = runpy.run_path(str(tmp_path / "program.py"))["twice"]
    monkeypatch.setattr(compiled, "kernels", tmp_path / "cache" / "sfumato" / "kernels")
    compiled.usable.cache_clear()

    def said() -> str:
        loop: Any = compiled.compiled(function)
        return f"{loop(21)} {len(loop.stats.cache_hits)} {sum(loop.stats.cache_hits.values())}"

    yield said
    compiled.usable.cache_clear()


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\x80\x05", None], ids=["empty", "garbage", "pickle", "cut"])
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_machine_code_is_made_again(
    tmp_path: Path, again: Callable[[], str], suffix: str, damage: bytes | None
) -> None:
    assert [again(), again()] == [NEW, FOUND]
    [file] = [path for path in kept(tmp_path) if path.suffix == suffix]
    file.write_bytes(file.read_bytes()[:-7] if damage is None else damage)
    assert [again(), again()] == [NEW, FOUND]


class Poison:
    """What makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.long
@pytest.mark.parametrize("given", [False, True], ids=["our folder", "a folder of the user's"])
@pytest.mark.parametrize("where", ["folder", "parent"])
def test_machine_code_that_others_could_have_written_is_not_loaded(tmp_path: Path, given: bool, where: str) -> None:
    shared = tmp_path / "shared"
    environment = {"NUMBA_CACHE_DIR": str(shared / "kernels")} if given else {"XDG_CACHE_HOME": str(shared)}
    shared.mkdir()
    (shared / "kernels").mkdir(mode=0o700)
    twice(tmp_path, **environment)
    indexes = [path for path in kept(shared) if path.suffix == ".nbi"]
    assert indexes
    for index in indexes:
        index.write_bytes(pickle.dumps(Poison(tmp_path / "PWNED")))
    folder = shared / ("kernels" if given else "sfumato/kernels")
    (folder if where == "folder" else shared).chmod(0o777)
    assert twice(tmp_path, **environment) == NEW
    assert not (tmp_path / "PWNED").exists()


def test_our_folder_is_ours_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        twice(tmp_path)
    finally:
        os.umask(before)
    for folder in (tmp_path / "cache", tmp_path / "cache/sfumato", tmp_path / "cache/sfumato/kernels"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.long
def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    """Machine code is kept among temporary files then, and where nothing can be written it is made each time."""
    (tmp_path / "cache").write_text("a file, not a folder", "utf-8")
    (tmp_path / "temporary").mkdir()
    assert [twice(tmp_path, TMPDIR=str(tmp_path / "temporary")) for _ in range(2)] == [NEW, FOUND]
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)  # others could put a folder there in place of ours
    assert [twice(tmp_path, TMPDIR=str(tmp_path / "open")) for _ in range(2)] == [NEW, NEW]


SEARCH = """
import sys
from sfumato.cli import main
try:
    main(["search", "run.toml", "-o", "front", "--json"])
except SystemExit as ended:
    assert ended.code == 0, ended.code
late = ["scipy.linalg", "sfumato.release.publish", "sfumato.methods.cuts.search", "matplotlib"]
print([name for name in late if name in sys.modules], file=sys.stderr)
"""


def test_a_search_on_the_command_line_waits_for_nothing_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex,age\nm,1\nf,2\nm,2\n", "utf-8")
    run = "version = 1\n[data]\npath = 'people.csv'\n[columns]\n"
    run += "\n".join(
        f"{name} = {{ role = 'quasi_identifier', hierarchy = {{ build = 'flat' }} }}" for name in ("sex", "age")
    )
    (tmp_path / "run.toml").write_text(run, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SEARCH], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_full_disk_is_no_fault(tmp_path: Path) -> None:
    """The data of a loop does not fit: a limit on the size of files stands for a disk without room."""
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    program += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    (tmp_path / "sitecustomize.py").write_text(program, "utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert twice(tmp_path, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1") == NEW


ALLOCATES = """
import numpy as np
from sfumato.base.compiled import compiled

@compiled
def numbers(count):
    return np.arange(count)

print(numbers(21).sum(), sum(numbers.stats.cache_hits.values()))
"""


@pytest.mark.long
def test_a_kept_loop_that_takes_memory_runs_where_nothing_was_compiled(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ALLOCATES, "utf-8")
    own = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    for hits in (0, 1):
        command = [sys.executable, str(tmp_path / "program.py")]
        done = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
        assert done.stdout == f"210 {hits}\n"
