"""What the readings of a finding cost and save: areas that are exchangeable, and areas that truly stand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sfumato.methods.groups.attack.attack import Attack, attack_with
from sfumato.methods.groups.attack.attackers import TableModel
from sfumato.methods.groups.attack.outliers import Findings, chance_of, ranks
from sfumato.methods.groups.files import read_auxiliary, read_target, settings_of
from sfumato.methods.groups.signals import LIFT
from sfumato.papers.groups import make_census
from sfumato.study import read


@dataclass(frozen=True)
class Rates:
    """Shares of sensitive areas that are found by outlier tests: by the bare tests, and as findings are read."""

    high_bare: float
    high: float
    low_bare: float
    low: float


def census_attacks(folder: Path, records: int, members: int, areas: int, attackers: Sequence[str]) -> list[Attack]:
    """Attacks on the survey of a synthetic census: flagged records, and for learners of numbers all grades too."""
    study = read(make_census(folder, records, members, areas, seed=77).run)
    target, other = read_target(study), read_auxiliary(study, settings_of(study).auxiliary[0])
    attacks: list[Attack] = []
    for attacker in attackers:
        (made,) = attack_with(study, target, other, attacker, "military", [1])
        attacks.append(made)
        if isinstance(made.model, TableModel):
            attacks.append(replace(made, model=made.model.expected()))
    return attacks


def bare(shown: Findings, sensitive: Sequence[int], significance: float) -> tuple[set[int], set[int]]:
    """The sensitive areas that outlier tests call high, and those that they or the ranks call low, noise or not."""
    high = {area for one in shown.outliers.values() for area in one.high} & set(sensitive)
    low = {area for one in shown.outliers.values() for area in one.low} & set(sensitive)
    last = {area for area, rank in enumerate(ranks(-shown.signal)) if rank <= len(sensitive)}
    mine = last & set(sensitive)
    if mine and chance_of(len(mine), len(shown.signal), len(sensitive), len(last)) <= significance:
        low |= mine
    return high, low


def rates(attack: Attack, sensitive: Sequence[int], factor: float, draws: int, seed: int = 1) -> Rates:
    """Spread everybody over the areas at random: members, and whom the attacker suspects, with so many times the chance
    for sensitive areas. In a state with a dozen members the suspects decide what a signal shows."""
    assert attack.truth is not None
    rng, target = np.random.default_rng(seed), attack.target
    truth = replace(attack.truth, sensitive=replace(attack.truth.sensitive, areas=tuple(sensitive), excluded=()))
    asked = replace(attack, truth=truth)
    sizes = target.sizes().astype(np.float64)
    chance = sizes.copy()
    chance[list(sensitive)] *= factor
    suspected = attack.grades >= max(attack.model.threshold, LIFT * float(attack.grades.mean()))
    members = target.members[attack.group] | suspected
    counts = np.zeros(4)
    for _ in range(draws):
        area_of = rng.permutation(target.area_of)
        area_of[members] = rng.choice(len(sizes), int(members.sum()), p=chance / chance.sum())
        shown = asked.findings(target.with_areas(area_of.astype(np.int32)))
        high, low = bare(shown, sensitive, asked.significance)
        kept = {*shown.by_way["hinges"], *shown.by_way["mad"]}
        counts += (len(high), len(kept), len(low), len(shown.low))
    return Rates(*(counts / (draws * len(sensitive))).tolist())
