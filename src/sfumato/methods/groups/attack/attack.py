"""The attack on a file: learn the group on another file, grade the records, sum the grades per area, find outliers.

The residual risk compares what an attack finds before and after protection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.base.progress import Progress
from sfumato.errors import DataError, StoppedError, StudyError, nearest
from sfumato.methods.groups.attack.attackers import ALL, Model, RuleModel, TableModel, average_precision, learn
from sfumato.methods.groups.attack.outliers import (
    WAYS,
    Findings,
    Outliers,
    Sensitive,
    by_scales,
    compared,
    findings,
    ranks,
    ratios,
    spearman,
)
from sfumato.methods.groups.files import (
    Truth,
    auxiliary_settings,
    read_auxiliary,
    read_target,
    read_whole,
    settings_of,
    truth_of,
    variables_for,
)
from sfumato.methods.groups.microfile import Microfile
from sfumato.study import Study


@dataclass(frozen=True)
class Attack:
    """One attack with one seed: the model, its grades, the signals they form, and the areas they reveal."""

    model: Model
    auxiliary: str
    group: str
    seed: int
    target: Microfile
    grades: Floats
    truth: Truth | None
    significance: float

    @property
    def flagged(self) -> Flags:
        """The records that count as members."""
        return self.grades >= self.model.threshold

    @property
    def marked(self) -> Floats:
        """The grades of the flagged records, 0 for others."""
        return np.where(self.flagged, self.grades, 0.0)

    def fuzzy(self, target: Microfile | None = None) -> Floats:
        """Return the sum of the grades of flagged records per area (equation 9), independent of the record order."""
        where, grades = (target or self.target).area_of[self.flagged], self.grades[self.flagged]
        # Rounding depends on the order of a sum, and verification reads the records in another order.
        order = np.argsort(grades, kind="stable")
        return np.bincount(where[order], grades[order], minlength=len(self.target.areas)).astype(np.float64)

    def crisp(self) -> Counts64:
        """Return the number of flagged records per area (equation 17)."""
        where = self.target.area_of[self.flagged]
        return np.bincount(where, minlength=len(self.target.areas)).astype(np.int64)

    @property
    def sensitive(self) -> Sensitive:
        return self.truth.sensitive if self.truth else Sensitive((), (), {})

    def findings(self, target: Microfile | None = None) -> Findings:
        """Return what the auxiliary signal reveals, on the file itself or with its records in other areas."""
        return self._shown(self.fuzzy(target))

    def _shown(self, signal: Floats) -> Findings:
        return findings(signal, self.sensitive, self.significance, per_record=self.per_record)

    @cached_property
    def per_record(self) -> float:
        """The contribution of one flagged record to the signal: the mean grade, weighted by the grades."""
        grades = np.sort(self.grades[self.flagged])  # sorted, so that the sums do not depend on the record order
        return float((grades * grades).sum() / grades.sum()) if len(grades) and grades[-1] > 0 else 1.0

    def nearly(self, target: Microfile, margin: float) -> int:
        """Return how many sensitive areas are found, or would be with a margin or one record more or less."""
        signal, areas = self.fuzzy(target), list(self.sensitive.areas)
        shown = set(self._shown(signal).anyhow)
        step = np.maximum(margin * signal[areas], self.per_record)
        for side in (1, -1):
            other = signal.copy()
            other[areas] = np.maximum(other[areas] + side * step, 0.0)
            changed = self._shown(other)
            shown |= set(changed.high if side > 0 else changed.low)
        return len(shown)

    def on(self, file: Microfile) -> Attack:
        """Return the same attacker on another file with the same areas; the sensitive ones are known from this one."""
        if file.areas != self.target.areas:
            raise DataError(f"{file.name} has other areas", expected="the areas of the file that was protected")
        return replace(self, target=file, grades=grades_of(self.model, file))

    def as_dict(self) -> dict[str, object]:
        """Return the attack as `sfumato groups attack --json` prints it."""
        target, truth, fuzzy, sizes = self.target, self.truth, self.fuzzy(), self.target.sizes()
        unknown = [None] * len(sizes)
        share = np.divide(fuzzy, sizes, out=np.zeros(len(fuzzy)), where=sizes > 0)
        columns: dict[str, Sequence[object]] = {
            "area": target.areas,
            "q": truth.quantity.astype(int).tolist() if truth else unknown,
            "auxiliary": fuzzy.tolist(),
            "crisp": self.crisp().tolist(),
            "rank": ranks(fuzzy),
            "ratio": ratios(fuzzy),
            "records": sizes.tolist(),
            "concentration": share.tolist(),
            "q_all_rows": target.everyone[self.group].tolist() if truth else unknown,
        }
        findings = self.findings()
        outliers: dict[str, object] = {
            "auxiliary": self._named(findings.outliers),
            "concentration": self._named(by_scales(share, self.significance)),
        }
        if truth:
            outliers["true"] = self._named(truth.sensitive.outliers)
            outliers["sensitive"] = [target.areas[i] for i in truth.sensitive.areas]
            outliers["excluded"] = [target.areas[i] for i in truth.sensitive.excluded]
        return {
            "attacker": self.model.attacker,
            "auxiliary": self.auxiliary,
            "group": self.group,
            "seed": self.seed,
            "model": dict(self.model.about),
            "rules": self.model.listed() if isinstance(self.model, RuleModel) else [],
            "areas": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            "outliers": outliers,
            "adequacy": compared(truth.quantity, findings) | {"average_precision": self.precision} if truth else None,
        }

    def _named(self, outliers: Mapping[str, Outliers]) -> dict[str, dict[str, object]]:
        names = self.target.areas
        return {
            scale: {"high": [names[i] for i in one.high], "low": [names[i] for i in one.low], "scale": one.scale}
            for scale, one in outliers.items()
        }

    @property
    def precision(self) -> float | None:
        """The average precision of the grades over the records, if the truth is known."""
        if self.truth is None:
            return None
        return average_precision(self.target.members[self.group], self.grades)

    def line(self) -> dict[str, Any]:
        """Return the attack in one line: how many of the sensitive areas it reveals."""
        findings = self.findings()
        entries: dict[str, Any] = {"attacker": self.model.attacker, "auxiliary": self.auxiliary, "seed": self.seed}
        if self.truth:
            ranked = ranks(findings.signal)
            entries |= {
                "undisclosed": {way: findings.adequacy[way].undisclosed for way in findings.adequacy},
                "false": {way: findings.adequacy[way].false for way in findings.adequacy},
                "spearman": spearman(self.truth.quantity, findings.signal),
                "ranks": [ranked[i] for i in self.sensitive.areas],
                "average_precision": self.precision,
            }
        return entries


def grades_of(model: Model, file: Microfile) -> Floats:
    """Return a model's grade of every record. A model of records in range gives all others grade 0."""
    if model.everything:
        return model.memberships(file)
    grades = np.zeros(file.records)
    grades[file.inside] = model.memberships(file.in_range())
    return grades


