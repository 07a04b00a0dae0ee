"""Commands that are stopped or killed at any moment leave nothing unfinished, nothing readable, and nothing for long.

`make test-hostile` kills hundreds of times; the default is a short seeded round. SFUMATO_KILLS is the number of kills.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.base.files import UNLOCKED
from sfumato.methods.publish import verify
from sfumato.methods.registry import load_front
from tests.hostile.folders import ACCEPT
from tests.moments import surroundings

KILLS = int(os.environ.get("SFUMATO_KILLS", "3"))
SEED = int(os.environ.get("SFUMATO_FUZZ_SEED", "20261115"))
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
SECONDS = 300
UNREPEATED = ("seconds", "stages", "versions")


def whole_front(folder: Path) -> None:
    assert load_front(folder).points


def whole_release(folder: Path) -> None:
    assert verify(folder), verify(folder).differences


def whole_census(folder: Path) -> None:
    assert sf.read(folder / "run.toml").table().records == 3_000


def whole_page(path: Path) -> None:
    assert path.read_text("utf-8").rstrip().endswith("</html>")


@dataclass(frozen=True)
class Case:
    """A command of the sandbox, whether what it wrote is whole, and what others may read of it."""

    line: str
    whole: Callable[[Path], Any]
    public: tuple[str, ...] = ()
    resumed: bool = False


ACCEPTED = " ".join(f"--accept {rule}=made-for-a-test" for rule in (*ACCEPT, "earlier"))
RELEASED = ("out", "out/public")
CASES = {
    "search lattice": Case("search run-lattice/run.toml -o out", whole_front, resumed=True),
    "search cuts": Case("search run-cuts/run.toml -o out", whole_front, resumed=True),
    "search local": Case("search run-local/run.toml -o out", whole_front, resumed=True),
    "search cells": Case("search run-cells/run.toml -o out", whole_front, resumed=True),
    "search channel": Case("search run-channel/run.toml -o out", whole_front),
    "search groups": Case("search groups/run.toml -o out --set groups.protect.test_seed=1", whole_front),
    "publish groups": Case(f"publish protection -o out {ACCEPTED}", whole_release, RELEASED),
    "publish": Case(f"publish front --point 0 -o out {ACCEPTED}", whole_release, RELEASED),
    "apply": Case(f"apply front people.csv --point 0 -o out {ACCEPTED}", whole_release, RELEASED),
    "verify": Case("verify release --source people.csv", lambda folder: None),
    "audit": Case("audit --run run-lattice/run.toml --html out", whole_page),
    "sample": Case("sample census --records 3000 -o out", whole_census, ("out",)),
    "disguise": Case(
        f"channel disguise --channel analyst/coin.json --data jobs.csv -o out {ACCEPTED}",
        whole_release,
        RELEASED,
    ),
}


class Sandbox:
    """A folder with tables, temporary files and a state folder of its own, and commands that are run in it."""

    def __init__(self, root: Path, made: Path, key: Path) -> None:
        self.root, self.work, self.temp, self.state = (root, *(root / name for name in ("work", "temp", "state")))
        shutil.copytree(made, self.work, symlinks=True)
        self.temp.mkdir(0o755)
        self.state.mkdir(0o700)
        shutil.copy(key, self.state / key.name)
        for path in (root, self.work):
            path.chmod(0o755)
        self.before = set(root.rglob("*"))

    @property
    def out(self) -> Path:
        return self.work / "out"

    def run(self, line: str, kind: int = 0, at: int = 0) -> tuple[int, str, int]:
        """Run a command under a generous umask, with a signal at a moment; its exit code, its words, the moments."""
        count = self.root.parent / "count"
        environment = surroundings(self.root.parent / "moment.json", self.root, kind, at, count)
        environment |= {"SFUMATO_STATE": str(self.state), "TMPDIR": str(self.temp)}
        done = subprocess.run(
            [sys.executable, "-m", "sfumato", *line.split()],
            cwd=self.work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            preexec_fn=_as_at_a_terminal,
        )
        moments = int(count.read_text()) if count.exists() else 0
        count.unlink(missing_ok=True)
        return done.returncode, done.stdout + done.stderr, moments

    def left(self) -> list[str]:
        """What is new, beside the result and the state that a search can be resumed from."""
        kept = (self.out, self.work / ".out.state")
        new = [path for path in (*self.work.iterdir(), *self.temp.iterdir()) if path not in self.before]
        return sorted(path.name.removesuffix(UNLOCKED) for path in new if path not in kept)  # half swept is still there

    def readable(self, public: tuple[str, ...]) -> list[str]:
        """New files that others could read, beside those that are for them."""
        return [
            str(path.relative_to(self.root))
            for path in open_to_others(self.root)
            if path not in self.before and not _within(path.relative_to(self.work), public)
        ]


def _as_at_a_terminal() -> None:
    os.umask(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _within(path: Path, public: tuple[str, ...]) -> bool:
    """Whether a path is one that others may read; of a folder only its list, where its parts stand there too."""
    if str(path) in public:
        return True
    if len(public) == 1:
        return public[0] in map(str, path.parents)
    return any(name in map(str, path.parents) for name in public[1:])


def open_to_others(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            if mode & 0o044:
                yield path
            if mode & 0o011:
                yield from open_to_others(path)
        elif mode & 0o066 and not stat.S_ISLNK(mode):
            yield path


@pytest.fixture
def own_key(_own_key: Path) -> Path:
    return _own_key


def repeatable(front: Path) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((front / "front.json").read_text("utf-8"))
    return {name: value for name, value in about.items() if name not in UNREPEATED}


def removed(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def check_killed(sandbox: Sandbox, case: Case, before: list[str], kind: int, code: int, said: str, what: str) -> None:
    """What is true at any moment after a signal."""
    done = sandbox.out.exists() or "-o out" not in what  # the signal came when all was done
    assert code in (-kind, 128 + kind, *([0] if done else [])), (what, code, said)
    assert "Traceback" not in said, (what, said)
    assert "internal error" not in said, (what, said)
    public = case.public if sandbox.out.exists() else ()
    assert sandbox.readable(public) == [], what
    if kind != signal.SIGKILL:
        # What an earlier kill left may still be there, if the signal came before it was swept.
        assert set(sandbox.left()) <= set(before), what
    if sandbox.out.exists():
        case.whole(sandbox.out)


QUICK = ("search cuts", "publish", "disguise")  # a short round has some kills of each, a long one of all
NAMES = tuple(CASES) if 3 * len(CASES) < KILLS else QUICK


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_killed_at_any_moment(
    name: str,
    made: Path,
    own_key: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case, rng = CASES[name], random.Random(f"{SEED} {name}")
    place = NAMES.index(name)
    kills = KILLS // len(NAMES) + (place < KILLS % len(NAMES))
    sandbox = Sandbox(tmp_path / "sandbox", made, own_key)
    monkeypatch.setenv("SFUMATO_STATE", str(sandbox.state))
    code, said, moments = sandbox.run(case.line)
    assert code == 0, said
    assert moments > 3, "no moments were seen"
    reference = repeatable(sandbox.out) if case.resumed else None
    assert sandbox.readable(case.public) == []
    counts: Counter[str] = Counter()
    for number in range(kills):
        kind, at = SIGNALS[(number + place) % 3], rng.randint(1, moments)
        unfinished = (sandbox.work / ".out.state").exists()
        line = case.line + (" --resume" if case.resumed and unfinished else "")
        if not unfinished:
            removed(sandbox.out)
        before = sandbox.left()
        code, said, _ = sandbox.run(line, kind, at)
        what = f"{line}, {signal.Signals(kind).name} at moment {at} of {moments}"
        check_killed(sandbox, case, before, kind, code, said, what)
        counts[f"{signal.Signals(kind).name} {code}"] += 1
    unfinished = (sandbox.work / ".out.state").exists()
    if not unfinished:
        removed(sandbox.out)
    code, said, _ = sandbox.run(case.line + (" --resume" if case.resumed and unfinished else ""))
    assert code == 0, said
    assert sandbox.left() == []
    assert not (sandbox.work / ".out.state").exists()
    case.whole(sandbox.out)
    assert reference is None or repeatable(sandbox.out) == reference
    with capsys.disabled():
        print(f"\n{name}: {kills} kills over {moments} moments: {dict(sorted(counts.items()))}")
