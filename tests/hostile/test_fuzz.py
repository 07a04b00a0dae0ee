"""Folders that were changed at random: a command ends in time, says what is wrong, and does nothing else.

`make test-hostile` runs thousands; the default is a short seeded round. SFUMATO_FUZZ is the number of folders.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.plans.channel import Channel
from sfumato.plans.response import warner
from sfumato.release.pack import checksum, digest
from sfumato.release.publish import publish
from sfumato.systems.groups.publish import publish_protection
from tests.groups.files import protected_front, protected_study
from tests.hostile.watching import CANARY, watched
from tests.release.fronts import front_of, small
from tests.systems.channel.files import channel_run

ROUNDS = int(os.environ.get("SFUMATO_FUZZ", "60"))
SEED = int(os.environ.get("SFUMATO_FUZZ_SEED", "20261115"))
SECONDS = 120  # far beyond what any command needs here; a command that hangs fails
LEVELS = {"age": 3, "post code": 3, "sex": 0}
STRANGE: list[Any] = [
    None, True, -1, 0, 2**63, 10**400, 1e308, float("nan"), float("inf"), "", "\x00", "\x1b]0;x\x07", "a" * 100_000,
    "../../../etc/passwd", "/dev/zero", f"/tmp/{CANARY}.csv", "postgresql://127.0.0.1:9/x?user=victim", "spark", [],
    {}, [[[[[[]]]]]], {"__proto__": {}}, ["x"] * 1000,
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each kind of folder, and a run file and a table of one's own."""
    folder = tmp_path_factory.mktemp("made")
    front = front_of(small(folder, rows=400), [LEVELS, LEVELS | {"age": 2}])
    front.save(folder / "front")
    publish(front, 0, folder / "release", state=folder / "state")
    cuts = front.study.with_search(system="cuts", generations=2, population=8)
    sf.search(cuts).save(folder / "cuts")
    groups = folder / "groups"
    groups.mkdir()
    protected_study(groups)
    protected_front(groups).save(folder / "protection")
    accept = {"uniques": "a small table made for a test", "attacks": "a small table made for a test"}
    publish_protection(sf.load_front(folder / "protection"), folder / "swapped", accept=accept, state=folder / "state")
    jobs = ("clerk", "cook", "nurse")
    (folder / "jobs.csv").write_text("job\n" + "".join(f"{jobs[i % 3]}\n" for i in range(300)), "utf-8")
    people = sf.Study(data={"path": str(folder / "jobs.csv")}, columns={})
    coin = Channel(("job",), jobs, jobs, warner(3, 0.6))
    sf.disguise(people, [coin], folder / "disguise", state=folder / "state")
    sf.search(people.with_channel(columns=["job"], points=3)).save(folder / "channel")
    (folder / "own.toml").write_text(front.study.as_toml(), "utf-8")
    channel_run(folder, "jobs.csv", name="jobs.toml", columns=["job"])
    return folder


COMMANDS: dict[str, list[Callable[[Path, Path, Path], list[str]]]] = {
    "front": [
        lambda folder, made, out: ["pick", str(folder), "--max-loss", "0.9"],
        lambda folder, made, out: ["ask", str(folder), "--max-loss", "0.9"],
        lambda folder, made, out: ["map", str(folder), "-o", str(out)],
        lambda folder, made, out: ["compare", str(folder), str(made / "front")],
        lambda folder, made, out: ["publish", str(folder), "--point", "0", "-o", str(out)],
        lambda folder, made, out: [
            "publish",
            str(folder),
            "--point",
            "0",
            "-o",
            str(out),
            "--run",
            str(made / "own.toml"),
        ],
        lambda folder, made, out: ["apply", str(folder), str(made / "people.csv"), "--point", "0", "-o", str(out)],
        lambda folder, made, out: ["estimate", str(made / "own.toml"), "--against", str(folder)],
    ],
    "release": [
        lambda folder, made, out: ["verify", str(folder)],
        lambda folder, made, out: ["verify", str(folder), "--source", str(made / "people.csv")],
        lambda folder, made, out: ["apply", str(folder), str(made / "people.csv"), "-o", str(out)],
    ],
}
COMMANDS["protection"] = [
    *COMMANDS["front"],
    lambda folder, made, out: ["pick", str(folder), "--limit", "max_findings=1e9", "--limit", "max_cost=1e9"],
    lambda folder, made, out: ["compare", str(folder), str(made / "protection")],
    lambda folder, made, out: ["publish", str(folder), "-o", str(out)],
    lambda folder, made, out: ["publish", str(folder), "-o", str(out), "--run", str(made / "groups" / "run.toml")],
]
COMMANDS["channel"] = [
    *COMMANDS["front"],
    lambda folder, made, out: ["pick", str(folder), "--limit", "min_privacy=0.1", "--limit", "max_error=1"],
    lambda folder, made, out: ["pick", str(folder), "--knee"],
    lambda folder, made, out: ["compare", str(folder), str(made / "channel")],
    lambda folder, made, out: ["channel", "export", str(folder), "--point", "0", "-o", str(out)],
    lambda folder, made, out: [
        "publish",
        str(folder),
        "--point",
        "0",
        "-o",
        str(out),
        "--run",
        str(made / "jobs.toml"),
    ],
]
KINDS = {"front": "front", "cuts": "front", "release": "release", "swapped": "release", "disguise": "release"}
KINDS |= {"protection": "protection", "channel": "channel"}


