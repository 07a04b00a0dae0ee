"""Protect a file: the cheapest swaps at several levels, each attacked again: cost against disclosure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.algorithms.dominance import first_non_dominated
from sfumato.errors import InputError, StoppedError, UnreachableError, shortened
from sfumato.plans.swaps import SwapPlan
from sfumato.runtime.arrays import Counts64, Flags, Floats
from sfumato.study import Study
from sfumato.systems.groups.attack.attack import Attack, attack_with
from sfumato.systems.groups.attack.residual import Residual, residual_of
from sfumato.systems.groups.attack.rule_walk import Stop
from sfumato.systems.groups.files.microfile import Microfile
from sfumato.systems.groups.files.read import Truth, places, read_auxiliary, read_target, settings_of, truth_of
from sfumato.systems.groups.swapped import withheld_columns
from sfumato.systems.groups.swapping.bounds import SLACKS, Signal, areas_of, counted, lowered, room_for
from sfumato.systems.groups.swapping.influence import Influence
from sfumato.systems.groups.swapping.swap_search import Memetic, Swapping
from sfumato.systems.groups.swapping.transport import Transport, least_cost
from sfumato.systems.run import Run

LOOSER = 3  # caps that are tried beyond the tightest
FRESH = 1000  # fresh seeds start so far from the known ones
NOTHING = SwapPlan(np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0, 0.0, exact=True)


@dataclass(frozen=True)
class Level:
    """One point of the front: how far down the sensitive areas were taken, the plan, and what is still found."""

    level: float
    plan: SwapPlan
    slack: float
    residual: tuple[Residual, ...]

    @property
    def found(self) -> int:
        """Sensitive areas still found, added up over all attacks."""
        return sum(len(r.after.anyhow) for r in self.residual)

    @property
    def low(self) -> int:
        """Sensitive areas that stand out from below, added up over all attacks."""
        return sum(r.low_after for r in self.residual)

    def worth(self) -> tuple[int, int, float]:
        """Less is better: what is found, then what stands out from below, then the cost."""
        return self.found, self.low, self.plan.cost


@dataclass(frozen=True)
class Protection:
    """The file, what was known of it, the levels that are worth offering, and the chosen one.

    `silent` attackers found no rule that passes, so there was nothing to attack with.
    """

    study: Study
    target: Microfile
    truths: tuple[Truth, ...]
    known: tuple[Attack, ...]
    fresh: tuple[Attack, ...]
    levels: tuple[Level, ...]
    chosen: int
    columns: int
    silent: tuple[str, ...] = ()

    @property
    def choice(self) -> Level:
        return self.levels[self.chosen]

    @property
    def holds(self) -> bool:
        """Whether no attack finds any sensitive area any more, by either outlier test or by rank."""
        return self.choice.found == 0

    def moved(self, level: Level | None = None) -> Microfile:
        """The file after the swaps of a level."""
        plan = (level or self.choice).plan
        return self.target.with_areas(plan.moved(self.target.area_of, self.target.rows))


class Planner:
    """Everything that does not change between levels: who is suspected, who may be a partner, what swaps cost."""

    def __init__(
        self,
        study: Study,
        target: Microfile,
        truths: Sequence[Truth],
        known: Sequence[Attack],
        noise: np.random.Generator,
        stop: Stop | None = None,
    ) -> None:
        settings = settings_of(study).protect
        self.study, self.target, self.truths, self.settings = study, target, tuple(truths), settings
        self.stop = stop
        self.signals = tuple(signals_of(target, truths, known, counted_only=bool(settings.targets)))
        self.sensitive = {truth.group: truth.sensitive.areas for truth in truths}
        guarded = areas_of(sorted({a for areas in self.sensitive.values() for a in areas}), len(target.areas))
        suspected = np.any([signal.weights > 0 for signal in self.signals], axis=0)
        partner = ~guarded[target.area_of]
        if not settings.suspicious_partners:
            partner &= ~suspected
        self.receivers: Flags = ~guarded
        self.givers = np.flatnonzero(suspected & guarded[target.area_of])
        self.takers = np.flatnonzero(partner)
        if not len(self.givers) or not len(self.takers):
            raise UnreachableError(
                "no record can be swapped: no suspected record in a sensitive area, or no unsuspected one elsewhere",
                expected="records on both sides",
                remedy="suspicious_partners = true under [groups.protect]",
            )
        self.influence = influence_of(study, target)
        self.cost = self.influence.between(self.givers, self.takers)
        # Which of equally good partners is taken must not be guessed: noise decides, too little to change a sum.
        self.noise = noise.random(self.cost.shape) * (1e-3 / max(len(self.givers), 1))
        self.targets = {
            position: settings.targets[name]
            for name, position in zip(settings.targets, places(target, list(settings.targets)), strict=True)
        }
        open_ = [target.areas[position] for position in self.targets if not guarded[position]]
        if open_:
            raise InputError(
                f"the targets include {shortened(open_)}, which are not among the areas to hide",
                expected="areas that must not be identified: " + shortened(np.array(target.areas)[guarded].tolist()),
                remedy="name them under expert in [groups] as well",
            )

    def plan(self, level: float) -> tuple[SwapPlan, float] | None:
        """The cheapest plan at a level with the tightest caps that allow one; also how loose they are."""
        for slack in SLACKS:
            swaps = self._memetic(level, slack) if self.settings.method == "memetic" else self._exact(level, slack)
            if swaps is not None:
                return swaps, slack
        return None

    def looser(self, level: float, slack: float) -> list[tuple[SwapPlan, float]]:
        """The cheapest plans at a level with looser caps than a slack: they leave some other areas as low as they were.

        Under tight caps all other areas fill up evenly, and the sensitive ones end below them, which shows them again.
        """
        if self.settings.method == "memetic" or self.targets:
            return []
        wider = [other for other in SLACKS if slack < other < np.inf][:LOOSER]
        plans = [(self._exact(level, other), other) for other in wider]
        return [(plan, other) for plan, other in plans if plan is not None]

    def _room(self, signal: Signal, level: float, slack: float) -> Floats:
        held = signal.per_area(self.target.area_of, len(self.target.areas))
        mine = self.sensitive[signal.group]
        limit = lowered(held, mine, level, self.targets)
        return room_for(held, mine, self.receivers, limit, slack)

    def _exact(self, level: float, slack: float) -> SwapPlan | None:
        room = np.stack([self._room(signal, level, slack) for signal in self.signals])
        weights = np.stack([signal.weights for signal in self.signals])
        problem = Transport(
            self.cost + self.noise,
            self.target.area_of[self.givers],
            self.target.area_of[self.takers],
            weights[:, self.givers],
            weights[:, self.takers],
            room,
        )
        pairs = least_cost(problem, stop=self.stop)
        if pairs is None:
            return None
        cost = float(self.cost[pairs.givers, pairs.takers].sum())
        bound = cost if pairs.exact else min(pairs.bound, cost)
        return self._swaps(pairs.givers, pairs.takers, cost, bound, exact=pairs.exact)

    def _memetic(self, level: float, slack: float) -> SwapPlan | None:
        """One signal only, as in the paper: the number of records that anyone suspects."""
        suspected = np.any([signal.weights > 0 for signal in self.signals], axis=0).astype(np.float64)
        union = Signal("suspected", self.truths[0].group, suspected)
        held = counted(union.per_area(self.target.area_of, len(self.target.areas)))
        guarded = sorted({a for areas in self.sensitive.values() for a in areas})
        limit = lowered(held.astype(np.float64), guarded, level, self.targets)
        needed = np.zeros(len(held), np.int64)
        needed[guarded] = np.ceil(held[guarded] - limit[guarded] - 1e-9).astype(np.int64)
        caps = np.zeros(len(held), np.int64)
        room = room_for(held.astype(np.float64), guarded, self.receivers, limit, slack)
        caps[self.receivers] = np.floor(room[self.receivers]).astype(np.int64)
        if caps.sum() < needed.sum():
            return None
        problem = Swapping(
            self.cost + self.noise,
            self.target.area_of[self.givers],
            self.target.area_of[self.takers],
            held,
            needed,
            caps,
            float(self.influence.weights.sum()),
        )
        search = Memetic(generations=self.settings.generations)
        givers, takers = search.search(problem, np.random.default_rng(settings_of(self.study).attack.seed), self.stop)
        return self._swaps(givers, takers, float(self.cost[givers, takers].sum()), None)

    def _swaps(
        self, givers: Counts64, takers: Counts64, cost: float, bound: float | None, *, exact: bool = False
    ) -> SwapPlan:
        rows = self.target.rows
        return SwapPlan(rows[self.givers[givers]], rows[self.takers[takers]], cost, bound, exact)


def influence_of(study: Study, target: Microfile) -> Influence:
    """The metric of a study: the number of cells that differ, or the influential metric with ordinal attributes."""
    settings = settings_of(study)
    attributes = settings.mapping().attributes
    columns = settings.protect.columns or target.attributes
    unknown = [name for name in columns if name not in attributes]
    if unknown:
        raise InputError(f"the metric names {shortened(unknown)}", expected="attributes of the mapping")
    ordinal = [n for n in columns if attributes[n].ordinal] if settings.protect.metric == "influential" else []
    return Influence(target, columns, ordinal, [attributes[name].weight for name in columns])


def signals_of(
    target: Microfile, truths: Sequence[Truth], known: Sequence[Attack], *, counted_only: bool
) -> list[Signal]:
    """What is bounded: the true members, and each known attack's sum of grades; its count where targets are counts."""
    signals = [Signal("truth", t.group, target.members[t.group].astype(np.float64)) for t in truths]
    for one in known:
        weights = one.flagged.astype(np.float64) if counted_only else np.where(one.flagged, one.grades, 0.0)
        signal = Signal(f"{one.model.attacker} from {one.auxiliary}, seed {one.seed}", one.group, weights)
        if not any(other.group == one.group and np.array_equal(other.weights, weights) for other in signals):
            signals.append(signal)
    return signals


