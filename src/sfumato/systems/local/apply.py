"""The boxes of a local recoding on another table: each record gets the cheapest box that holds it, if one does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.errors import InputError, UnreachableError
from sfumato.front import Front, Objective, Point
from sfumato.hierarchies import Hierarchy
from sfumato.hierarchies.hierarchy import flat
from sfumato.hierarchies.labels import number
from sfumato.measures.owned import class_table
from sfumato.measures.registry import measure
from sfumato.measures.standard import GENERAL_LOSS, K
from sfumato.plans.boxes import BoxPlan
from sfumato.release import pack
from sfumato.release.boxes.assigned import Assigned, assigned
from sfumato.release.boxes.draft import BoxDraft
from sfumato.release.boxes.labels import BoxColumn, Run
from sfumato.release.draft import Draft
from sfumato.release.policy import acceptances
from sfumato.release.sources import reading, require_source, table_of
from sfumato.release.verify import study_of
from sfumato.sources.cells import MISSING
from sfumato.sources.engines.engine import open_engine
from sfumato.study import Study, read, without_trees
from sfumato.systems.applying import Applying, Unseen, handed_down, limit_warnings, unknown, unseen_values
from sfumato.systems.local.criteria import limits_of
from sfumato.systems.local.fitting import fitted_classes
from sfumato.systems.local.pages import pages_of
from sfumato.systems.registry import load_front
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True, eq=False)
class Moved:
    """A column on another table: its values in order, and where the runs of the plan stand among them."""

    values: tuple[str, ...]
    runs: Mapping[Run, Run]


def apply_boxes(given: Applying) -> Draft:
    """The release of another table by the classes of a release, or of a point of a front."""
    saved = saved_boxes(given.folder, given.point, given.run)
    plan = saved.plan
    kept, inherited = handed_down(given.folder, saved.study)
    study = reading(kept, given.table).with_engine(given.engine, given.options)
    trees = {column.name: flat(column.name, column.values) for column in plan.columns}
    with open_engine(study.engine, study.engine_options) as engine:
        strange = unseen_values(engine, study.source(), study, trees)
    if strange and given.unseen == "error":
        raise unknown(strange)
    more = {one.column: one.values for one in strange}
    moved = [_moved(column, more.get(column.name, ()), study) for column in plan.columns]
    study = _ordered(study, plan, moved).with_accepted(acceptances(given.accept))
    trees = {c.name: flat(c.name, m.values) for c, m in zip(plan.columns, moved, strict=True)}
    table = study.table(trees={**saved.trees, **trees}, distances=saved.distances)
    front, earlier = _front(study, table, plan, moved, saved.k)
    noted = [*_noted(strange), *limit_warnings(study, front)]
    return BoxDraft.of(front, front.points[0], pages_of, given=table, earlier=earlier, noted=noted, inherited=inherited)


@dataclass(frozen=True, eq=False)
class Saved:
    """The classes of a release or of a point, the study that they are of, k, and what sensitive columns need."""

    plan: Assigned
    study: Study
    k: int
    trees: Mapping[str, Hierarchy]
    distances: Mapping[str, str]


def saved_boxes(folder: Path, point: int | None, run: str | Path | None) -> Saved:
    """The plan of a release folder, or of a point of a front's folder."""
    if (folder / pack.MANIFEST).is_file():
        manifest = pack.read_manifest(folder)
        if point is not None and point != manifest["point"]["id"]:
            raise InputError(
                f"the release is point {manifest['point']['id']}, not {point}", expected="the point that was published"
            )
        trees = pack.load_hierarchies(folder, manifest["hierarchies"])
        released = read(folder / pack.RUN).columns
        distances = {name: column.distance for name, column in released.items() if column.distance is not None}
        k = int(manifest["point"]["values"][K.name])
        return Saved(Assigned.load(folder), without_trees(study_of(manifest)), k, trees, distances)
    front = load_front(folder, run)
    if point is None:
        raise InputError("a front has many plans", expected=f"a point from 0 to {len(front.points) - 1}")
    require_source(table_of(front.study), front.fingerprint, remedy="apply a release folder instead")
    chosen = front.point(point)
    if not isinstance(chosen.plan, BoxPlan):
        raise InputError("the point has no classes of its own", expected="a front of local recodings")
    table = front.study.table()
    plan = assigned(front.study, table, chosen.plan, "")
    return Saved(plan, front.study, int(chosen.values[K.name]), {}, pack.distances_of(table))


