"""Cell suppression of a study: one front over k and the number of blank cells, with a lower bound for each point.

Cells are blanked in the original table, or after a recoding that another system found. A group of a recoding is
released as one label, a run of the column's ordered values. So blanks and groups are described by one plan of boxes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.data.settings import Role
from sfumato.errors import StudyError, UnreachableError, nearest, shortened
from sfumato.front import Front, Objective, Point, numbered
from sfumato.measures.registry import GENERAL_LOSS, K
from sfumato.measures.suppression import budget
from sfumato.methods.cells.matching import (
    counted_by_matching,
    enough_possible,
    reach_matching_k,
    release_support,
    source_support,
    without_needless,
)
from sfumato.methods.cells.patterns import Blanks, Kept, Program, bits_of, comparable, proven, refused, solve
from sfumato.methods.registry import system_named
from sfumato.methods.run import Run, Series
from sfumato.methods.shared import K_AND_LOSS, KeptState, best_for_each_k, persons_in, reachable_ks
from sfumato.methods.system import check_weights
from sfumato.plans.boxes import BoxPlan, Span
from sfumato.plans.recodings import RecodingPlan
from sfumato.plans.segments import segments_of
from sfumato.release.policy import MATCHING_K
from sfumato.study import Study
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import FrequencyTable, value_counts


@dataclass(frozen=True, eq=False)
class Base:
    """The table before cells are blanked: `codes[t, j]` is the group of tuple t in column j.

    `spans[j][g]` is the first and the last value of group g in order, and `losses[j][g]` the loss of a cell of the
    group.
    """

    name: str
    codes: Codes
    spans: tuple[tuple[Span, ...], ...]
    losses: tuple[Floats, ...]

    @property
    def recodes(self) -> bool:
        return any(bool(np.any(lost > 0)) for lost in self.losses)


def original_values(table: FrequencyTable) -> Base:
    """Return the original values as groups of one value each."""
    spans = tuple(tuple((label, label) for label in domain.labels) for domain in table.domains)
    return Base("", table.codes.T.copy(), spans, tuple(np.zeros(len(own)) for own in spans))


def plan_groups(name: str, table: FrequencyTable, plan: RecodingPlan) -> Base | None:
    """Return the groups of a plan; None if one of them is not a run of the column's ordered values."""
    codes, spans, losses = [], [], []
    for domain, own in zip(table.domains, table.codes, strict=True):
        groups, covers = plan.grouped(domain)
        order = np.array(domain.order)
        runs = groups[order]
        if int(np.count_nonzero(np.diff(runs))) + 1 != len(covers):
            return None
        _, first, sizes = np.unique(runs, return_index=True, return_counts=True)
        ends = order[np.stack([first, first + sizes - 1], axis=1)].tolist()
        codes.append(groups[own])
        spans.append(tuple((domain.labels[a], domain.labels[b]) for a, b in ends))
        losses.append((covers - 1) / max(len(order) - 1, 1))
    return Base(name, np.stack(codes, axis=1).astype(np.int32), tuple(spans), tuple(losses))


def bases_of(study: Study, table: FrequencyTable) -> list[Base]:
    """Return the original table, and evenly spaced points from the front of the system that cells should follow."""
    settings = study.cells
    bases = [original_values(table)]
    if settings.after is None or settings.bases == 0:
        return bases
    searched = study.with_search(system=settings.after).with_search(
        max_suppression=0.0, constraints={}, objectives=(K.name, GENERAL_LOSS.name)
    )
    front = system_named(settings.after).search(searched, Run(), table)
    points = [point for point in front.points if point.loss > 0]
    places = {round(i) for i in np.linspace(0, len(points) - 1, min(settings.bases, len(points)))}
    named = ((f"{settings.after} point {points[at].id}", points[at].recoding_plan) for at in sorted(places))
    groups = (plan_groups(name, table, plan) for name, plan in named)
    return [*bases, *(base for base in groups if base is not None)]