def truths_of(study: Study, target: Microfile) -> tuple[Truth, ...]:
    """Every group with areas to protect."""
    groups = list(settings_of(study).mapping().vital)
    truths = [truth_of(study, target, group) for group in groups]
    if any(truth is None for truth in truths):
        raise InputError(
            f"{target.name} lacks the vital columns, so it is not known what to protect",
            expected="the file as it was before they were removed",
            remedy="protect first; the release leaves them out",
        )
    some = tuple(truth for truth in truths if truth is not None and truth.sensitive.areas)
    if not some:
        if not any(t is not None and t.quantity.any() for t in truths):
            flat = f"no record of {target.name} in range is in a group"
        elif all(t is not None and np.ptp(t.quantity) == 0 for t in truths):
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
    """Find the cheapest swaps that hide the sensitive areas from every known attack, and attack again with fresh ones.

    Which of equally good partners is taken comes from the operating system, unless a test asks for a seed.
    """
    settings = settings_of(study)
    test_seed = settings.protect.test_seed if test_seed is None else test_seed
    withheld_columns(study, settings, study.opened())  # nothing runs while a role is missing
    target = read_target(study)
    truths = truths_of(study, target)
    known, fresh, silent = attacks_on(study, target, truths, run)
    noise = np.random.default_rng(int.from_bytes(os.urandom(16)) if test_seed is None else test_seed)
    steps = 1 if settings.protect.targets else settings.protect.levels
    levels: list[Level] = []
    planner = Planner(study, target, truths, known, noise, lambda: run.tell(len(levels), steps))
    for step in range(1, steps + 1):
        try:
            made = planner.plan(step / steps)
        except StoppedError:
            if not levels:
                raise
            break
        if made is not None:
            levels.append(attacked_again(target, step / steps, made, known, fresh))
        if run.tell(step, steps) and levels:
            break
    if not levels:
        level, nearest_plan = as_far_as_possible(planner)
        if planner.targets or nearest_plan is None:
            raise unreachable(planner, nearest_plan)
        levels.append(attacked_again(target, level, nearest_plan, known, fresh))
    chosen = min(range(len(levels)), key=lambda i: levels[i].worth())
    levels[chosen] = _loosened(planner, levels[chosen], known, fresh)
    if not planner.targets:  # a target is to be met, whatever the attackers make of it
        levels = worth_offering(levels, attacked_again(target, 0.0, (NOTHING, 0.0), known, fresh))
    chosen = min(range(len(levels)), key=lambda i: levels[i].worth())
    columns = len(settings.protect.columns or target.attributes)
    return Protection(study, target, truths, tuple(known), tuple(fresh), tuple(levels), chosen, columns, tuple(silent))


