"""The state of a search over cuts as arrays, to be kept and taken up again."""

from __future__ import annotations

import json

import numpy as np

from sfumato.algorithms.archive import Archive
from sfumato.algorithms.memetic import State, Walker
from sfumato.algorithms.seen import Seen
from sfumato.runtime.json_files import parse_json
from sfumato.systems.checkpoint import Parts


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
    about = parse_json(str(parts["about"]), "the state of a search")
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