def grouped_table(table: FrequencyTable, base: Base, inside: Flags) -> tuple[FrequencyTable, Counts64]:
    """Return the table of a recoding with groups as values, and its tuple for each tuple in `inside`.

    Other tuples of the source are suppressed. Where rows belong to persons, all tuples are inside.
    """
    codes, of = np.unique(base.codes[inside], axis=0, return_inverse=True)
    of = of.reshape(-1)
    counts = np.bincount(of, weights=table.counts[inside]).astype(np.int64)
    gone = int(table.counts[~inside].sum())
    place = np.cumsum(inside) - 1
    domains = []
    for j, domain in enumerate(table.domains):
        width = len(base.spans[j])
        digits = len(str(width))
        held = np.bincount(codes[:, j], weights=counts, minlength=width)
        labels = {f"g{group:0{digits}d}": int(held[group]) for group in range(width)}
        domains.append(domain_of(domain.name, labels))
    sensitive = {}
    for name, values in table.sensitive.items():
        width = len(values.domain.labels)
        there = inside[values.tuple_of]
        own = of[place[values.tuple_of[there]]] * width + values.values[there]
        keys, at = np.unique(own, return_inverse=True)
        summed = np.bincount(at.reshape(-1), weights=values.counts[there]).astype(np.int64)
        sensitive[name] = value_counts(values.domain, keys // width, keys % width, summed, len(counts))
    grouped = replace(
        table,
        domains=tuple(domains),
        codes=np.ascontiguousarray(codes.T.astype(np.int32)),
        counts=counts,
        removed=table.removed + gone,
        sensitive=sensitive,
        units=None if table.units is None else table.units.regrouped(of, len(counts)),
        households=None if table.households is None else table.households.regrouped(of, len(counts)),
        label=None,
        weights=None,
        population=None,
    )
    return grouped, of


AGREEING = "agreeing"
MATCHED = Objective(MATCHING_K, "max", title="rows possible for each person (matching k)", privacy=True, scale="log")
PAIRWISE = Objective(AGREEING, "max", title="records that agree pair by pair (k, k)", privacy=True, scale="log")
# Limits that a lower bound may assume, by their names in a saved point
ON_COLUMNS, ON_SUPPRESSED, ON_BLANK = "columns", "suppressed records", "blank records"


@dataclass(frozen=True, eq=False)
class Solution:
    """The blanks for one k after a recoding, the method that found them, and a lower bound on their cost.

    The limits that the bound assumes are `within`. Without these limits other blanks may cost less.
    """

    k: int
    base: Base
    blanks: Blanks
    method: str
    bound: float | None
    within: tuple[str, ...] = ()


def _loss(base: Base, blanks: Blanks, weights: Floats) -> float:
    """Return the loss of the released records: a blank loses its cell, a group its share."""
    total = 0.0
    for j, (weight, blank) in enumerate(zip(weights, bits_of(blanks.mask, blanks.columns).T, strict=True)):
        lost = np.where(blank == 1, 1.0, base.losses[j][blanks.codes[blanks.of, j]])
        total += float(weight) * float((lost * blanks.count).sum())
    return total


def point_of(study: Study, table: FrequencyTable, one: Solution, weights: Floats) -> Point:
    """Return a solution as a point of the front: its cost, its k in every reading, and its plan."""
    blanks = one.blanks
    gone = table.rows - int(blanks.count.sum()) + table.removed
    cost = _loss(one.base, blanks, weights) + gone * float(weights.sum())
    full = float(weights.sum()) * table.records
    plan, persons = plan_of(table, one.base, blanks), None
    figures: dict[str, int | None]
    if table.units is None:
        figures = {K.name: int(blanks.sizes().min()), AGREEING: blanks.agreeing_k, "matching": blanks.matching()}
    else:
        k, persons = persons_in(table, plan)
        figures = {K.name: k}
    if study.cells.reading == AGREEING:
        figures |= counted_by_matching(blanks)
    details = {"method": one.method, **blanks.details(table.columns), "readings": figures}
    details |= {"after": one.base.name} if one.base.name else {}
    bound = None if one.bound is None else min(one.bound, cost)  # the solver adds up costs in another order
    if bound is not None and bound > 0:
        details["floor"], details["ratio"] = bound / full, cost / bound
        details |= {"within": list(one.within)} if one.within else {}
    values = {name: float(v) for name in (MATCHING_K, AGREEING, K.name) if (v := figures.get(name)) is not None}
    values[GENERAL_LOSS.name] = cost
    return Point(0, values, cost / full, gone, plan, bound, details, persons)


def privacy_objective(reading: str, points: Sequence[Point]) -> Objective:
    """Return the privacy objective of a reading: k by matching, or pair by pair where matching was not computed."""
    if reading != AGREEING:
        return K_AND_LOSS[0]
    return MATCHED if all(MATCHING_K in point.values for point in points) else PAIRWISE


def plan_of(table: FrequencyTable, base: Base, blanks: Blanks) -> BoxPlan:
    """Return blanks as a plan of boxes: patterns are classes, and a blank is the label of all values."""
    ends = [(d.hierarchy.leaves[d.order[0]], d.hierarchy.leaves[d.order[-1]]) for d in table.domains]
    names: dict[tuple[Span, ...], int] = {}
    owner = []
    for t, mask in zip(blanks.of.tolist(), blanks.mask.tolist(), strict=True):
        groups = blanks.codes[t]
        spans = (ends[j] if mask >> j & 1 else base.spans[j][groups[j]] for j in range(blanks.columns))
        owner.append(names.setdefault(tuple(spans), len(names)))
    left = blanks.counts - blanks.released
    merged: Counter[tuple[int, int]] = Counter()
    for t, own, count in zip(blanks.of.tolist(), owner, blanks.count.tolist(), strict=True):
        merged[t, own] += count
    members = [(t, own, count) for (t, own), count in merged.items()]
    members += [(t, -1, int(left[t])) for t in np.flatnonzero(left > 0).tolist()]
    return BoxPlan(table.columns, tuple(names), tuple(sorted(members)))


NEVER = 1000.0  # penalty factor for the weight of a column that must keep its cells
PENALTY = 4.0  # factor by which the weight of a column with too many blanks is raised
TRIES = 6
MOST_COLUMNS = 16


def search_cells(study: Study, table: FrequencyTable, run: Run) -> Front:
    """Return the front of a study. The same study, data and seed give the same front."""
    started = time.perf_counter()
    settings = study.cells
    check_weights(study.search, table)
    allowed, caps = _limits(study, table)
    weights = np.array(study.weights_for(table))
    segments_of(study, table)  # raises before the search what publication would refuse
    ks = reachable_ks(settings.k, study, table)
    problems = [Problem(study, table, base, weights, allowed, caps) for base in bases_of(study, table)]
    solutions, kept = _solutions(problems, ks, run)
    if not any(one.reaches(ks[0]) for one in kept):
        raise refused(kept, ks[0], suppresses=settings.reading == "strict")
    if not solutions:
        raise UnreachableError(
            "no way was found to blank cells within the limits",
            expected="a smaller k, more records suppressed (strict) or blank (agreeing), or fewer columns under never",
        )
    found = [point_of(study, table, one, weights) for one in solutions]
    objectives = (privacy_objective(settings.reading, found), K_AND_LOSS[1])
    names = [objective.name for objective in objectives]
    best = best_for_each_k(found, lambda point: point.values[names[0]], lambda point: point.loss)
    points = [replace(point, values={name: point.values[name] for name in names}) for point in best]
    methods = ", ".join(dict.fromkeys(one.method for one in solutions))
    after = f", after {len(problems) - 1} recodings and none" if len(problems) > 1 else ""
    return Front(
        study,
        objectives,
        numbered(points, objectives[0]),
        settings.reading,
        len(problems) == 1 and methods == "exact",
        len(solutions),
        0,
        time.perf_counter() - started,
        table.fingerprint,
        table.records,
        system="cells",
        found_how=f"{settings.reading} reading, {methods}{after}, seed {study.search.seed}",
        units=None if table.units is None else table.units.number,
    )


def _solutions(problems: Sequence[Problem], ks: Sequence[int], run: Run) -> tuple[list[Solution], list[Kept]]:
    """Return the solutions after each recoding and the columns that it keeps. A search may be resumed or stopped."""
    study, table = problems[0].study, problems[0].table
    solutions: list[Solution] = []
    kept: list[Kept] = []
    state = KeptState(run, study, table)
    run.series = None if state.state is None else Series(state.state, run.resume)
    for number, problem in enumerate(problems, start=1):
        kept.append(problem.kept)
        reached = [k for k in ks if kept[-1].reaches(k)]
        strict = study.cells.reading == "strict"
        solutions += problem.strict(run, reached) if strict else problem.agreeing(run, reached)
        if run.stopped or run.tell(number, len(problems)):
            break
    state.end(lambda: {} if run.series is None else run.series.parts, run.stopped)
    return solutions, kept


def _limits(study: Study, table: FrequencyTable) -> tuple[Flags, Counts64]:
    """Return the columns that may have blanks, and the largest number of blanks in each."""
    settings = study.cells
    unknown = [name for name in (*settings.never, *settings.limits) if name not in table.columns]
    if unknown:
        raise StudyError(
            f"{shortened(unknown)} under [cells] is no quasi-identifier",
            expected="quasi-identifiers under never and limits",
            remedy=nearest(unknown[0], table.columns),
        )
    if len(table.columns) > MOST_COLUMNS:
        raise StudyError(
            f"{len(table.columns)} quasi-identifiers", expected=f"at most {MOST_COLUMNS} where single cells are blanked"
        )
    if any(domain.wildcard for domain in table.domains):
        raise StudyError(
            "missing values match anything",
            expected='missing = "drop" or "category" where cells are blanked',
            remedy='missing = "category" under [data]',
        )
    if settings.reading == "agreeing" and (study.search.max_suppression or set(study.search.constraints) - {K.name}):
        raise StudyError(
            "records are suppressed or classes constrained in the reading agreeing, which knows neither",
            expected='reading = "strict", or no max_suppression and no constraints',
        )
    holders = [name for role in (Role.UNIT, Role.HOUSEHOLD) for name in study.named(role)]
    if settings.reading == "agreeing" and holders:
        raise StudyError(
            f"the reading agreeing with {holders[0]} as a unit or household column: several rows of one person, known "
            "together, leave fewer assignments possible than matching counts row by row",
            expected='reading = "strict" where rows belong to persons or households',
            remedy='reading = "strict" under [cells]',
        )
    caps = [
        budget(settings.limits[n], table.rows) if settings.limits.get(n, 1.0) < 1 else table.rows for n in table.columns
    ]
    single = [len(domain.hierarchy.leaves) < 2 for domain in table.domains]
    allowed = [n not in settings.never and not alone for n, alone in zip(table.columns, single, strict=True)]
    return np.array(allowed), np.array(caps, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Problem:
    """The blanking of cells after one recoding: the cost of each cell, the allowed columns, and the limits."""

    study: Study
    table: FrequencyTable
    base: Base
    weights: Floats
    allowed: Flags
    caps: Counts64

    def program(self, k: int) -> Solution | None:
        """Solve the integer program if it is small enough, rows are persons and classes have no other constraints."""
        study, table, settings = self.study, self.table, self.study.cells
        large = table.tuples << len(table.columns) > settings.exact or not comparable(self.weights)
        if large or table.counts_units or set(study.search.constraints) - {K.name}:
            return None
        strict = settings.reading == "strict"
        problem = Program(self.base.codes, table.counts, k, self.weights, self.allowed, self.caps, self.spare, strict)
        blanks, bound = solve(problem)
        if blanks is None or bound is None:
            return None
        method = "exact" if proven(blanks, bound, self.weights) else "integer program, stopped"
        columns = (ON_COLUMNS,) if settings.never or settings.limits else ()
        share = study.search.max_suppression if strict else settings.blank_records
        records = (ON_SUPPRESSED if strict else ON_BLANK,) if share < 1 else ()
        return Solution(k, self.base, blanks, method, None if self.base.recodes else bound, (*columns, *records))

    @property
    def kept(self) -> Kept:
        """The columns without blanks; none where rows belong to persons, because records do not count persons."""
        budget = self.spare if self.study.cells.reading == "strict" else 0
        keeps = ~self.allowed | (self.caps == 0)
        if self.table.units is not None:
            keeps, budget = np.zeros_like(keeps), self.table.rows
        return Kept(self.table.columns, self.base.codes, self.table.counts, keeps, budget, self.table.removed)

    @property
    def spare(self) -> int:
        """The number of records that may be suppressed (strict) or blank in every column ((k, k)-anonymity)."""
        table, settings = self.table, self.study.cells
        if settings.reading == "strict":
            return budget(self.study.search.max_suppression, table.records) - table.removed
        return budget(settings.blank_records, table.rows) if settings.blank_records < 1 else table.rows

    def strict(self, run: Run, ks: Sequence[int]) -> list[Solution]:
        """Solve the strict reading: by the integer program, or by local recoding with trees of leaves and a root."""
        solved = {k: self.program(k) for k in ks}
        solutions = [one for one in solved.values() if one is not None]
        left = [k for k in ks if solved[k] is None]
        return solutions + (self.by_boxes(run, left, self.study.cells.effort) if left else [])

    def by_boxes(self, run: Run, ks: Sequence[int], effort: int) -> list[Solution]:
        """Solve the strict reading by local recoding, after the suppression of records that no class can have.

        Other criteria compare a class with all records, so with them no record is suppressed first.
        """
        if set(self.study.search.constraints) - {K.name}:
            return self._by_boxes(run, ks, effort, np.ones(self.table.tuples, dtype=np.bool_))
        solutions = []
        for _, some in groupby(ks, self.kept.short):
            own = list(some)
            solutions += self._by_boxes(run, own, effort, self.kept.enough(own[-1]))
        return solutions

    def _by_boxes(self, run: Run, ks: Sequence[int], effort: int, inside: Flags) -> list[Solution]:
        """Solve the strict reading for the tuples `inside` with `effort` rounds of improvement."""
        weights, allowed = self.weights, self.allowed
        prices = np.where(allowed | (weights == 0), weights, weights * NEVER)
        plain = bool(allowed.all()) and not self.study.cells.limits and not self.base.recodes
        grouped, of = grouped_table(self.table, self.base, inside)
        kept: list[Solution] = []
        for _ in range(TRIES):
            front = self._local(grouped, run, ks, prices, effort)
            blanks = [(int(p.values[K.name]), self._blanks(of, inside, p.plan), p.bound) for p in front.points]
            counts = np.array([one.blanked() for _, one, _ in blanks])
            over = counts > self.caps
            kept = [
                Solution(k, self.base, one, "heuristic", bound if plain else None)
                for (k, one, bound), unfit in zip(blanks, over | ((counts > 0) & ~allowed), strict=True)
                if not unfit.any()
            ]
            if not over.any() or run.stopped:
                break
            prices = np.where(over.any(axis=0), prices * PENALTY, prices)
        return kept

    def _local(self, grouped: FrequencyTable, run: Run, ks: Sequence[int], prices: Floats, effort: int) -> Front:
        """Return the local recodings of a table whose trees have leaves and a root."""
        settings = self.study.cells
        update = {"constrained": True, "breaks": None, "order": None}
        columns = {name: self.study.columns[name].model_copy(update=update) for name in grouped.columns}
        domains = [replace(d, along_tree=True, leaves=len(d.hierarchy.leaves)) for d in grouped.domains]
        chosen = dict(zip(grouped.columns, prices.tolist(), strict=True))
        largest = max(chosen.values())
        section = {name: price * min(1.0, 1e6 / largest) for name, price in chosen.items()}
        search = {K.name: list(ks), "effort": effort, "passes": settings.passes}
        flattened = self.study.replace(columns=columns).with_settings({"local": search})
        flattened = flattened.with_search(system="local").with_search(weights=section)
        return system_named("local").search(flattened, run, replace(grouped, domains=tuple(domains)))

    def _blanks(self, of: Counts64, inside: Flags, plan: object) -> Blanks:
        """Return a plan of boxes as blanks: a label is one group, or all of them; `of` are tuples `inside`."""
        if not isinstance(plan, BoxPlan):
            raise TypeError("no plan of boxes")
        masks = np.array([sum(1 << j for j, (a, b) in enumerate(spans) if a != b) for spans in plan.labels])
        group, owner, count = np.array(plan.members, dtype=np.int64).reshape(-1, 3).T
        # The tuples of a group take its members in their order, so both are intervals of the same records.
        tuples, entries = np.argsort(of, kind="stable"), np.lexsort((owner < 0, group))
        held, taken = np.cumsum(self.table.counts[inside][tuples]), np.cumsum(count[entries])
        ends = np.union1d(held, taken)
        starts = np.concatenate([[0], ends[:-1]])
        tuple_of = np.flatnonzero(inside)[tuples[np.searchsorted(held, starts, side="right")]]
        own = owner[entries[np.searchsorted(taken, starts, side="right")]]
        kept = own >= 0
        records = (ends - starts)[kept]
        return Blanks(self.base.codes, self.table.counts, tuple_of[kept], masks[own[kept]], records).merged()

    def agreeing(self, run: Run, ks: Sequence[int]) -> list[Solution]:
        """Solve (k, k)-anonymity by the integer program where it is small, else by the best of several starts.

        Fewer blanks in the strict reading leave fewer blanks to take back, so boxes without improvement are a start,
        too. None of the starts considers which assignments are possible, so each is strengthened until enough of them
        are. Limits on columns hold for all.
        """
        programs = {k: self.program(k) for k in ks}
        solutions = [one for one in programs.values() if one is not None and enough_possible(one.blanks, one.k)]
        left = [k for k in ks if k not in {one.k for one in solutions}]
        weights = self.weights
        within = (ON_COLUMNS,) if self.study.cells.never else ()
        efforts = sorted({0, self.study.cells.effort}) if left else []
        strict = [one for effort in efforts for one in self.by_boxes(run, left, effort)]
        for k in left:
            bounded = programs[k]
            first = source_support(self.base.codes, self.table.counts, k, weights, self.allowed)
            classes = [one.blanks for one in strict if one.k >= k]
            if first is None or not classes:
                continue
            quick = release_support(first, k, weights, self.allowed, self.spare)
            starts = [*classes, quick, None if bounded is None else bounded.blanks]
            cheapest = min(classes, key=lambda one: one.cost(weights))
            needed = [without_needless(start, k, weights) for start in starts if start is not None]
            tried = [reach_matching_k(blanks, cheapest, k) for blanks in needed]
            fit = [one for one in (*tried, *classes) if self.fits(one)]
            if fit:
                best = min(fit, key=lambda one: one.cost(weights))
                bound = None if self.base.recodes else first.cost(weights)
                stated = (bound, within) if bounded is None else (bounded.bound, bounded.within)
                solutions.append(Solution(k, self.base, best, "heuristic", *stated))
        return solutions

    def fits(self, blanks: Blanks) -> bool:
        """Return whether blanks keep to the limits on columns and on records that are blank altogether."""
        return not np.any(blanks.blanked() > self.caps) and blanks.whole <= self.spare