def worth_offering(levels: Sequence[Level], nothing: Level) -> list[Level]:
    """The levels that are better than doing nothing, and that no other one beats in all of what it is judged by.

    Doing nothing costs nothing, so a plan after which as much is found is none. If none is left, nothing is done.
    """
    better = [level for level in levels if level.found < nothing.found]
    kept = first_non_dominated(np.array([level.worth() for level in better], dtype=np.float64).reshape(-1, 3))
    return [level for level, keep in zip(better, kept, strict=True) if keep] or [nothing]


def attacks_on(
    study: Study, target: Microfile, truths: Sequence[Truth], run: Run | None = None
) -> tuple[list[Attack], list[Attack], list[str]]:
    """The attacks that are known and bounded, and those with fresh seeds and held-out files that only test.

    Last, those that could not be: no rule passes an attacker's limits. With none that can, that is the error.
    """
    settings = settings_of(study)
    first, some, count = settings.attack.seed, settings.protect.known_seeds, settings.protect.fresh_seeds
    if not settings.auxiliary:
        raise InputError("no auxiliary file is declared", expected="a file that shows who is in the group")
    known: list[Attack] = []
    fresh: list[Attack] = []
    silent: dict[str, UnreachableError] = {}

    def watched(_done: int, _total: int) -> bool:
        return run is not None and run.tell(0, settings.protect.levels)

    for one in settings.auxiliary:
        other = read_auxiliary(study, one)
        for truth in truths:
            for attacker in settings.protect.attackers:
                seeds = [first + i for i in range(some)] + [first + FRESH + i for i in range(count)]
                try:
                    done = attack_with(study, target, other, attacker, truth.group, seeds, watched)
                except UnreachableError as error:
                    silent[f"{attacker} from {one.title}, group {truth.group}"] = error
                    continue
                if len(done) < len(seeds):
                    raise StoppedError("interrupted while the attackers were learning; nothing was saved")
                known += [] if one.held_out else done[:some]
                fresh += done if one.held_out else done[some:]
    if silent and not known:
        raise next(iter(silent.values()))
    if not known:
        raise InputError("every auxiliary file is held out", expected="at least one that the swaps can be fitted to")
    return known, fresh, list(silent)