def group_of(study: Study, wanted: str | None) -> str:
    """Return a group by name; the first unless one is named."""
    groups = list(settings_of(study).mapping().vital)
    if wanted is not None and wanted not in groups:
        raise StudyError(f'there is no group "{wanted}"', expected="a group", remedy=nearest(wanted, groups))
    return wanted or groups[0]


def attack(
    study: Study,
    attacker: str | None = None,
    auxiliary: str | None = None,
    group: str | None = None,
    seeds: int | None = None,
    progress: Progress | None = None,
    columns: Sequence[str] = (),
) -> list[Attack]:
    """Attack a study's file from one auxiliary file, once for each of several seeds.

    What is not stated is that of the run file.

    Args:
        study: the run file with a `[groups]` section.
        attacker: the name of an attacker.
        auxiliary: the name of the auxiliary file that it learns from.
        group: the name of the group.
        seeds: the number of seeds.
        progress: a function that receives the progress.
        columns: the columns from which an attacker on all released columns learns.

    Returns:
        An attack for each seed.
    """
    settings = settings_of(study).attack
    attacker = attacker or settings.attacker
    file = auxiliary_settings(study, auxiliary)
    if attacker.endswith(ALL):
        target = read_whole(study, columns)
        other = read_auxiliary(study, file, target)
    else:
        target, other = read_target(study), read_auxiliary(study, file)
    count = settings.seeds if seeds is None else seeds
    chosen = [settings.seed + i for i in range(count)]
    return attack_with(study, target, other, attacker, group_of(study, group), chosen, progress)


