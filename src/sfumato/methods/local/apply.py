"""Apply the classes of a local recoding to another table: each record joins the cheapest box that can hold it.

The boxes of the release are decided from the cheapest to the most expensive. Each takes all remaining records inside
it if these are at least k and satisfy the criteria. The records that are left can still fill an empty box, cheapest
box first, with records that other boxes do not need. An augmenting path of boxes supplies these records. The result
depends on the boxes and on the new table alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.data.cells import MISSING
from sfumato.data.engine import open_engine
from sfumato.errors import InputError, UnreachableError
from sfumato.front import Front, Point
from sfumato.hierarchies import Hierarchy
from sfumato.hierarchies.hierarchy import flat
from sfumato.hierarchies.labels import number
from sfumato.measures.registry import GENERAL_LOSS, K, measure
from sfumato.measures.units import class_table
from sfumato.methods.apply import (
    UnknownValues,
    inherited_acceptances,
    limit_warnings,
    unknown_error,
    unknown_values,
)
from sfumato.methods.local.criteria import Limits, limits_of, violating
from sfumato.methods.local.pages import VERIFIER
from sfumato.methods.registry import load_front
from sfumato.methods.shared import K_AND_LOSS, persons_in
from sfumato.methods.system import Applying
from sfumato.plans.boxes import BoxPlan
from sfumato.release.classes import BoxDraft
from sfumato.release.classes_labels import BoxColumn, Run
from sfumato.release.classes_rows import Assigned, assigned
from sfumato.release.draft import Draft
from sfumato.release.manifest import MANIFEST, RUN, distances_of, load_hierarchies, read_manifest
from sfumato.release.policy import acceptances
from sfumato.release.readback import reading, require_source, table_of
from sfumato.release.verify import study_of
from sfumato.study import Study, read, without_trees
from sfumato.tables.frequency import FrequencyTable

Hashes = npt.NDArray[np.uint64]
WORK_LIMIT = 1_000_000_000  # pairs of a tuple and a box visited for the records that are left
ROUNDS = 20
CHAIN_LIMIT = 100  # boxes in one search for an augmenting path


def assign_to_boxes(
    codes: Codes, table: FrequencyTable, low: Counts64, high: Counts64, costs: Floats, k: int, limits: Limits
) -> tuple[Counts64, Counts64, Counts64]:
    """Assign tuples to boxes, as (tuple, box, records) with box -1 for records that no box holds.

    With limits all records of a tuple stay together, because only then the sensitive values of a class are known.
    """
    usable = np.flatnonzero(np.all(low < high, axis=1))
    if len(usable):  # boxes with the same contents in the new table are merged
        usable = usable[np.unique(np.concatenate([low, high], axis=1)[usable], axis=0, return_index=True)[1]]
    order = usable[np.lexsort((usable, costs[usable]))]
    low, high = low[order], high[order]
    sort, first, last = _spans(codes, low, high)
    codes, counts = np.ascontiguousarray(codes[:, sort]), table.counts[sort].astype(np.int64)
    # A hash for each tuple, so that sums of hashes identify sets of tuples.
    keys = np.random.default_rng(0).integers(1, 1 << 63, table.tuples, dtype=np.uint64)
    refused = np.zeros(len(order), np.uint64)
    while True:  # the first failing box stays refused, so every round decides at least one box
        owner, offered = cheapest_first(codes, counts, low, high, first, last, k, keys, refused)
        fails = _failing_boxes(table, sort, owner, limits)
        if not len(fails):
            break
        refused[fails] = offered[fails]
    whole = np.arange(table.tuples), owner, counts
    of, box, count = whole
    closed, work = np.zeros(len(order), np.bool_), WORK_LIMIT
    for _ in range(ROUNDS if (owner < 0).any() else 0):
        of, box, count, work = fill_boxes(codes, counts, low, high, first, last, owner, k, not limits, closed, work)
        fails = _failing_boxes(table, sort, box, limits)
        if not len(fails):
            break
        closed[fails] = True
        of, box, count = whole
    there = count > 0
    box = np.where(box >= 0, order[box] if len(order) else -1, -1)
    pairs, which = np.unique(np.stack([sort[of], box])[:, there], axis=1, return_inverse=True)
    return pairs[0], pairs[1], np.bincount(which.reshape(-1), weights=count[there]).astype(np.int64)


def _spans(codes: Codes, low: Counts64, high: Counts64) -> tuple[Counts64, Counts64, Counts64]:
    """Sort tuples by the most selective column, and return the span of sorted tuples that can be in each box."""
    best: tuple[Counts64, Counts64, Counts64] | None = None
    for j, own in enumerate(codes):
        sort = np.argsort(own, kind="stable")
        first, last = np.searchsorted(own[sort], low[:, j]), np.searchsorted(own[sort], high[:, j])
        if best is None or int((last - first).sum()) < int((best[2] - best[1]).sum()):
            best = sort, first, last
    return best or (np.arange(codes.shape[1]), np.zeros(len(low), np.int64), np.zeros(len(low), np.int64))


def _failing_boxes(table: FrequencyTable, sort: Counts64, owner: Counts64, limits: Limits) -> Counts64:
    """Return the boxes that violate a limit; no tuple is divided."""
    used, number_of = np.unique(owner[owner >= 0], return_inverse=True)
    if not limits or not len(used):
        return np.empty(0, dtype=np.int64)
    local = np.full(len(owner), -1, dtype=np.int64)
    local[sort[owner >= 0]] = number_of
    return np.asarray(used[violating(limits, class_table(table, local, len(used), ()))[: len(used)]])


@compiled
def holds(codes: Codes, low: Counts64, high: Counts64, t: int, i: int) -> bool:
    """Return whether box i contains tuple t."""
    j = 0
    while j < codes.shape[0] and low[i, j] <= codes[j, t] < high[i, j]:
        j += 1
    return bool(j == codes.shape[0])


@compiled
def cheapest_first(
    codes: Codes,
    counts: Counts64,
    low: Counts64,
    high: Counts64,
    first: Counts64,
    last: Counts64,
    k: int,
    keys: Hashes,
    refused: Hashes,
) -> tuple[Counts64, Hashes]:
    """Assign each tuple to a box (-1: none): each box in turn takes all tuples left in it if they have k records.

    A box does not take a set of tuples that it was refused for. Also return a hash of the set that each box was
    offered.
    """
    owner = np.full(codes.shape[1], -1, np.int64)
    offered = np.zeros(len(low), np.uint64)
    for i in range(len(low)):
        rows = 0
        for t in range(first[i], last[i]):
            if owner[t] < 0 and holds(codes, low, high, t, i):
                rows += counts[t]
                offered[i] += keys[t]
        if rows < k or offered[i] == refused[i]:
            continue
        for t in range(first[i], last[i]):
            if owner[t] < 0 and holds(codes, low, high, t, i):
                owner[t] = i
    return owner, offered


@compiled
def fill_boxes(
    codes: Codes,
    counts: Counts64,
    low: Counts64,
    high: Counts64,
    first: Counts64,
    last: Counts64,
    owner: Counts64,
    k: int,
    divide: bool,
    closed: Flags,
    work: int,
) -> tuple[Counts64, Counts64, Counts64, int]:
    """Fill empty boxes for tuples that no box holds, and keep those that reach k; return entries and work left.

    Boxes that are `closed` stay as they are. Tuples are divided only if `divide` is set. `after` links the entries of
    a tuple.
    """
    of, box, count = [t for t in range(len(owner))], [o for o in owner], [c for c in counts]  # noqa: C416
    after = [-1 for _ in owner]
    rows = np.zeros(len(low), np.int64)
    for t in range(len(owner)):
        if owner[t] >= 0:
            rows[owner[t]] += counts[t]
    for i in range(len(low)):
        if rows[i] > 0 or closed[i] or work <= 0:
            continue
        work -= last[i] - first[i]
        log = [(0, 0, 0) for _ in range(0)]
        for t in range(first[i], last[i]):
            if box[t] < 0 and holds(codes, low, high, t, i):  # a tuple without a box is moved as one
                move(of, box, count, after, rows, log, t, i, count[t])
        while 0 < rows[i] < k and work > 0:
            found, work = augment(
                codes, low, high, first, last, of, box, count, after, rows, log, i, k, divide, closed, work
            )
            if not found:
                break
        if rows[i] < k:
            undo(box, count, rows, log)
    return np.array(of), np.array(box), np.array(count), work


@compiled
def move(
    of: list[int],
    box: list[int],
    count: list[int],
    after: list[int],
    rows: Counts64,
    log: list[tuple[int, int, int]],
    e: int,
    to: int,
    amount: int,
) -> None:
    """Move records of an entry to a box, and log the move so that it can be rolled back."""
    if box[e] >= 0:
        rows[box[e]] -= amount
    rows[to] += amount
    if amount == count[e]:
        log.append((e, box[e], -1))
        box[e] = to
    else:
        log.append((len(of), box[e], e))
        count[e] -= amount
        of.append(of[e])
        box.append(to)
        count.append(amount)
        after.append(after[e])
        after[e] = len(of) - 1


@compiled
def undo(box: list[int], count: list[int], rows: Counts64, log: list[tuple[int, int, int]]) -> None:
    """Roll back all moves of a log. An entry that a move split off remains, without records."""
    for place in range(len(log) - 1, -1, -1):
        e, before, source = log[place]
        rows[box[e]] -= count[e]
        if before >= 0:
            rows[before] += count[e]
        box[e] = before
        if source >= 0:
            count[source] += count[e]
            count[e] = 0


@compiled
def augment(
    codes: Codes,
    low: Counts64,
    high: Counts64,
    first: Counts64,
    last: Counts64,
    of: list[int],
    box: list[int],
    count: list[int],
    after: list[int],
    rows: Counts64,
    log: list[tuple[int, int, int]],
    i: int,
    k: int,
    divide: bool,
    closed: Flags,
    work: int,
) -> tuple[bool, int]:
    """Move a record, or a tuple, into box i along the shortest augmenting path of boxes.

    The first box of the path has a record to spare; of several such boxes the most expensive one is used.
    """
    leaving, to, found_at = np.full(len(low), -1), np.full(len(low), -1), np.full(len(low), -1)
    lack = np.ones(len(low), np.int64)
    queue = [i]
    found_at[i] = 0
    at = 0
    while at < min(len(queue), CHAIN_LIMIT) and work > 0:
        x, best = queue[at], -1
        at += 1
        work -= last[x] - first[x]
        for t in range(first[x], last[x]):
            e = t if holds(codes, low, high, t, x) else -1
            while e >= 0:
                y, amount = box[e], min(count[e], 1) if divide else count[e]
                if y >= 0 and not closed[y] and amount >= lack[x] and (found_at[y] < 0 or found_at[y] == at):
                    short = k - rows[y] + amount
                    if short <= 0:
                        best = e if best < 0 or y > box[best] else best
                    elif found_at[y] < 0 or short < lack[y]:
                        if found_at[y] < 0:
                            queue.append(y)
                        found_at[y], leaving[y], to[y], lack[y] = at, e, x, short
                e = after[e]
        if best >= 0:
            move(of, box, count, after, rows, log, best, x, 1 if divide else count[best])
            while x != i:
                e, x = leaving[x], to[x]
                move(of, box, count, after, rows, log, e, x, 1 if divide else count[e])
            return True, work
    return False, work


@dataclass(frozen=True, eq=False)
class NewColumn:
    """A column of another table: its values in order, and the position of the plan's labels among them."""

    values: tuple[str, ...]
    runs: Mapping[Run, Run]


