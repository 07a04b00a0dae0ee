"""Cell suppression of a study: one front over k and the blanked cells, with a bound beside each point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.errors import StudyError, UnreachableError, nearest, shortened
from sfumato.front import Front, Objective, Point, numbered
from sfumato.hierarchies.hierarchy import flat
from sfumato.measures.standard import GENERAL_LOSS, K
from sfumato.measures.suppression import budget
from sfumato.plans.boxes import BoxPlan
from sfumato.runtime.arrays import Counts64, Flags, Floats
from sfumato.study import Study
from sfumato.systems.cells.agreeing import completed, restored, supported
from sfumato.systems.cells.exact import Program, solve, variables
from sfumato.systems.cells.patterns import Blanks
from sfumato.systems.cells.patterns import numbered as keys_of
from sfumato.systems.goals import check_weights
from sfumato.systems.registry import system_named
from sfumato.systems.run import Run
from sfumato.tables.frequency import FrequencyTable

AGREEING = "agreeing"
OBJECTIVES = {
    "strict": Objective(K.name, "max"),
    "agreeing": Objective(AGREEING, "max", title="records that agree (k, k)", privacy=True, scale="log"),
}
NEVER = 1000.0  # how many times dearer a column is that must keep its cells
DEARER = 4.0  # by what a column with too many blanks becomes dearer
TRIES = 6
MOST_COLUMNS = 16


@dataclass(frozen=True, eq=False)
class Solution:
    """Blanks for one k, how they were found, and a bound on their cost where there is one."""

    k: int
    blanks: Blanks
    method: str
    bound: float | None


def search_cells(study: Study, table: FrequencyTable, run: Run) -> Front:
    """The front of a study. The same study, data and seed give the same front."""
    started = time.perf_counter()
    settings = study.cells
    check_weights(study.search, table)
    allowed, most = _limits(study, table)
    weights = np.array(study.weights_for(table))
    ks = sorted({k for k in settings.k if k <= table.rows})
    if not ks:
        raise UnreachableError(
            f"the table has {table.rows} records, fewer than k = {min(settings.k)}", expected=f"k up to {table.rows}"
        )
    if settings.reading == "strict":
        solutions = _strict(study, table, run, ks, weights, allowed, most)
    else:
        solutions = _agreeing(study, table, run, ks, weights, allowed, most)
    if not solutions:
        raise UnreachableError(
            "no way was found to blank cells within the limits",
            expected="a smaller k, more suppression, or fewer columns that keep their cells",
        )
    points = _front([_point(study, table, one, weights) for one in solutions], OBJECTIVES[settings.reading])
    objectives = (OBJECTIVES[settings.reading], Objective(GENERAL_LOSS.name, "min"))
    return Front(
        study,
        objectives,
        numbered(points, objectives[0]),
        settings.reading,
        all(one.method == "exact" for one in solutions),
        len(solutions),
        0,
        time.perf_counter() - started,
        table.fingerprint,
        table.records,
        system="cells",
        found_how=f"{settings.reading} reading, "
        + ", ".join(dict.fromkeys(one.method for one in solutions))
        + f", seed {study.search.seed}",
        tuples=table.tuples,
    )


def _limits(study: Study, table: FrequencyTable) -> tuple[Flags, Counts64]:
    """Which columns may be blanked, and how many of their cells."""
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
    most = [
        budget(settings.limits[n], table.rows) if settings.limits.get(n, 1.0) < 1 else table.rows for n in table.columns
    ]
    single = [len(domain.hierarchy.leaves) < 2 for domain in table.domains]
    allowed = [n not in settings.never and not alone for n, alone in zip(table.columns, single, strict=True)]
    return np.array(allowed), np.array(most, dtype=np.int64)


def _program(
    study: Study, table: FrequencyTable, k: int, weights: Floats, allowed: Flags, most: Counts64
) -> Solution | None:
    """The integer program, where it is small enough and nothing else is demanded of classes."""
    settings = study.cells
    if variables(len(table.columns), table.tuples) > settings.exact or set(study.search.constraints) - {K.name}:
        return None
    strict = settings.reading == "strict"
    share = study.search.max_suppression if strict else settings.blank_records
    spent = budget(share, table.records) - table.removed if share < 1 else table.rows
    problem = Program(table.codes.T.copy(), table.counts, k, weights, allowed, most, spent, strict)
    blanks, bound = solve(problem)
    if blanks is None or bound is None:
        return None
    gone = (table.rows - int(blanks.count.sum())) * float(weights.sum())
    proven = blanks.cost(weights) + gone <= bound + 1e-6
    return Solution(k, blanks, "exact" if proven else "integer program, stopped", bound)


def _strict(
    study: Study,
    table: FrequencyTable,
    run: Run,
    ks: Sequence[int],
    weights: Floats,
    allowed: Flags,
    most: Counts64,
) -> list[Solution]:
    """A blank as a value of its own is a local recoding whose trees have leaves and a root, so that system searches."""
    solved = {k: _program(study, table, k, weights, allowed, most) for k in ks}
    solutions = [one for one in solved.values() if one is not None]
    left = [k for k in ks if solved[k] is None]
    if not left:
        run.tell(len(ks), len(ks))
        return solutions
    prices = np.where(allowed | (weights == 0), weights, weights * NEVER)
    plain = bool(allowed.all()) and not study.cells.limits
    for _ in range(TRIES):
        found = _local(study, table, run, left, prices)
        blanks = [(int(point.values[K.name]), _blanks(table, point.plan), point.bound) for point in found.points]
        over = np.zeros(len(weights), dtype=np.bool_)
        for _, one, _ in blanks:
            over |= one.blanked() > most
        kept = [
            Solution(k, one, "heuristic", bound if plain else None)
            for k, one, bound in blanks
            if not np.any(one.blanked() > most) and not np.any(one.blanked()[~allowed])
        ]
        if not over.any() or run.stopped:
            break
        prices = np.where(over, prices * DEARER, prices)
    return solutions + kept


def _local(study: Study, table: FrequencyTable, run: Run, ks: Sequence[int], prices: Floats) -> Front:
    """The local recodings of a table whose trees have leaves and a root."""
    settings = study.cells
    columns = {
        name: study.columns[name].model_copy(update={"constrained": True, "breaks": None}) for name in table.columns
    }
    domains = [replace(d, hierarchy=flat(d.name, d.hierarchy.leaves), along_tree=True) for d in table.domains]
    chosen = dict(zip(table.columns, prices.tolist(), strict=True))
    largest = max(chosen.values())
    section = {name: price * min(1.0, 1e6 / largest) for name, price in chosen.items()}
    search = {"k": list(ks), "effort": settings.effort, "passes": settings.passes}
    flattened = study.with_columns(columns).with_settings({"local": search})
    flattened = flattened.with_search(system="local").with_search(weights=section)
    return system_named("local").search(flattened, run, replace(table, domains=tuple(domains)))


def _blanks(table: FrequencyTable, plan: object) -> Blanks:
    """A plan of boxes as blanks: a label is one value, or all of them."""
    if not isinstance(plan, BoxPlan):
        raise TypeError("no plan of boxes")
    masks = [sum(1 << j for j, (first, last) in enumerate(spans) if first != last) for spans in plan.labels]
    members = np.array([entry for entry in plan.members if entry[1] >= 0], dtype=np.int64).reshape(-1, 3)
    mask = np.array(masks, dtype=np.int64)[members[:, 1]]
    return Blanks(table.codes.T.copy(), table.counts, members[:, 0].copy(), mask, members[:, 2].copy()).merged()


def _agreeing(
    study: Study,
    table: FrequencyTable,
    run: Run,
    ks: Sequence[int],
    weights: Floats,
    allowed: Flags,
    most: Counts64,
) -> list[Solution]:
    """The integer program where it is small, else the better of two starts; limits on columns bind both."""
    solutions = [one for one in (_program(study, table, k, weights, allowed, most) for k in ks) if one is not None]
    left = [k for k in ks if k not in {one.k for one in solutions}]
    whole = int(study.cells.blank_records * table.rows)
    strict = _strict(study, table, run, left, weights, allowed, most) if left else []
    for k in left:
        first = supported(table.codes.T.copy(), table.counts, k, weights, allowed)
        if first is None:
            continue
        starts = [one.blanks for one in strict if one.k >= k]
        quick = completed(first, k, weights, allowed, whole)
        starts += [] if quick is None else [quick]
        tried = [restored(start, k, weights) for start in starts]
        fit = [one for one in tried if not np.any(one.blanked() > most) and one.whole <= whole]
        if fit:
            best = min(fit, key=lambda one: one.cost(weights))
            solutions.append(Solution(k, best, "heuristic", first.cost(weights)))
    run.tell(len(ks), len(ks))
    return solutions


def _point(study: Study, table: FrequencyTable, one: Solution, weights: Floats) -> Point:
    blanks = one.blanks
    gone = table.rows - int(blanks.count.sum()) + table.removed
    cost = blanks.cost(weights) + gone * float(weights.sum())
    full = float(weights.sum()) * table.records
    source, released = blanks.agreeing()
    figures = {K.name: int(blanks.sizes().min()), AGREEING: int(min(source.min(), released.min()))}
    reading = study.cells.reading
    name = OBJECTIVES[reading].name
    details = {
        "method": one.method,
        "cells": int(blanks.blanked().sum()),
        "blanked": dict(zip(table.columns, blanks.blanked().tolist(), strict=True)),
        "blank_records": blanks.whole,
        "readings": figures | {"matching": blanks.matching()},
    }
    bound = one.bound
    if bound is not None and bound > 0:
        details["floor"], details["ratio"] = bound / full, cost / bound
    values = {name: float(figures[name]), GENERAL_LOSS.name: cost}
    return Point(0, values, cost / full, gone, plan_of(table, blanks), bound, details)


def _front(points: Sequence[Point], privacy: Objective) -> list[Point]:
    """Without those that cost no less than one of a higher k."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (-p.values[privacy.name], p.loss)):
        if not kept or point.loss < kept[-1].loss - 1e-12:
            kept.append(point)
    return kept


