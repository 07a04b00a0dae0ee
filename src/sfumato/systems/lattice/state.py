"""What a search of a lattice evaluated as arrays, to be kept and taken up again."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.algorithms.evaluation import PARTS, Evaluated, Memory
from sfumato.systems.checkpoint import Parts


def remembered(memories: Mapping[str, Memory]) -> Parts:
    """All that searches of a lattice evaluated, as arrays. They are the same at every run, so this is all they need."""
    result = {}
    for name, memory in memories.items():
        if memory.count:
            for part in PARTS:
                result[f"{name}/{part}"] = getattr(memory.all, part)
    return result


def recalled(parts: Parts | None, name: str) -> Evaluated | None:
    """What a search of a lattice had evaluated; None where nothing is known of it."""
    if parts is None or f"{name}/nodes" not in parts:
        return None
    return Evaluated(*(parts[f"{name}/{part}"] for part in PARTS))
