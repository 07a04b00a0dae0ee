"""Folders that are changed at random, as somebody would who looks for a fault."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from sfumato.release.manifest import checksum, digest
from tests.hostile.watching import CANARY

STRANGE: list[Any] = [
    None, True, -1, 0, 2**63, 10**400, 1e308, float("nan"), float("inf"), "", "\x00", "\x1b]0;x\x07", "a" * 100_000,
    "../../../etc/passwd", "/dev/zero", f"/tmp/{CANARY}.csv", "postgresql://127.0.0.1:9/x?user=victim", "spark", [],
    {}, [[[[[[]]]]]], {"__proto__": {}}, ["x"] * 1000,
]  # fmt: skip


def spoil_bytes(path: Path, rng: random.Random) -> None:
    raw = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 3, 20])):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    path.write_bytes(raw if rng.random() < 0.8 else raw[: rng.randrange(len(raw))])


def spoil_json(path: Path, rng: random.Random) -> None:
    """One value somewhere becomes something strange, is left out, or is written twice."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):  # it was spoiled before
        return spoil_bytes(path, rng)
    if not isinstance(value, dict | list) or not value:
        return spoil_bytes(path, rng)
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
    return None


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
    if not path.is_file():  # a pipe would never end
        return
    try:
        manifest = json.loads(path.read_text("utf-8"))
        manifest["files"] = {n: digest(folder / n) for n in manifest["files"] if (folder / n).is_file()}
        manifest["checksum"] = checksum(manifest)
        path.write_text(json.dumps(manifest), "utf-8")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
