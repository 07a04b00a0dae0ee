"""Baselines beside our own fronts: Mondrian, Datafly and the best node of the lattice, each at the required k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.comparisons.comparable import asked_of, no_levels, refuse_fronts, refuse_persons, refuse_table
from sfumato.comparisons.cost import TITLES, Cost, Costs, cost_of
from sfumato.comparisons.datafly import Levels, datafly
from sfumato.comparisons.local import DIVIDES, LocalTable
from sfumato.comparisons.optimum import classes_at
from sfumato.comparisons.recorded import METHOD as ARX
from sfumato.comparisons.recorded import recorded
from sfumato.errors import InputError, StudyError, UnreachableError, nearest, shortened
from sfumato.front import Front, Point
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.planned import suppress_by_plan
from sfumato.measures.standard import DISTINCT_L, GENERAL_LOSS, K
from sfumato.measures.suppression import budget
from sfumato.plans.levels import LevelPlan
from sfumato.plans.plan import RecodingPlan
from sfumato.plans.recoding import at_level
from sfumato.runtime.compiled import need_compiler
from sfumato.study import SearchSettings, Study
from sfumato.systems.goals import check_weights
from sfumato.systems.lattice.search import search_lattice
from sfumato.systems.run import Run
from sfumato.tables.frequency import FrequencyTable
from sfumato.tables.missing import loss_of_source

BY_LEVELS = ("lattice_optimum", "datafly")
METHODS = (*BY_LEVELS, *DIVIDES)
DEFAULT = tuple(name for name in METHODS if name != "mondrian_even")


def baselines(
    study: Study,
    ks: Sequence[int] | None = None,
    *,
    l: int = 1,
    fronts: Sequence[Front] = (),
    methods: Sequence[str] | None = None,
    table: FrequencyTable | None = None,
) -> Costs:
    """What other kinds of recoding cost at each k, and what the points of our fronts cost that reach it.

    All are measured the same way, within the study's suppression limit; `l` asks for different sensitive values in each
    class besides.

    Args:
        study: the table, its hierarchies and its suppression limit.
        ks: the k that are asked for; 2, 5, 10, 20, 50 and 100 unless given.
        l: how many different sensitive values each class must hold.
        fronts: fronts of the same study to stand beside them.
        methods: the methods; all unless given.
        table: the study's frequency table, where it was read before.

    Returns:
        A row for each method and each k.

    >>> import sfumato as sf
    >>> found = sf.baselines(sf.read(sf.sample("adult")), ks=[10])
    >>> for row in found:
    ...     if row.classes:  # figures of ARX on this table are recorded, not measured
    ...         print(f"{row.title}: k {row.k}, loss {row.loss:.3f}, {row.suppressed} suppressed")
    lattice optimum: k 10, loss 0.397, 298 suppressed
    Datafly: k 10, loss 0.447, 273 suppressed
    Mondrian, strict: k 10, loss 0.205, 0 suppressed
    Mondrian, relaxed: k 10, loss 0.139, 0 suppressed
    """
    need_compiler("a comparison of methods")
    unknown = [name for name in methods or () if name not in METHODS]
    if unknown:
        raise InputError(f'unknown method "{unknown[0]}"', expected="a method", remedy=nearest(unknown[0], METHODS))
    refuse_persons(study)
    table = study.table() if table is None else table
    asked = asked_of(ks, table.rows)
    refuse_table(table, l)
    refuse_fronts(study, table, fronts)
    check_weights(study.search, table)
    allowed = budget(study.search.max_suppression, table.records)
    notes: list[str] = []
    rows: list[Cost] = []
    refusals: dict[str, str] = {}
    for front in fronts:
        refusals[front.system] = front.how
        rows += _ours(front, table, asked, l)
    wanted = list(methods or DEFAULT)
    reason = no_levels(table)
    if reason and set(wanted) & set(BY_LEVELS):
        notes.append(f"left out: {shortened(TITLES[name] for name in wanted if name in BY_LEVELS)} ({reason})")
        wanted = [name for name in wanted if name not in BY_LEVELS]
    local = LocalTable.of(study, table) if set(wanted) & set(DIVIDES) else None
    for name in wanted:
        for k in asked:
            if name == "lattice_optimum":
                rows.append(_optimum(study, table, k, l))
            elif name == "datafly":
                rows.append(_datafly(study, table, k, l, allowed))
            elif local is not None:
                rows.append(local.cost(name, k, l))
    if local is not None:
        known = {k: recorded(study, table, k, l) for k in asked}
        if any(known.values()):
            rows += [row or Cost(ARX, k, note="not recorded for this k") for k, row in known.items()]
    if not rows:
        raise StudyError(
            notes[0], expected="a hierarchy for each quasi-identifier", remedy="mondrian_strict needs none"
        )
    over = [row for row in rows if row.method == "datafly" and (row.suppressed or 0) > allowed]
    if over:
        notes.append(
            f"Datafly suppresses up to k records by its own rule, here more than the limit of {allowed:,}: "
            + ", ".join(f"{row.suppressed:,} at k = {row.asked:,}" for row in over)
        )
    labels = "" if local is None else local.labels
    rows = [_of_source(row, table) for row in rows]
    return Costs(tuple(rows), table.records, allowed, l, tuple(notes), refusals, labels)


def _of_source(row: Cost, table: FrequencyTable) -> Cost:
    """Return a row with the loss of the source: records that the missing rule left out are lost."""
    return row if row.loss is None else replace(row, loss=loss_of_source(row.loss, table.records, table.left_out))


def _ours(front: Front, table: FrequencyTable, asked: Sequence[int], l: int) -> list[Cost]:
    """For each k, the point of a front with least loss that reaches it, measured as all the others are."""
    weights = front.study.weights_for(table)
    known: dict[int, Cost] = {}

    def cost(point: Point) -> Cost:
        if point.id not in known:
            known[point.id] = cost_of(front.system, 0, _classes(table, point.recoding_plan, weights))
            if abs((known[point.id].loss or 0.0) - front.loss_of_entered(point.loss)) > 1e-9:
                raise InputError(
                    f"point {point.id} of the front of {front.system} does not have the loss that the front states",
                    expected="a front that was searched with the same hierarchies, and not as a reproduction",
                    remedy="search again",
                )
        return known[point.id]

    rows = []
    for k in asked:
        for point in sorted(front.points, key=lambda point: point.loss):
            if point.values.get(K.name, k) < k or point.values.get(DISTINCT_L.name, l) < l:
                continue
            there = cost(point)
            if (there.k or 0) >= k and (l <= 1 or (there.l or 0) >= l):
                rows.append(_at(there, k, f"point {point.id}"))
                break
        else:
            rows.append(Cost(front.system, k, note="no point of the front reaches this k"))
    return rows


def _optimum(study: Study, table: FrequencyTable, k: int, l: int) -> Cost:
    """The node with least loss once classes that fall short are suppressed within the limit."""
    levels = _levels(study, table, k, l)
    if levels is None:
        return Cost("lattice_optimum", k, note="no node of the lattice reaches this k within the suppression limit")
    return _at(
        cost_of("lattice_optimum", k, classes_at(table, levels, k, l, study.weights_for(table))), k, _words(levels)
    )


def _levels(study: Study, table: FrequencyTable, k: int, l: int) -> Levels | None:
    """The levels of that node, by the search that answers every question of the lattice."""
    diverse = {DISTINCT_L.name: float(l)} if l > 1 else {}
    settings = SearchSettings(
        objectives=(GENERAL_LOSS.name,),
        constraints={K.name: float(k)} | diverse,
        max_suppression=study.search.max_suppression,
        weights=study.search.weights,
        seed=study.search.seed,
        threads=study.search.threads,
    )
    try:
        front = search_lattice(study.with_search(settings), table, Run())
    except UnreachableError:
        return None
    plan = min(front.points, key=lambda point: (point.loss, point.suppressed)).plan
    return tuple(plan.levels[name] for name in table.columns) if isinstance(plan, LevelPlan) else None


def _datafly(study: Study, table: FrequencyTable, k: int, l: int, allowed: int) -> Cost:
    weights = study.weights_for(table)

    def different(column: int, level: int) -> int:
        groups = at_level(table.domains[column], level).groups
        return len(np.unique(groups[table.codes[column]]))

    levels = datafly(
        [domain.hierarchy.height for domain in table.domains],
        different,
        lambda at: classes_at(table, at, k, l).suppressed_rows,
        max(k, allowed),
        table.records,
    )
    if levels is None:
        return Cost("datafly", k, note="even the fully generalized table does not reach this k")
    return _at(cost_of("datafly", k, classes_at(table, levels, k, l, weights)), k, _words(levels))


def _classes(table: FrequencyTable, plan: RecodingPlan, weights: Sequence[float]) -> ClassTable:
    classes = classify(table, plan.recoding(table), weights)
    return suppress_by_plan(classes, plan)


def _at(cost: Cost, k: int, note: str) -> Cost:
    return replace(cost, asked=k, note=note)


def _words(levels: Levels) -> str:
    return "levels " + " ".join(str(level) for level in levels)
