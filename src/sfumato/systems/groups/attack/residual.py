"""What an attack still finds after protection, beside what it found before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.systems.groups.attack.attack import Attack
from sfumato.systems.groups.attack.disclosure import WAYS, Findings
from sfumato.systems.groups.attack.outliers import ranks
from sfumato.systems.groups.files.microfile import Microfile


@dataclass(frozen=True)
class Residual:
    """One attack before and after. `known` attacks were used for the plan; the others only test it.

    `low_before` and `low_after` count sensitive areas that stand out from below.
    """

    attacker: str
    auxiliary: str
    group: str
    seed: int
    known: bool
    before: Findings
    after: Findings
    ranks_before: tuple[int, ...]
    ranks_after: tuple[int, ...]
    low_before: int
    low_after: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "attacker": self.attacker,
            "auxiliary": self.auxiliary,
            "group": self.group,
            "seed": self.seed,
            "known": self.known,
            "found_before": {way: len(self.before.found[way]) for way in WAYS},
            "found_after": {way: len(self.after.found[way]) for way in WAYS},
            "areas_before": len(self.before.anyhow),
            "areas_after": len(self.after.anyhow),
            "ranks_before": list(self.ranks_before),
            "ranks_after": list(self.ranks_after),
            "low_before": self.low_before,
            "low_after": self.low_after,
            "protected": not self.after.anyhow,
        }


def residual_of(attack: Attack, moved: Microfile, *, known: bool) -> Residual:
    """Attack again. Grades do not depend on where a record is, so only the sums per area are new."""
    return _residual(attack, attack.findings(moved), known)


def residual_on(attack: Attack, written: Microfile, *, known: bool) -> Residual:
    """Attack a file that was written: its records are graded anew, in whatever order they are."""
    return _residual(attack, attack.on(written).findings(), known)


def _residual(attack: Attack, after: Findings, known: bool) -> Residual:
    before = attack.findings()
    ranked = [tuple(ranks(findings.signal)[area] for area in attack.sensitive.areas) for findings in (before, after)]
    low = [standing_low(findings, attack.sensitive.areas) for findings in (before, after)]
    about = (attack.model.attacker, attack.auxiliary, attack.group, attack.seed)
    return Residual(*about, known, before, after, ranked[0], ranked[1], low[0], low[1])


def standing_low(findings: Findings, sensitive: tuple[int, ...]) -> int:
    """How many sensitive areas stand out by having little: low outliers by either scale, or among the last by rank."""
    low = {area for outliers in findings.outliers.values() for area in outliers.low}
    last = {area for area, rank in enumerate(ranks(-findings.signal)) if rank <= len(sensitive)}
    return len((low | last) & set(sensitive))
