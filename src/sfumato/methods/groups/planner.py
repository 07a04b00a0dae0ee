"""Plans of swaps: the cheapest ones within bounds on every signal, and those of targeted record swapping.

A unit is a record or a household, and is exchanged with one of the same size. The influential metric is the cost of
swapping two records between areas (equation 25).

Targeted record swapping, the usual protection of places in census tables, is a baseline for plans that know the group.
A record is at risk if fewer than a number of records of its area share its attributes. Units with records at risk, the
greatest risk first, are exchanged with the most similar of some drawn units of the same size in another area. This
needs no group, attacker or sensitive area.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.errors import InputError, UnreachableError, shortened
from sfumato.methods.groups.attack.attack import Attack
from sfumato.methods.groups.attack.rule_walk import Stop
from sfumato.methods.groups.files import Truth, area_indexes, settings_of
from sfumato.methods.groups.memetic_swaps import Swapping, search_swaps
from sfumato.methods.groups.microfile import Microfile, quantile_groups
from sfumato.methods.groups.signals import (
    FEW,
    RISING,
    SLACKS,
    Sides,
    Signal,
    fall_for,
    lowered,
    middle,
    reachable,
    room_for,
    sides_of,
    signals_of,
)
from sfumato.methods.groups.transport import HALF, Transport, least_cost
from sfumato.plans.swaps import SwapPlan
from sfumato.study import Study

MANY, CLOSE = 60, 0.02  # with more than MANY bounds, plans are within CLOSE of the least cost
TIGHT = 2  # how many of the slacks other plans are tried with
PASSED = 10.0  # in pairs of the highest cost: the price of exceeding a soft bound by a record
CELLS = 24_000_000  # pairs of a giver and a taker that are priced; if there are more, takers are drawn in every area
DRAWN = 60  # partners that are compared for each unit
VALUES = 12  # an attribute with more values is divided into this number of groups


@compiled
def _distances(
    codes: Codes, values: Floats, ordinal: Flags, weights: Floats, left: Counts64, right: Counts64
) -> Floats:
    """Return the influential metric of each of `left` with each of `right`."""
    # Compiled, because numpy would need an array of givers by takers by columns, which may not fit into memory.
    distances = np.empty((len(left), len(right)))
    for a in range(len(left)):
        i = left[a]
        for b in range(len(right)):
            j = right[b]
            total = 0.0
            for c in range(len(codes)):
                if codes[c, i] == codes[c, j]:
                    continue
                if ordinal[c]:
                    x, y = values[c, codes[c, i]], values[c, codes[c, j]]
                    both = x + y
                    # Outside the range a value may be missing or negative, and the difference
                    # counts as one of category.
                    if both != both or both == 0:
                        total += weights[c]
                    else:
                        total += weights[c] * min(((x - y) / both) ** 2, 1.0)
                else:
                    total += weights[c]
            distances[a, b] = total
    return distances


class Influence:
    """Distances between records of a microfile.

    Equal categories cost 0 and different ones their weight; the paper prints it the other way round. An ordinal
    difference is ((a − b)/(a + b))², and 0 if both are 0 (docs/readings.md, 4.3).
    """

    def __init__(
        self,
        microfile: Microfile,
        columns: Sequence[str] = (),
        ordinal: Sequence[str] = (),
        weights: Sequence[float] | None = None,
    ) -> None:
        names = list(columns or microfile.attributes)
        positions = [microfile.attributes.index(name) for name in names]
        self.codes = np.ascontiguousarray(microfile.codes[positions])
        self.values = np.zeros((len(positions), max(len(microfile.values[p]) for p in positions)))
        for row, position in enumerate(positions):
            self.values[row, : len(microfile.values[position])] = microfile.values[position]
        self.ordinal = np.array([name in ordinal for name in names])
        self.weights = np.array(weights if weights is not None else [1.0] * len(names))

    def between(self, left: Counts64, right: Counts64) -> Floats:
        """Return the cost of swapping each of `left` with each of `right`."""
        return _distances(self.codes, self.values, self.ordinal, self.weights, left, right)

    def of_pairs(self, left: Counts64, right: Counts64) -> float:
        """Return the cost of swapping each of `left` with the one at the same position of `right`."""
        return sum(float(self.between(left[i : i + 1], right[i : i + 1])[0, 0]) for i in range(len(left)))


@dataclass(frozen=True)
class Units:
    """Records by unit: those of unit u are `order[start[u] : start[u] + size[u]]`, in the order of the file."""

    unit_of: Counts64
    order: Counts64
    start: Counts64
    size: Counts64
    area_of: Codes

    @classmethod
    def of(cls, microfile: Microfile) -> Units:
        """Return the units of a file. Each record is one, unless the file has units."""
        given = np.arange(microfile.records) if microfile.unit_of is None else microfile.unit_of
        _, unit_of = np.unique(given, return_inverse=True)
        unit_of = unit_of.reshape(-1).astype(np.int64)
        order = np.argsort(unit_of, kind="stable").astype(np.int64)
        size = np.bincount(unit_of).astype(np.int64)
        start = np.cumsum(size) - size
        return cls(unit_of, order, start, size, microfile.area_of[order[start]])

    @property
    def count(self) -> int:
        return len(self.size)

    def sums(self, weights: Floats) -> Floats:
        """Return a weight per record as one per unit."""
        return np.bincount(self.unit_of, weights, minlength=self.count).astype(np.float64)

    def records(self, units: Counts64) -> Counts64:
        """Return the records of some units, one after the other."""
        parts = [self.order[self.start[u] : self.start[u] + self.size[u]] for u in units.tolist()]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def between(self, influence: Influence, left: Counts64, right: Counts64) -> Floats:
        """Return the cost of exchanging units, record by record in their order. Sizes must be equal."""
        if (self.size == 1).all():
            return influence.between(self.order[self.start[left]], self.order[self.start[right]])
        cost = np.full((len(left), len(right)), np.inf)
        for size in np.intersect1d(self.size[left], self.size[right]).tolist():
            mine, theirs = np.flatnonzero(self.size[left] == size), np.flatnonzero(self.size[right] == size)
            one, two = (
                self.order[self.start[left[mine]][:, None] + np.arange(size)],
                self.order[self.start[right[theirs]][:, None] + np.arange(size)],
            )
            total = np.zeros((len(mine), len(theirs)))
            for position in range(size):
                total += influence.between(one[:, position], two[:, position])
            cost[np.ix_(mine, theirs)] = total
        return cost


def risks(microfile: Microfile, least: int) -> Floats:
    """Return one over the number of records of the same area with the same attributes; 0 if these are enough."""
    key = microfile.area_of.astype(np.int64)
    for position, values in enumerate(microfile.values):
        codes, count = microfile.codes[position].astype(np.int64), len(values)
        if count > VALUES:
            codes, count = quantile_groups(np.bincount(codes, minlength=count), VALUES)[codes], VALUES
        _, key = np.unique(key * count + codes, return_inverse=True)
        key = key.reshape(-1).astype(np.int64)
    alike = np.bincount(key)[key]
    return np.where(alike < least, 1.0 / alike, 0.0)


def targeted_pairs(
    microfile: Microfile, units: Units, influence: Influence, rate: float, least: int, rng: np.random.Generator
) -> tuple[Counts64, Counts64]:
    """Return units to exchange so that about a rate of all units move, each at most once."""
    at_risk = np.zeros(units.count)
    np.maximum.at(at_risk, units.unit_of, risks(microfile, least))
    order = rng.permutation(units.count)
    order = order[np.argsort(-at_risk[order], kind="stable")]
    wanted = max(int(rate * units.count / 2), 1)
    free = np.ones(units.count, np.bool_)
    by_size = {size: np.flatnonzero(units.size == size) for size in np.unique(units.size).tolist()}
    one: list[int] = []
    two: list[int] = []
    for unit in order.tolist():
        if len(one) == wanted:
            break
        if not free[unit]:
            continue
        alike = by_size[int(units.size[unit])]
        some = rng.choice(alike, min(DRAWN, len(alike)), replace=False)
        some = some[free[some] & (units.area_of[some] != units.area_of[unit])]
        if not len(some):
            continue
        cost = units.between(influence, np.array([unit]), some)[0]
        partner = int(some[np.argmin(cost)])
        free[[unit, partner]] = False
        one.append(unit)
        two.append(partner)
    return np.array(one, np.int64), np.array(two, np.int64)


def influence_of(study: Study, target: Microfile) -> Influence:
    """Return the metric of a study: the number of different cells, or the influential metric."""
    settings = settings_of(study)
    attributes = settings.mapping().attributes
    columns = settings.protect.columns or target.attributes
    unknown = [name for name in columns if name not in attributes]
    if unknown:
        raise InputError(f"the metric names {shortened(unknown)}", expected="attributes of the mapping")
    ordinal = [n for n in columns if attributes[n].ordinal] if settings.protect.metric == "influential" else []
    return Influence(target, columns, ordinal, [attributes[name].weight for name in columns])


class Planner:
    """Everything that is the same at all levels: the suspected records, their possible partners, the cost of swaps.

    Units move: records, or households if the file states who lives together.
    """

    def __init__(
        self,
        study: Study,
        target: Microfile,
        truths: Sequence[Truth],
        known: Sequence[Attack],
        noise: np.random.Generator,
    ) -> None:
        settings = settings_of(study).protect
        self.study, self.target, self.truths, self.settings = study, target, tuple(truths), settings
        self.noise = noise
        self.stop: Stop | None = None
        self._pool: tuple[Counts64, Counts64] | None = None
        self.units = Units.of(target)
        counted_only = bool(settings.targets)
        self.signals = tuple(signals_of(target, truths, known, counted_only=counted_only, likes=not counted_only))
        # Bounds of known attackers are hard. The sum of all grades of a model that another known attacker uses is soft.
        own = {signal.name for signal in signals_of(target, truths, known, counted_only=counted_only)}
        self.known: Flags = np.array([signal.name in own for signal in self.signals])
        self.sensitive = {truth.group: truth.sensitive.areas for truth in truths}
        self.held: Floats = np.stack([signal.per_area(target.area_of, len(target.areas)) for signal in self.signals])
        self.guarded = sorted({area for areas in self.sensitive.values() for area in areas})
        guarded = np.isin(np.arange(len(target.areas)), self.guarded)
        self.suspected: Flags = np.any([signal.suspected for signal in self.signals], axis=0)
        marked = self.units.sums(self.suspected.astype(np.float64)) > 0
        partner = ~guarded[self.units.area_of]
        if not settings.suspicious_partners:
            partner &= ~marked
        self.receivers: Flags = ~guarded
        self.givers = np.flatnonzero(marked & guarded[self.units.area_of])
        self.takers = np.flatnonzero(partner)
        if not len(self.givers) or not len(self.takers):
            raise UnreachableError(
                "no record can be swapped: no suspected record in a sensitive area, or no unsuspected one elsewhere",
                expected="records on both sides",
                remedy="suspicious_partners = true under [groups.protect]",
            )
        self.all_takers = len(self.takers) * len(self.givers) <= CELLS
        if not self.all_takers:
            self.takers = self._drawn(CELLS // len(self.givers))
        self.influence = influence_of(study, target)
        # An attacker must not guess which of equal partners was taken: noise decides, too small to change a sum.
        self.priced = self.units.between(self.influence, self.givers, self.takers)
        self.priced += noise.random(self.priced.shape) * (1e-3 / max(len(self.givers), 1))
        largest_cost = float(self.priced.max(where=np.isfinite(self.priced), initial=0.0))
        self.price: Floats = PASSED * largest_cost / np.array([signal.per_record for signal in self.signals])
        weights = np.stack([self.units.sums(signal.weights) for signal in self.signals])
        self.giver_weights, self.taker_weights = weights[:, self.givers], weights[:, self.takers]
        self.targets = self._targets(guarded)

    def _targets(self, guarded: Flags) -> dict[int, float]:
        """Return the declared targets by area; they are refused for areas that are not hidden."""
        declared, names = self.settings.targets, self.target.areas
        targets = dict(zip(area_indexes(self.target, list(declared)), declared.values(), strict=True))
        others = [names[position] for position in targets if not guarded[position]]
        if others:
            raise InputError(
                f"the targets include {shortened(others)}, which are not among the areas to hide",
                expected="areas that must not be identified: " + shortened(np.array(names)[guarded].tolist()),
                remedy="name them under expert in [groups] as well",
            )
        return targets

    def _drawn(self, count: int) -> Counts64:
        """Draw a number of the takers, as evenly from the areas as their numbers allow."""
        shuffled = self.noise.permutation(self.takers)
        area_of = self.units.area_of[shuffled]
        order = np.argsort(area_of, kind="stable")
        turn = np.empty(len(shuffled), np.int64)
        turn[order] = np.arange(len(shuffled)) - np.searchsorted(area_of[order], area_of[order])
        return np.sort(shuffled[np.argsort(turn, kind="stable")[: max(count, 1)]])

    def plan(self, level: float) -> tuple[SwapPlan, float] | None:
        """Return the cheapest plan at a level with the tightest feasible caps, and the slack of these caps.

        If there is none, attackers like the known ones are left out: many of them together can outweigh a known one.
        """
        ways = [(slack, RISING[0], True) for slack in SLACKS]
        if self.settings.method == "exact" and not self.known.all():
            ways += [(slack, RISING[0], False) for slack in SLACKS]
        return next(self._plans(level, ways), None)

    def others(self, level: float, slack: float) -> Iterator[tuple[SwapPlan, float]]:
        """Return other plans at a level: with looser caps, with fewer rising areas, or with known attackers only."""
        if self.settings.method == "memetic" or self.targets:
            return iter(())
        tight = SLACKS[:TIGHT]
        ways = [(other, RISING[0], True) for other in tight if other > slack]
        ways += [(other, share, True) for share in RISING[1:] for other in tight]
        ways += [(other, share, False) for share in RISING for other in tight]
        return self._plans(level, ways)

    def _plans(self, level: float, ways: Sequence[tuple[float, float, bool]]) -> Iterator[tuple[SwapPlan, float]]:
        """Return the feasible plans with a slack of the caps and a share of rising areas, and with this slack.

        The third part of a way is whether attackers like the known ones are bounded too.
        """
        for slack, share, likes in ways:
            memetic = self.settings.method == "memetic"
            swaps = self._memetic(level, slack) if memetic else self._exact(level, slack, share, likes=likes)
            if swaps is not None:
                yield swaps, slack

    def targeted(self, rate: float) -> SwapPlan:
        """Return targeted record swapping at a rate: units at risk swap with similar ones, whatever their group."""
        one, two = targeted_pairs(self.target, self.units, self.influence, rate, self.settings.risk, self.noise)
        return self.between(one, two)

    def _sides(self, sensitive: Sequence[int], share: float) -> Sides:
        """Return which areas fill up. With declared targets all of them may."""
        return sides_of(self.held, self.receivers, len(sensitive), 1.0 if self.targets else share)

    def _bounds(self, number: int, level: float, slack: float, share: float) -> tuple[Floats, Floats]:
        """Return by how much a signal may grow in each area, and by how much it may fall."""
        signal, held, areas = self.signals[number], self.held[number], len(self.target.areas)
        mine = self.sensitive[signal.group]
        sides = self._sides(mine, share)
        aim = middle(held, mine, sides)
        # Where other areas have a record or two, a single record may stand out, so a sensitive area should have none.
        few = aim < FEW * signal.per_record
        limit = lowered(held, mine, level, 0.0 if few else aim, self.targets)
        if not self.targets and not signal.marks:
            leaving = np.bincount(self.units.area_of[self.givers], self.giver_weights[number], minlength=areas)
            coming = self.taker_weights[number].mean() * len(self.givers) / max(self.giver_weights[number].sum(), 1e-9)
            limit = reachable(limit, held, mine, leaving.astype(np.float64), float(coming))
        fall = fall_for(held, () if few or self.targets else mine, limit)
        return room_for(held, mine, sides, limit, slack, signal.per_record), fall

    def _exact(self, level: float, slack: float, share: float, *, likes: bool) -> SwapPlan | None:
        bounded = [number for number in range(len(self.signals)) if likes or self.known[number]]
        price = np.where(self.known, np.inf, self.price)[bounded]
        bounds = [self._bounds(number, level, slack, share) for number in bounded]
        room, fall = (np.stack([bound[side] for bound in bounds]) for side in (0, 1))
        floored = (fall < self.held[bounded]).any(axis=1)
        giver_weights, taker_weights = self.giver_weights[bounded], self.taker_weights[bounded]
        problem = Transport(
            self.priced,
            self.units.area_of[self.givers],
            self.units.area_of[self.takers],
            np.concatenate([giver_weights, -giver_weights[floored]]),
            np.concatenate([taker_weights, -taker_weights[floored]]),
            np.concatenate([room, fall[floored]]),
            np.concatenate([price, price[floored]]),
        )
        # With many bounds the integer program takes minutes, so a plan near the optimum of the linear one is taken.
        many = room.size > MANY
        pairs = least_cost(
            problem,
            0 if many else 4,
            self.stop,
            pool=self._pool if many else None,
            close=CLOSE if many else 0.0,
            beyond=0.0 if self.targets else HALF,
        )
        if pairs is None:
            return None
        self._pool = pairs.pool
        plan = self.between(self.givers[pairs.givers], self.takers[pairs.takers], pairs.bound)
        # The bound is that of all pairs, so it is unknown if some takers were not priced.
        exact = pairs.exact and self.all_takers
        bound = None if not self.all_takers else plan.cost if pairs.exact else min(pairs.bound, plan.cost)
        return SwapPlan(plan.givers, plan.takers, plan.cost, bound, exact)

    def _memetic(self, level: float, slack: float) -> SwapPlan | None:
        """Return the paper's plan, which bounds one signal: the number of suspected records."""
        if self.target.unit_of is not None:
            raise InputError(
                "the memetic method moves single records", expected='method = "exact" where [groups] has a unit'
            )
        union = Signal("suspected", self.truths[0].group, self.suspected.astype(np.float64))
        signal = union.per_area(self.target.area_of, len(self.target.areas)).round()
        held = signal.astype(np.int64)
        guarded = self.guarded
        sides = self._sides(guarded, RISING[0])
        aim = middle(signal, guarded, sides)
        limit = lowered(signal, guarded, level, aim, self.targets)
        needed = np.zeros(len(held), np.int64)
        needed[guarded] = np.ceil(held[guarded] - limit[guarded] - 1e-9).astype(np.int64)
        caps = np.zeros(len(held), np.int64)
        room = room_for(signal, guarded, sides, limit, slack)
        caps[self.receivers] = np.floor(room[self.receivers]).astype(np.int64)
        if caps.sum() < needed.sum():
            return None
        problem = Swapping(
            self.priced,
            self.units.area_of[self.givers],
            self.units.area_of[self.takers],
            held,
            needed,
            caps,
            float(self.influence.weights.sum()),
        )
        rng = np.random.default_rng(settings_of(self.study).attack.seed)
        givers, takers = search_swaps(problem, self.settings.generations, rng, self.stop)
        return self.between(self.givers[givers], self.takers[takers])

    def between(self, one: Counts64, two: Counts64, bound: float | None = None) -> SwapPlan:
        """Return swaps of units as a plan of records with its cost."""
        mine, theirs = self.units.records(one), self.units.records(two)
        rows = self.target.rows
        return SwapPlan(rows[mine], rows[theirs], self.influence.of_pairs(mine, theirs), bound)

    def pairs_of(self, plan: SwapPlan) -> tuple[Counts64, Counts64]:
        """Return the swapped units of a plan: their numbers among the givers and among the takers."""
        one, two = (np.searchsorted(self.target.rows, rows) for rows in (plan.givers, plan.takers))
        pairs = np.unique(np.stack([self.units.unit_of[one], self.units.unit_of[two]]), axis=1)
        return np.searchsorted(self.givers, pairs[0]), np.searchsorted(self.takers, pairs[1])