def attack_with(
    study: Study,
    target: Microfile,
    auxiliary: Microfile,
    attacker: str,
    group: str,
    seeds: Sequence[int],
    progress: Progress | None = None,
) -> list[Attack]:
    """Attack a file in memory. If asked to stop, return the finished attacks, or raise StoppedError if there are none.

    An attacker on all released columns makes two attacks for each seed: with flagged records, and with expected
    numbers.
    """
    settings = settings_of(study).attack
    if not attacker.endswith(ALL):
        auxiliary = auxiliary.in_range()
    variables = () if attacker.endswith(ALL) else variables_for(study, auxiliary)
    truth = truth_of(study, target, group)
    attacks: list[Attack] = []
    for done, seed in enumerate(seeds):
        # Loops that learn do not know the seeds.
        stop = None if progress is None else partial(_stopped, progress, done, len(seeds))
        try:
            model = learn(attacker, auxiliary, group, variables, settings, seed, stop)
        except StoppedError:
            if not attacks:
                raise
            break
        grades = grades_of(model, target)
        made = Attack(model, auxiliary.name, group, seed, target, grades, truth, settings.significance)
        attacks.append(made)
        if isinstance(model, TableModel) and model.everything:
            attacks.append(replace(made, model=model.expected()))
        if progress and progress(done + 1, len(seeds)):
            break
    return attacks


def _stopped(progress: Progress, done: int, total: int) -> bool:
    return bool(progress(done, total))


Role = Literal["known", "fresh", "sealed"]
MARGIN = 0.2


@dataclass(frozen=True)
class Residual:
    """One attack before and after protection. Its role decides whether plans are made by it.

    Plans are fitted to `known` attacks, and chosen by these and `fresh` ones. The held-out attacks (role `sealed`) are
    made when the plans are ready, and the verdict is theirs. `near` counts the sensitive areas that are found, or would
    be with a fifth or one record more or less in them.
    """

    attacker: str
    auxiliary: str
    group: str
    seed: int
    role: Role
    found_before: Mapping[str, int]
    found_after: Mapping[str, int]
    areas_before: int
    areas_after: int
    ranks_before: list[int]
    ranks_after: list[int]
    low_before: int
    low_after: int
    near: int

    def as_dict(self) -> dict[str, object]:
        stated = {name: value for name, value in vars(self).items() if name != "near"}
        return stated | {"protected": not self.areas_after}


def residual_of(attack: Attack, moved: Microfile, role: Role) -> Residual:
    """Repeat an attack after swaps. Grades do not depend on the area of a record, so only the sums are recomputed."""
    return _residual(attack, attack.findings(moved), role, attack.nearly(moved, MARGIN))


def residual_on(attack: Attack, written: Microfile, role: Role) -> Residual:
    """Attack a written file. Its records are graded anew, in any order."""
    again = attack.on(written)
    return _residual(attack, again.findings(), role, again.nearly(written, MARGIN))


def _residual(attack: Attack, after: Findings, role: Role, near: int) -> Residual:
    both = {"before": attack.findings(), "after": after}
    figures: dict[str, Any] = {}
    for when, found in both.items():
        ranked = ranks(found.signal)
        figures[f"found_{when}"] = {way: len(found.by_way[way]) for way in WAYS}
        figures[f"areas_{when}"] = len(found.anyhow)
        figures[f"ranks_{when}"] = [ranked[area] for area in attack.sensitive.areas]
        figures[f"low_{when}"] = len(found.low)
    return Residual(attack.model.attacker, attack.auxiliary, attack.group, attack.seed, role, near=near, **figures)
