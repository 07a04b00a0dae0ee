"""A search on disk: its state every few seconds, so that one that was broken off goes on to the same result."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.algorithms.archive import Archive
from sfumato.algorithms.evaluation import Evaluated, Memory
from sfumato.algorithms.memetic import State, Walker
from sfumato.algorithms.seen import Seen
from sfumato.data.atomic import new_file
from sfumato.errors import InputError
from sfumato.study import Study
from sfumato.version import __version__

EVERY = 1.0  # seconds between two saves, at least; a state may hold millions of candidates seen, so saving is
SHARE = 20  # kept to one part in this many of the time
UNCOUNTED = {"threads", "evaluations"}  # settings that do not change the result, but perhaps where it ends

Parts = Mapping[str, Any]  # arrays by name


class Checkpoint:
    """The file of a search's state. It fits one study, one table and one version only."""

    def __init__(self, path: Path, study: Study, fingerprint: str, every: float = EVERY) -> None:
        self.path, self.every = path, every
        settings = study.model_dump(mode="json")
        settings["search"] = {n: v for n, v in settings["search"].items() if n not in UNCOUNTED}
        said = json.dumps([settings, fingerprint, __version__], sort_keys=True, ensure_ascii=False)
        self._key = hashlib.sha256(said.encode()).hexdigest()
        self._next = time.monotonic() + every

    def save(self, state: Callable[[], Parts], now: bool = False) -> None:
        """Write the state if it is time to; whole or not at all."""
        began = time.monotonic()
        if not now and began < self._next:
            return
        with new_file(self.path, overwrite=True, private=True) as part, part.open("wb") as stream:
            np.savez(stream, key=np.array(self._key), **state())
        ended = time.monotonic()
        self._next = ended + (max(self.every, SHARE * (ended - began)) if self.every else 0.0)

    def load(self) -> Parts | None:
        """The state as it was saved; None if there is none."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
                parts = {name: found[name] for name in found.files}
            if str(parts.pop("key")) == self._key:
                return parts
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{self.path} cannot be read", expected="the state of a search", remedy="delete it and start anew"
            ) from error
        raise InputError(
            f"{self.path} is the state of another search",
            expected="the same run file, table and version as when it was broken off",
            remedy="start anew instead of resuming",
        )

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def packed(state: State) -> Parts:
    """The state of a search over cuts as arrays."""
    live = sorted(state.bits)
    width = state.population.shape[1]
    about = {
        "generation": state.generation,
        "evaluations": state.evaluations,
        "number": state.number,
        "rng": state.rng.bit_generator.state,
    }
    empty = np.empty((0, width), dtype=np.uint8)
    return {
        "about": np.array(json.dumps(about)),
        "population": state.population,
        "fitness": state.fitness,
        "grid": state.archive.grid,
        "values": state.archive.values,
        "members": state.archive.members,
        "live": np.array(live, dtype=np.int64),
        "bits": np.stack([state.bits[m] for m in live]) if live else empty,
        "variants": np.array([state.variants[m] for m in live], dtype=np.int64),
        "explored": np.array(sorted(state.explored), dtype=np.int64),
        "seen": state.seen.keys,
        "walkers": np.stack([w.bits for w in state.walkers]) if state.walkers else empty,
        "targets": np.array([w.target for w in state.walkers]),
        "steps": np.array([w.steps for w in state.walkers], dtype=np.int64),
    }


def unpacked(parts: Parts) -> State:
    """A search over cuts as it was."""
    about = json.loads(str(parts["about"]))
    rng = np.random.default_rng()
    rng.bit_generator.state = about["rng"]
    archive = Archive(parts["grid"])
    archive.values, archive.members = parts["values"], parts["members"]
    live = parts["live"].tolist()
    walkers = zip(parts["walkers"], parts["targets"], parts["steps"].tolist(), strict=True)
    return State(
        generation=about["generation"],
        rng=rng,
        population=parts["population"],
        fitness=parts["fitness"],
        archive=archive,
        bits=dict(zip(live, parts["bits"], strict=True)),
        variants=dict(zip(live, parts["variants"].tolist(), strict=True)),
        explored=set(parts["explored"].tolist()),
        seen=Seen(parts["seen"]),
        evaluations=about["evaluations"],
        number=about["number"],
        walkers=[Walker(bits, target, steps) for bits, target, steps in walkers],
    )


def remembered(memories: Mapping[str, Memory]) -> Parts:
    """All that searches of a lattice evaluated, as arrays. They are the same at every run, so this is all they need."""
    found = {}
    for name, memory in memories.items():
        if memory.count:
            for part in ("nodes", "values", "bounds", "violation"):
                found[f"{name}/{part}"] = getattr(memory.all, part)
    return found


def recalled(parts: Parts | None, name: str) -> Evaluated | None:
    """What a search of a lattice had evaluated; None where nothing is known of it."""
    if parts is None or f"{name}/nodes" not in parts:
        return None
    return Evaluated(*(parts[f"{name}/{part}"] for part in ("nodes", "values", "bounds", "violation")))