def apply_boxes(given: Applying) -> Draft:
    """Return the draft of another table, recoded by the classes of a release or of a point of a front."""
    saved = saved_classes(given.folder, given.point, given.run)
    plan = saved.plan
    kept, inherited = inherited_acceptances(given.folder, saved.study)
    study = reading(kept, given.table).replace(engine=given.engine, engine_options=given.options)
    trees = {column.name: flat(column.name, column.values) for column in plan.columns}
    with open_engine(study.engine, study.engine_options) as engine:
        unknown = unknown_values(engine, study.source(), study, trees)
    if unknown and given.unseen == "error":
        raise unknown_error(unknown)
    more = {one.column: one.values for one in unknown}
    moved = [_new_column(column, more.get(column.name, ()), study) for column in plan.columns]
    study = _ordered(study, plan, moved).with_accepted(acceptances(given.accept))
    trees = {c.name: flat(c.name, m.values) for c, m in zip(plan.columns, moved, strict=True)}
    table = study.table(trees={**saved.trees, **trees}, distances=saved.distances)
    low, high, earlier = _boxes_on(table, plan, moved)
    front = _front(study, table, low, high, saved.k)
    noted = [*_warnings(unknown), *limit_warnings(study, front)]
    return BoxDraft.of(front, front.points[0], VERIFIER, given=table, earlier=earlier, noted=noted, inherited=inherited)


