"""What an attack still finds after protection, beside what it found before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sfumato.systems.groups.attack.attack import Attack
from sfumato.systems.groups.attack.disclosure import WAYS, Findings
from sfumato.systems.groups.attack.outliers import ranks
from sfumato.systems.groups.files.microfile import Microfile

Role = Literal["known", "fresh", "sealed"]
MARGIN = 0.2


@dataclass(frozen=True)
class Residual:
    """One attack before and after. Plans are fitted to `known` attacks and chosen by these and `fresh` ones; `sealed`
    ones are made when the plans are ready, and the verdict is theirs.

    `near` counts sensitive areas that are found, or would be with a fifth or one record more or less in them.
    """

    attacker: str
    auxiliary: str
    group: str
    seed: int
    role: Role
    before: Findings
    after: Findings
    ranks_before: tuple[int, ...]
    ranks_after: tuple[int, ...]
    near: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "attacker": self.attacker,
            "auxiliary": self.auxiliary,
            "group": self.group,
            "seed": self.seed,
            "role": self.role,
            "found_before": {way: len(self.before.by_way[way]) for way in WAYS},
            "found_after": {way: len(self.after.by_way[way]) for way in WAYS},
            "areas_before": len(self.before.anyhow),
            "areas_after": len(self.after.anyhow),
            "ranks_before": list(self.ranks_before),
            "ranks_after": list(self.ranks_after),
            "low_before": len(self.before.low),
            "low_after": len(self.after.low),
            "protected": not self.after.anyhow,
        }


def residual_of(attack: Attack, moved: Microfile, role: Role) -> Residual:
    """Attack again. Grades do not depend on where a record is, so only the sums per area are new."""
    return _residual(attack, attack.findings(moved), role, attack.nearly(moved, MARGIN))


def residual_on(attack: Attack, written: Microfile, role: Role) -> Residual:
    """Attack a file that was written: its records are graded anew, in whatever order they are."""
    again = attack.on(written)
    return _residual(attack, again.findings(), role, again.nearly(written, MARGIN))


def _residual(attack: Attack, after: Findings, role: Role, near: int) -> Residual:
    before = attack.findings()
    ranked = [tuple(ranks(findings.signal)[area] for area in attack.sensitive.areas) for findings in (before, after)]
    about = (attack.model.attacker, attack.auxiliary, attack.group, attack.seed)
    return Residual(*about, role, before, after, ranked[0], ranked[1], near)