def plan_of(table: FrequencyTable, blanks: Blanks) -> BoxPlan:
    """Blanks as a plan of boxes: patterns are classes, a blank is the label of all values."""
    ends = [(d.hierarchy.leaves[d.order[0]], d.hierarchy.leaves[d.order[-1]]) for d in table.domains]
    owner = np.full(len(blanks.of), -1, dtype=np.int64)
    labels: list[tuple[tuple[str, str], ...]] = []
    for mask in np.unique(blanks.mask).tolist():
        some = np.flatnonzero(blanks.mask == mask)
        keys = keys_of(blanks.codes, mask)[blanks.of[some]]
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        owner[some] = number.reshape(-1) + len(labels)
        for t in blanks.of[some][first].tolist():
            values = [d.labels[table.codes[j, t]] for j, d in enumerate(table.domains)]
            labels.append(tuple(ends[j] if mask >> j & 1 else (v, v) for j, v in enumerate(values)))
    left = blanks.counts - np.bincount(blanks.of, weights=blanks.count, minlength=len(blanks.counts)).astype(np.int64)
    members = [*zip(blanks.of.tolist(), owner.tolist(), blanks.count.tolist(), strict=True)]
    members += [(t, -1, int(left[t])) for t in np.flatnonzero(left > 0).tolist()]
    return BoxPlan(table.columns, tuple(labels), tuple(sorted(members)))