@dataclass(frozen=True, eq=False)
class SavedClasses:
    """Saved classes with the study that they belong to, k, and the trees and distances of sensitive columns."""

    plan: Assigned
    study: Study
    k: int
    trees: Mapping[str, Hierarchy]
    distances: Mapping[str, str]


def saved_classes(folder: Path, point: int | None, run: str | Path | None) -> SavedClasses:
    """Return the classes of a release folder, or of a point in a front's folder."""
    if (folder / MANIFEST).is_file():
        manifest = read_manifest(folder)
        if point is not None and point != manifest["point"]["id"]:
            raise InputError(
                f"the release is point {manifest['point']['id']}, not {point}", expected="the point that was published"
            )
        trees = load_hierarchies(folder, manifest["hierarchies"])
        released = read(folder / RUN).columns
        distances = {name: column.distance for name, column in released.items() if column.distance is not None}
        k = int(manifest["point"]["values"][K.name])
        return SavedClasses(Assigned.load(folder), without_trees(study_of(manifest)), k, trees, distances)
    front = load_front(folder, run)
    if point is None:
        raise InputError("a front has many plans", expected=f"a point from 0 to {len(front.points) - 1}")
    require_source(table_of(front.study), front.fingerprint, remedy="apply a release folder instead")
    chosen = front.point(point)
    if not isinstance(chosen.plan, BoxPlan):
        raise InputError("the point has no classes of its own", expected="a front of local recodings")
    table = front.study.table()
    plan = assigned(front.study, table, chosen.plan, "")
    return SavedClasses(plan, front.study, int(chosen.values[K.name]), {}, distances_of(table))