def attacked_again(
    target: Microfile, level: float, made: tuple[SwapPlan, float], known: Sequence[Attack], fresh: Sequence[Attack]
) -> Level:
    """A plan as a level: its file is attacked again by everyone."""
    plan, slack = made
    moved = target.with_areas(plan.moved(target.area_of, target.rows))
    residual = tuple(residual_of(one, moved, known=True) for one in known)
    residual += tuple(residual_of(one, moved, known=False) for one in fresh)
    return Level(level, plan, slack, residual)


def _loosened(planner: Planner, best: Level, known: Sequence[Attack], fresh: Sequence[Attack]) -> Level:
    """The best level, or the same with looser caps where that shows less; as it is if asked to stop."""
    try:
        others = planner.looser(best.level, best.slack)
    except StoppedError:
        return best
    tried = [attacked_again(planner.target, best.level, made, known, fresh) for made in others]
    return min([best, *tried], key=Level.worth)


def as_far_as_possible(planner: Planner) -> tuple[float, tuple[SwapPlan, float] | None]:
    """The furthest level down that has a plan, by halving; none if not even a little is possible."""
    low, high, best = 0.0, 1.0, None
    for _ in range(6):
        middle = (low + high) / 2
        made = planner.plan(middle)
        low, high, best = (middle, high, made) if made else (low, middle, best)
    return low, best


def unreachable(planner: Planner, best: tuple[SwapPlan, float] | None) -> UnreachableError:
    """The targets cannot be met: say how far down one can get."""
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
