"""Folders that were changed at random: a command ends in time, says what is wrong, and does nothing else.

`make test-hostile` runs thousands; the default is a short seeded round. SFUMATO_FUZZ is the number of folders.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from sfumato.cli import run
from tests.hostile.folders import COMMANDS, KINDS
from tests.hostile.limits import Memory, limited
from tests.hostile.spoiling import reseal, spoil
from tests.hostile.watching import watched

ROUNDS = int(os.environ.get("SFUMATO_FUZZ", "60"))
SEED = int(os.environ.get("SFUMATO_FUZZ_SEED", "20261115"))
SECONDS = 120  # far beyond what any command needs here; a command that hangs fails
MEGABYTES = 1024  # more than it had before: DuckDB, Arrow and kernels need some hundred once
SECRET = "hunter2"
# A run file is the user's own: it may name an engine, a server, a table. It may not start a program.
NAMED_BY_RUN_FILE = {"engine spark", "engine postgres", "socket.connect", "socket.getaddrinfo", "opened the canary"}


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*") if p.is_file()}


def faults_of(
    command: list[str], kind: str, folder: Path, capsys: pytest.CaptureFixture[str], codes: Counter[str]
) -> list[str]:
    """Run a command over a spoiled folder; what it did that it may not do."""
    faults: list[str] = []
    with watched() as seen, Memory() as memory:
        try:
            with limited(SECONDS):
                code = run(command)
        except AssertionError as error:
            code = -1
            faults.append(str(error))
    printed = capsys.readouterr()
    text = printed.out + printed.err
    words = " ".join(command[:2]) if command[0] in ("channel", "groups") else command[0]
    codes[f"{words} {code}"] += 1
    wrong = set(seen) - (NAMED_BY_RUN_FILE if kind.endswith(" run") else set())
    faults += [f"it did: {event}" for event in sorted(wrong)]
    if code not in (0, 2, 3, 4) or (code == 4 and command[0] != "verify") or "internal error" in text:
        faults.append(f"exit {code}: {text[-1500:]}")
    if SECRET in text:
        faults.append("the password was shown")
    if memory.megabytes > MEGABYTES:
        faults.append(f"{memory.megabytes} MB of memory")
    return faults


@pytest.mark.long
def test_folders_changed_at_random(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.chdir(tmp_path)
    rng = random.Random(SEED)
    before, codes = state_of(made), Counter[str]()
    broken: list[str] = []
    for number in range(ROUNDS):
        kind = rng.choice(sorted(KINDS))
        folder, out = tmp_path / "evil", tmp_path / "out"
        shutil.copytree(made / kind, folder)
        done = [spoil(folder, rng) for _ in range(rng.choice([1, 1, 2, 4]))]
        if KINDS[kind] == "release" and rng.random() < 0.6:
            reseal(folder)
        command = rng.choice(COMMANDS[KINDS[kind]])(folder, made, out)
        faults = faults_of(command, KINDS[kind], folder, capsys, codes)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        out.unlink(missing_ok=True)
        faults += [f"left: {path.name}" for path in tmp_path.iterdir()]
        if faults:
            case = f"folder {number} ({kind}), {'; '.join(done)}: {' '.join(command)}"
            broken.append("\n".join([case, *faults]))
            with capsys.disabled():
                print(f"\n{broken[-1]}\n", flush=True)
            for path in tmp_path.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    with capsys.disabled():
        print(f"\n{ROUNDS} folders, seed {SEED}: {dict(sorted(codes.items()))}")
    assert not broken, f"{len(broken)} of {ROUNDS}:\n" + "\n\n".join(broken[:20])
    assert state_of(made) == before