def _new_column(column: BoxColumn, unseen: Sequence[str], study: Study) -> NewColumn:
    """Return the values of a column with the unknown ones: numbers in order, other values after all known ones.

    A number inside a range belongs to it, even if the plan never had it. Any other unknown value belongs only to the
    label of all values.
    """
    plain = [value for value in column.values if value != MISSING]
    values, decimal = [*plain, *unseen], study.source().decimal
    sizes = {value: number(value, decimal) for value in values}
    if not column.nodes and all(size is not None for size in sizes.values()):
        known, every = (sorted(some, key=lambda value: sizes[value] or 0.0) for some in (plain, values))
        values = every if plain == known else values
    position = {value: at for at, value in enumerate(values)}
    runs: dict[Run, Run] = {}
    for low, high in column.labels:
        held = [value for value in column.values[low:high] if value != MISSING]
        if high - low == len(column.values):
            runs[low, high] = 0, len(values) + 1  # missing values come last, if the table has any
        elif not held:
            runs[low, high] = len(values), len(values) + 1
        else:
            runs[low, high] = position[held[0]], position[held[-1]] + 1
    return NewColumn(tuple(values), runs)


def _ordered(study: Study, plan: Assigned, moved: Sequence[NewColumn]) -> Study:
    """Return the study with the values of each column in the order of the plan, and without a hierarchy."""
    plain: dict[str, object] = {"hierarchy": None, "constrained": None, "breaks": None}
    orders = {column.name: {"order": new.values} for column, new in zip(plan.columns, moved, strict=True)}
    changed = {name: study.columns[name].model_copy(update=plain | order) for name, order in orders.items()}
    return study.replace(columns=changed)


