"""The search for a protection: the cheapest swaps at several levels, attacked at each, as cost against disclosure.

Attacks have roles. Plans are fitted to the known attacks, and chosen by these and by fresh ones. Held-out attacks
judge: they are learned only when the plans are ready, so that nothing of them can affect a plan, and the verdict is
theirs. A plan can be improved by steps that lower what known attackers, and others like them, find or nearly find.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from sfumato.algorithms.dominance import first_non_dominated
from sfumato.base.arrays import Floats
from sfumato.base.compiled import compiling
from sfumato.base.progress import Progress
from sfumato.errors import InputError, StoppedError, UnreachableError
from sfumato.methods.groups.attack.attack import Attack, Residual, Role, attack_with, residual_of
from sfumato.methods.groups.attack.exposure import criteria_of
from sfumato.methods.groups.files import Truth, read_auxiliary, settings_of, truth_of
from sfumato.methods.groups.improve import Weights, edges_of, improve
from sfumato.methods.groups.microfile import Microfile
from sfumato.methods.groups.planner import Planner
from sfumato.methods.groups.signals import imagined
from sfumato.methods.groups.swapped import read_released
from sfumato.methods.groups.transport import nearest_pairs
from sfumato.methods.run import Run
from sfumato.plans.swaps import SwapPlan
from sfumato.study import Study
from sfumato.study.groups import AttackerName

NEAREST = 6  # partners of each giver in each area, besides those of the plan


def improved(planner: Planner, plan: SwapPlan, known: Sequence[Attack]) -> SwapPlan | None:
    """Return a plan with fewer findings or near findings of known attackers and others like them, or less cost.

    It is None if no step pays. No lower bound on the cost of such a plan is known.
    """
    target, units, groups = planner.target, planner.units, [truth.group for truth in planner.truths]
    signals = imagined(target, planner.truths, known)
    if not signals:
        return None
    weights = np.stack([units.sums(signal.weights) for signal in signals], axis=1)
    per_record = np.array([signal.per_record for signal in signals])
    most = float((weights.sum(axis=0) / per_record).max())
    sensitive = [planner.sensitive[group] for group in groups]
    giver_area, taker_area = units.area_of[planner.givers], units.area_of[planner.takers]
    one, two = planner.pairs_of(plan)
    givers, takers = nearest_pairs(planner.priced, taker_area, NEAREST)
    edges = edges_of(
        planner.priced, giver_area, taker_area, np.concatenate([givers, one]), np.concatenate([takers, two])
    )
    # Edges are in the order of givers, then takers.
    takers_of_all = len(planner.takers)
    keys = np.repeat(np.arange(len(planner.givers)), np.diff(edges.start)) * takers_of_all + edges.taker
    used = np.full(len(planner.givers), -1, np.int64)
    used[one] = np.searchsorted(keys, one * takers_of_all + two)
    moved = units.area_of.copy()
    moved[planner.givers[one]], moved[planner.takers[two]] = taker_area[two], giver_area[one]
    held: Floats = np.stack([np.bincount(moved, column, len(target.areas)) for column in weights.T]).astype(np.float64)
    group_of = np.array([groups.index(signal.group) for signal in signals])
    shown = Weights(weights[planner.givers], weights[planner.takers], group_of, per_record)
    criteria = criteria_of(sensitive, len(target.areas), known[0].significance, most)
    made = improve(edges, shown, held, used, criteria, planner.noise, planner.stop)
    chosen = np.flatnonzero(made.used >= 0)
    if not len(chosen) or np.array_equal(made.used, used):
        return None
    return planner.between(planner.givers[chosen], planner.takers[edges.taker[made.used[chosen]]])


FRESH, SEALED = 1000, 9000  # distance of fresh and held-out seeds from the known ones


class Roles:
    """The attacks on a file by role. `silent` are attackers without an attack: no rule meets their limits."""

    def __init__(self, study: Study, target: Microfile, truths: Sequence[Truth], run: Run | None = None) -> None:
        self.study, self.target, self.truths, self.run = study, target, tuple(truths), run
        self.settings = settings_of(study)
        self.silent: dict[str, UnreachableError] = {}
        self._read: dict[int, Microfile] = {}
        if not self.settings.auxiliary:
            raise InputError("no auxiliary file is declared", expected="a file that shows who is in the group")

    def planning(self) -> tuple[list[Attack], list[Attack]]:
        """Return the attacks that plans are fitted to, and those that choose among plans."""
        protect, first = self.settings.protect, self.settings.attack.seed
        open_files = [i for i, one in enumerate(self.settings.auxiliary) if not one.held_out]
        if not open_files:
            raise InputError(
                "every auxiliary file is held out", expected="at least one that the swaps can be fitted to"
            )
        seeds = range(first, first + protect.known_seeds)
        known = self._attacks(open_files, protect.attackers, seeds, self._stop_requested)
        if not known:
            raise next(iter(self.silent.values()))
        seeds = range(first + FRESH, first + FRESH + protect.fresh_seeds)
        return known, self._attacks(open_files, protect.attackers, seeds, self._stop_requested)

    def sealed(self) -> list[Attack]:
        """Return the held-out attacks that judge: other seeds, other kinds of models, other auxiliary files.

        They learn to the end even after a stop request: no plan is offered without a verdict.
        """
        protect, first = self.settings.protect, self.settings.attack.seed + SEALED
        attackers = tuple(dict.fromkeys((*protect.attackers, *protect.sealed_attackers)))
        files, seeds = range(len(self.settings.auxiliary)), range(first, first + protect.sealed_seeds)
        sealed = self._attacks(files, attackers, seeds, self._plans_ready)
        if not sealed:
            raise next(iter(self.silent.values()))
        return sealed

    def _attacks(
        self, files: Sequence[int], attackers: Sequence[AttackerName], seeds: Sequence[int], progress: Progress
    ) -> list[Attack]:
        attacks: list[Attack] = []
        for number, truth, attacker in product(files, self.truths, attackers):
            one = self.settings.auxiliary[number]
            if number not in self._read:
                self._read[number] = read_auxiliary(self.study, one, self.target)
            for seed in seeds:
                try:
                    attacks += attack_with(
                        self.study, self.target, self._read[number], attacker, truth.group, [seed], progress
                    )
                except UnreachableError as error:
                    self.silent[f"{attacker} from {one.title}, group {truth.group}"] = error
                except StoppedError:
                    raise StoppedError("interrupted while the attackers were learning; nothing was saved") from None
        return attacks

    def _stop_requested(self, done: int, total: int) -> bool:
        """Return whether to stop. The answer is final once a model is ready, before the next one learns."""
        return done < total and self.run is not None and self.run.tell(0, self.settings.protect.levels)

    def _plans_ready(self, done: int, total: int) -> bool:  # noqa: ARG002
        """Report that the plans are ready; stop requests no longer matter."""
        if self.run is not None:
            self.run.tell(self.settings.protect.levels, self.settings.protect.levels)
        return False


NOTHING = SwapPlan(np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0, 0.0, exact=True)
LEAST_COST, IMPROVED, TARGETED = "least cost", "least cost, improved", "targeted record swapping"


@dataclass(frozen=True)
class Level:
    """One point of the front: how far the sensitive areas were lowered, the plan, and what attacks still find.

    `residual` are the attacks by which plans are made and chosen, `sealed` the held-out ones.
    """

    level: float
    plan: SwapPlan
    slack: float
    residual: tuple[Residual, ...]
    sealed: tuple[Residual, ...] = ()
    method: str = LEAST_COST

    @property
    def findings(self) -> int:
        """The sensitive areas still found, from above or from below, summed over known and fresh attacks."""
        return sum(r.areas_after for r in self.residual)

    @property
    def sealed_findings(self) -> int:
        """The same over the held-out attacks."""
        return sum(r.areas_after for r in self.sealed)

    @property
    def near(self) -> int:
        """The sensitive areas that are found or nearly found, summed over known and fresh attacks."""
        return sum(r.near for r in self.residual)

    def worth(self) -> tuple[int, int, float]:
        """Return a key by which levels are ordered: findings, then near findings, then the cost; less is better."""
        return self.findings, self.near, self.plan.cost


@dataclass(frozen=True)
class Protection:
    """The file, its true signals, the levels on the front, the chosen one, and what else was tried.

    `silent` attackers found no rule that passes, so they make no attack.
    """

    study: Study
    target: Microfile
    truths: tuple[Truth, ...]
    known: tuple[Attack, ...]
    fresh: tuple[Attack, ...]
    sealed: tuple[Attack, ...]
    levels: tuple[Level, ...]
    chosen: int
    columns: int
    silent: tuple[str, ...] = ()
    baselines: tuple[Level, ...] = ()

    @property
    def choice(self) -> Level:
        return self.levels[self.chosen]

    def moved(self, level: Level | None = None) -> Microfile:
        """Return the file after the swaps of a level."""
        plan = (level or self.choice).plan
        return self.target.with_areas(plan.moved(self.target.area_of, self.target.rows))

    @property
    def attacks(self) -> tuple[tuple[Attack, Role], ...]:
        """Every attack with its role, in the order of the reports."""
        known: list[tuple[Attack, Role]] = [(one, "known") for one in self.known]
        return (*known, *((one, "fresh") for one in self.fresh), *((one, "sealed") for one in self.sealed))


def truths_of(study: Study, target: Microfile) -> tuple[Truth, ...]:
    """Return the truth of every group with areas to protect."""
    truths: list[Truth] = []
    for group in settings_of(study).mapping().vital:
        truth = truth_of(study, target, group)
        if truth is None:
            raise InputError(
                f"{target.name} lacks the vital columns, so it is not known what to protect",
                expected="the file as it was before they were removed",
                remedy="protect first; the release leaves them out",
            )
        truths.append(truth)
    some = tuple(truth for truth in truths if truth.sensitive.areas)
    if not some:
        if not any(truth.quantity.any() for truth in truths):
            flat = f"no record of {target.name} in range is in a group"
        elif all(np.ptp(truth.quantity) == 0 for truth in truths):
            flat = "every area has the same number of members"
        else:
            flat = "no area stands out"
        raise InputError(
            f"no area needs protection: {flat}",
            expected="an outlier in the true signal",
            remedy="expert = [...] under [groups] names areas to protect",
        )
    return some


def protect(study: Study, run: Run, *, test_seed: int | None = None) -> Protection:
    """Find the cheapest swaps that hide the sensitive areas from known attacks, and judge them by held-out ones.

    Fresh attacks choose among the plans. Noise of the operating system decides between equally good partners, unless a
    test gives a seed.
    """
    settings = settings_of(study)
    test_seed = settings.protect.test_seed if test_seed is None else test_seed
    target = read_released(study)
    truths = truths_of(study, target)
    roles = Roles(study, target, truths, run)
    known, fresh = roles.planning()
    # An attacker who has the tool and the run file must not be able to repeat the choice of partners.
    noise = np.random.default_rng(int.from_bytes(os.urandom(16)) if test_seed is None else test_seed)
    planner = Planner(study, target, truths, known, noise)
    levels, baselines = _plans(planner, known, fresh, run)
    chosen = min(range(len(levels)), key=lambda i: levels[i].worth())
    sealed = roles.sealed()  # the plans are ready
    return Protection(
        study,
        target,
        truths,
        tuple(known),
        tuple(fresh),
        tuple(sealed),
        tuple(judged(level, target, sealed) for level in levels),
        chosen,
        len(settings.protect.columns or target.attributes),
        tuple(roles.silent),
        tuple(baselines),
    )


def _plans(
    planner: Planner, known: Sequence[Attack], fresh: Sequence[Attack], run: Run
) -> tuple[list[Level], list[Level]]:
    """Return the plans of the front, and the baselines that were tried as well."""
    target, settings = planner.target, planner.settings
    steps = [1.0] if planner.targets else [step / settings.levels for step in range(1, settings.levels + 1)]
    levels: list[Level] = []
    # other plans do not count as steps of the progress
    planner.stop = lambda: run.tell(min(len(levels), len(steps)), len(steps))
    for done, step in enumerate(steps, 1):
        try:
            made = planner.plan(step)
        except StoppedError:
            if not levels:
                raise
            break
        if made is not None:
            levels.append(attacked_again(target, step, made, known, fresh))
        if run.tell(done, len(steps)) and levels:
            break
    # No step was feasible, so the largest feasible one is found by bisection.
    if not levels:
        level, nearest_plan = as_far_as_possible(planner)
        if planner.targets or nearest_plan is None:
            raise unreachable(planner, nearest_plan)
        levels.append(attacked_again(target, level, nearest_plan, known, fresh))
    if planner.targets:  # a declared target is kept, whatever attackers find
        return levels, []
    last, others = levels[-1], list[Level]()
    with suppress(StoppedError):
        for plan in planner.others(last.level, last.slack):
            others.append(attacked_again(target, last.level, plan, known, fresh))
    levels += others
    levels += _improved(planner, min(levels, key=Level.worth), known, fresh)
    baselines = [
        attacked_again(target, 0.0, (planner.targeted(rate), 0.0), known, fresh, f"{TARGETED}, {rate:.0%}")
        for rate in settings.swap_rates
    ]
    nothing = attacked_again(target, 0.0, (NOTHING, 0.0), known, fresh)
    return worth_offering([*levels, *baselines], nothing), baselines


def worth_offering(levels: Sequence[Level], nothing: Level) -> list[Level]:
    """Return the levels that improve on no swaps and that no other level dominates.

    No swaps cost nothing, so a plan that leaves as many findings is of no use. If no level remains, no swaps are made.
    """
    better = [level for level in levels if level.findings < nothing.findings]
    kept = first_non_dominated(np.array([level.worth() for level in better], dtype=np.float64).reshape(-1, 3))
    return [level for level, keep in zip(better, kept, strict=True) if keep] or [nothing]


def attacked_again(
    target: Microfile,
    level: float,
    made: tuple[SwapPlan, float],
    known: Sequence[Attack],
    fresh: Sequence[Attack],
    method: str = LEAST_COST,
) -> Level:
    """Return a plan as a level, after new attacks on its file by known and fresh attackers."""
    plan, slack = made
    moved = target.with_areas(plan.moved(target.area_of, target.rows))
    residual = [residual_of(one, moved, "known") for one in known]
    residual += [residual_of(one, moved, "fresh") for one in fresh]
    return Level(level, plan, slack, tuple(residual), method=method)


def judged(level: Level, target: Microfile, sealed: Sequence[Attack]) -> Level:
    """Return a level with the findings of the held-out attacks after it."""
    moved = target.with_areas(level.plan.moved(target.area_of, target.rows))
    return replace(level, sealed=tuple(residual_of(one, moved, "sealed") for one in sealed))


def _improved(planner: Planner, best: Level, known: Sequence[Attack], fresh: Sequence[Attack]) -> list[Level]:
    """Return the best level so far with an improved plan, unless asked to stop. The paper's method is not improved."""
    plan = None
    if planner.settings.method != "memetic" and compiling():
        with suppress(StoppedError):
            plan = improved(planner, best.plan, known)
    if plan is None:
        return []
    return [attacked_again(planner.target, best.level, (plan, best.slack), known, fresh, IMPROVED)]


def as_far_as_possible(planner: Planner) -> tuple[float, tuple[SwapPlan, float] | None]:
    """Return the lowest level with a feasible plan, by bisection; None if there is none."""
    low, high, best = 0.0, 1.0, None
    for _ in range(6):
        middle = (low + high) / 2
        made = planner.plan(middle)
        low, high, best = (middle, high, made) if made else (low, middle, best)
    return low, best


def unreachable(planner: Planner, best: tuple[SwapPlan, float] | None) -> UnreachableError:
    """Return the error that the targets cannot be met, with how far they can be."""
    remedy = "those targets, or suspicious_partners = true under [groups.protect]"
    if best is None:
        return UnreachableError(
            "no swap brings any area closer to its target", expected="targets that can be reached", remedy=remedy
        )
    target = planner.target
    after = best[0].moved(target.area_of, target.rows)
    counts = [signal.per_area(after, len(target.areas)) for signal in planner.signals]
    least = {area: max(values[area] for values in counts) for area in planner.targets}
    return UnreachableError(
        "the targets cannot be reached with the available swap partners",
        expected="at best " + ", ".join(f"{target.areas[area]}: {value:.0f}" for area, value in least.items()),
        remedy=remedy,
    )