def spoil_bytes(path: Path, rng: random.Random) -> None:
    raw = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 3, 20])):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    path.write_bytes(raw if rng.random() < 0.8 else raw[: rng.randrange(len(raw))])


def spoil_json(path: Path, rng: random.Random) -> None:
    """One value somewhere becomes something strange, is left out, or is written twice."""
    try:
        value = json.loads(path.read_bytes())
    except ValueError:  # an earlier blow hit it: more of the same
        spoil_bytes(path, rng)
        return
    inside: Any = value
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        key = rng.choice(keys)
        if not isinstance(inside[key], dict | list) or not inside[key] or rng.random() < 0.25:
            break
        inside = inside[key]
    match rng.randrange(3):
        case 0:
            del inside[key]
        case 1 if isinstance(inside, list):
            inside.append(inside[key])
        case _:
            inside[key] = rng.choice(STRANGE)
    path.write_text(json.dumps(value), "utf-8")


def spoil_lines(path: Path, rng: random.Random) -> None:
    lines = path.read_text("utf-8", "replace").splitlines()
    place = rng.randrange(len(lines))
    key = lines[place].split("=")[0].strip() or "x"
    value = rng.choice(STRANGE)
    written = json.dumps(value) if not isinstance(value, int) or value < 2**63 else str(value)
    lines[place] = rng.choice([f"{key} = {written}", f"{key} = nan", lines[place] * 2, "[" * 3000, 'engine = "spark"'])
    path.write_text("\n".join(lines) + "\n", "utf-8")


def spoil_entry(path: Path, rng: random.Random) -> None:
    """The file is gone, a folder, a link out, a pipe, or empty."""
    match rng.randrange(5):
        case 0:
            path.unlink()
        case 1:
            path.unlink()
            path.mkdir()
        case 2:
            path.unlink()
            path.symlink_to("/etc/hostname")
        case 3:
            path.unlink()
            os.mkfifo(path)
        case _:
            path.write_bytes(b"")


def spoil(folder: Path, rng: random.Random) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    if not files:
        return "nothing left to spoil"
    path = rng.choice(files)
    ways = [spoil_bytes, spoil_entry]
    ways += [spoil_json] * 3 if path.suffix == ".json" else []
    ways += [spoil_lines] * 3 if path.suffix in (".toml", ".csv", ".html") else []
    way = rng.choice(ways)
    way(path, rng)
    return f"{way.__name__} {path.relative_to(folder)}"


def reseal(folder: Path) -> None:
    """What a forger does: digests and checksum that fit, as far as they can be made."""
    path = folder / "private" / "manifest.json"
    if not path.is_file():  # reading a pipe would never end
        return
    try:
        manifest = json.loads(path.read_text("utf-8"))
        manifest["files"] = {n: digest(folder / n) for n in manifest["files"] if (folder / n).is_file()}
        manifest["checksum"] = checksum(manifest)
        path.write_text(json.dumps(manifest), "utf-8")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise AssertionError(f"no end after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*") if p.is_file()}


def test_folders_changed_at_random(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    monkeypatch.chdir(tmp_path)
    rng = random.Random(SEED)
    before, codes = state_of(made), Counter[str]()
    for number in range(ROUNDS):
        kind = rng.choice(sorted(KINDS))
        folder, out = tmp_path / "evil", tmp_path / "out"
        shutil.copytree(made / kind, folder)
        done = [spoil(folder, rng) for _ in range(rng.choice([1, 1, 2, 4]))]
        if KINDS[kind] == "release" and rng.random() < 0.6:
            reseal(folder)
        command = rng.choice(COMMANDS[KINDS[kind]])(folder, made, out)
        case = f"folder {number} ({kind}), {'; '.join(done)}: {' '.join(command)}"
        with watched() as seen, limited(SECONDS):
            code = run(command)
        printed = capsys.readouterr()
        text = printed.out + printed.err
        assert not seen, (case, seen)
        assert code in (0, 1, 2, 3), (case, text[-2000:])
        assert code != 1 or command[0] == "verify", (case, text[-2000:])
        assert "internal fault" not in text, (case, text[-2000:])
        assert "hunter2" not in text, case
        codes[f"{command[0]} {code}"] += 1
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        out.unlink(missing_ok=True)
        leftover = [path.name for path in tmp_path.iterdir()]
        assert not leftover, (case, leftover)
    assert state_of(made) == before
    print(dict(sorted(codes.items())))