def _boxes_on(
    table: FrequencyTable, plan: Assigned, moved: Sequence[NewColumn]
) -> tuple[Counts64, Counts64, dict[str, dict[Run, str]]]:
    """Return the boxes of a plan as runs of the table's values, and the labels that these had before."""
    low, high = np.empty_like(plan.low), np.empty_like(plan.high)
    earlier: dict[str, dict[Run, str]] = {}
    for j, (column, new, domain) in enumerate(zip(plan.columns, moved, table.domains, strict=True)):
        size = len(domain.order)
        runs = {old: (min(run[0], size), min(run[1], size)) for old, run in new.runs.items()}
        pairs = [runs[pair] for pair in zip(plan.low[:, j].tolist(), plan.high[:, j].tolist(), strict=True)]
        low[:, j], high[:, j] = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        earlier[column.name] = {
            runs[old]: label
            for old, label in column.labels.items()
            if label is not None and runs[old][0] < runs[old][1]
        }
    return low, high, earlier


def _front(study: Study, table: FrequencyTable, low: Counts64, high: Counts64, k: int) -> Front:
    """Return a front of one point with the boxes that hold at least k records."""
    position = [np.argsort(np.array(domain.order)) for domain in table.domains]
    codes = np.stack([own[c] for own, c in zip(position, table.codes, strict=True)]).astype(np.int32)
    values = [[domain.hierarchy.leaves[leaf] for leaf in domain.order] for domain in table.domains]
    weights = np.array(study.weights_for(table))
    leaves = np.array([max(len(domain.order) - 1, 1) for domain in table.domains])
    costs = ((high - low - 1) / leaves) @ weights
    limits = limits_of(study)
    if table.counts_units:  # whole tuples, and k counts persons
        limits = [(measure(K.name), float(k)), *limits]
    of, owner, count = assign_to_boxes(codes, table, low, high, costs, k, limits)
    kept = owner >= 0
    used, number_of = np.unique(owner[kept], return_inverse=True)
    if not len(used):
        raise UnreachableError(
            f"no class of the plan holds {k} records of the table", expected="a table like the one of the plan"
        )
    runs_of = (zip(values, low[i].tolist(), high[i].tolist(), strict=True) for i in used)
    labels = tuple(tuple((own[first], own[end - 1]) for own, first, end in runs) for runs in runs_of)
    place = np.full(len(owner), -1, dtype=np.int64)
    place[kept] = number_of
    members = tuple(zip(of.tolist(), place.tolist(), count.tolist(), strict=True))
    gone = int(count[~kept].sum()) + table.removed
    full = float(weights.sum()) * table.records
    lost = float((costs[owner[kept]] * count[kept]).sum()) + float(weights.sum()) * gone
    boxes = BoxPlan(table.columns, labels, members)
    least, persons = int(np.bincount(number_of, weights=count[kept]).min()), None
    if table.units is not None:
        least, persons = persons_in(table, boxes)
    figures, how = {K.name: float(least), GENERAL_LOSS.name: lost}, {"method": "applied"}
    point = Point(0, figures, lost / full, gone, boxes, None, how, persons)
    front = Front(
        study, K_AND_LOSS, (point,), "applied", False, 1, 0, 0.0, table.fingerprint, table.records, system="local",
        units=None if table.units is None else table.units.number,
        found_how="applied from an earlier release",
    )  # fmt: skip
    return front.with_left_out(table.left_out)


def _warnings(unknown: Sequence[UnknownValues]) -> list[str]:
    return [
        f"{one.column} has {len(one.values):,} values that the plan does not know, in {one.records:,} records: they are"
        " in a range that holds them, in a class that hides the column, or suppressed."
        for one in unknown
    ]