def _moved(column: BoxColumn, unseen: Sequence[str], study: Study) -> Moved:
    """The values with those that the plan does not know: numbers in their order, others behind all.

    A number inside a range is in it, seen before or not; any other value is only in the label of all values.
    """
    plain = [value for value in column.values if value != MISSING]
    decimal = study.source().decimal
    sizes = {value: number(value, decimal) for value in (*plain, *unseen)}
    ranges = not column.nodes and all(size is not None for size in sizes.values())
    ordered = plain == sorted(plain, key=lambda value: sizes[value] or 0.0) if ranges else False
    values = [*plain, *unseen]
    if ranges and ordered:
        values = sorted(values, key=lambda value: sizes[value] or 0.0)
    position = {value: at for at, value in enumerate(values)}
    runs: dict[Run, Run] = {}
    for low, high in column.labels:
        held = [value for value in column.values[low:high] if value != MISSING]
        if high - low == len(column.values):
            runs[low, high] = 0, len(values) + 1  # missing values stand behind all, where the table has some
        elif not held:
            runs[low, high] = len(values), len(values) + 1
        else:
            runs[low, high] = position[held[0]], position[held[-1]] + 1
    return Moved(tuple(values), runs)


def _ordered(study: Study, plan: Assigned, moved: Sequence[Moved]) -> Study:
    """The study with the values of each column in the order of the plan, and no tree of its own."""
    changed = {}
    for column, new in zip(plan.columns, moved, strict=True):
        update = {"hierarchy": None, "order": new.values, "constrained": None, "breaks": None}
        changed[column.name] = study.columns[column.name].model_copy(update=update)
    return study.with_columns(changed)


def _front(
    study: Study, table: FrequencyTable, plan: Assigned, moved: Sequence[Moved], k: int
) -> tuple[Front, dict[str, dict[Run, str]]]:
    """A front of one point: the boxes that hold at least k records of the new table; and the labels they had."""
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
    position = [np.argsort(np.array(domain.order)) for domain in table.domains]
    codes = np.stack([own[c] for own, c in zip(position, table.codes, strict=True)]).astype(np.int32)
    weights = np.array(study.weights_for(table))
    leaves = np.array([max(len(domain.order) - 1, 1) for domain in table.domains])
    costs = ((high - low - 1) / leaves) @ weights
    limits = limits_of(study)
    if table.units is not None or table.households is not None:  # whole tuples, each class with k persons
        limits = [(measure(K.name), float(k)), *limits]
    of, owner, count = fitted_classes(codes, table, low, high, costs, k, limits)
    kept = owner >= 0
    used, number_of = np.unique(owner[kept], return_inverse=True)
    if not len(used):
        raise UnreachableError(
            f"no class of the plan holds {k} records of the table", expected="a table like the one of the plan"
        )
    labels = tuple(
        tuple((_value(table, j, low[i, j]), _value(table, j, high[i, j] - 1)) for j in range(len(moved))) for i in used
    )
    place = np.full(len(owner), -1, dtype=np.int64)
    place[kept] = number_of
    members = tuple(zip(of.tolist(), place.tolist(), count.tolist(), strict=True))
    gone = int(count[~kept].sum()) + table.removed
    full = float(weights.sum()) * table.records
    lost = float((costs[owner[kept]] * count[kept]).sum()) + float(weights.sum()) * gone
    sizes, persons = np.bincount(number_of, weights=count[kept]), None
    if table.units is not None:
        owners = np.full(table.tuples, -1, dtype=np.int64)
        owners[of] = place
        measured = class_table(table, owners, len(used), ())
        sizes, persons = measured.size[measured.kept], measured.suppressed_units
    values = {K.name: float(sizes.min()), GENERAL_LOSS.name: lost}
    boxes, how = BoxPlan(table.columns, labels, members), {"method": "applied"}
    point = Point(0, values, lost / full, gone, boxes, None, how, persons)
    objectives = (Objective(K.name, "max"), Objective(GENERAL_LOSS.name, "min"))
    front = Front(
        study, objectives, (point,), "applied", False, 1, 0, 0.0, table.fingerprint, table.records, system="local",
        units=None if table.units is None else table.units.number,
        found_how="applied from an earlier release",
    )  # fmt: skip
    return front.with_left_out(table.left_out), earlier


def _value(table: FrequencyTable, j: int, position: int) -> str:
    domain = table.domains[j]
    return domain.hierarchy.leaves[domain.order[int(position)]]


def _noted(strange: Sequence[Unseen]) -> list[str]:
    return [
        f"{one.column} has {len(one.values):,} values that the plan does not know, in {one.records:,} records: they are"
        " in a range that holds them, in a class that hides the column, or suppressed."
        for one in strange
    ]
