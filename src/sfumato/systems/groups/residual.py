"""What an attack still finds after protection, beside what it found before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.data.microfile import Microfile
from sfumato.measures.disclosure import WAYS, Findings
from sfumato.measures.outliers import ranks
from sfumato.systems.groups.attack import Attack


@dataclass(frozen=True)
class Residual:
    """One attack before and after. `known` attacks were bounded by the plan; the others only test it."""

    attacker: str
    auxiliary: str
    group: str
    seed: int
    known: bool
    before: Findings
    after: Findings
    ranks_before: tuple[int, ...]
    ranks_after: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "attacker": self.attacker,
            "auxiliary": self.auxiliary,
            "group": self.group,
            "seed": self.seed,
            "known": self.known,
            "found_before": {way: len(self.before.found[way]) for way in WAYS},
            "found_after": {way: len(self.after.found[way]) for way in WAYS},
            "ranks_before": list(self.ranks_before),
            "ranks_after": list(self.ranks_after),
            "protected": not self.after.anyhow,
        }


def residual_of(attack: Attack, moved: Microfile, *, known: bool) -> Residual:
    """Attack again. Grades do not depend on where a record is, so only the sums per area are new."""
    before, after = attack.findings(), attack.findings(moved)
    told = [tuple(ranks(found.signal)[area] for area in attack.sensitive.areas) for found in (before, after)]
    return Residual(
        attack.model.attacker, attack.auxiliary, attack.group, attack.seed, known, before, after, told[0], told[1]
    )
