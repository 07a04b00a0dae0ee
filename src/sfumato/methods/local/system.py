"""The method `local`: classes of at least k records, each with its own labels.

With `draw` the release is a recoding drawn at random among those with a slightly higher loss. An attacker who knows
the method cannot determine which one was drawn. Records are moved between boxes that hold them, while every class keeps
k records and the loss stays within what the front states. First, each class whose labels the downcoding attack narrows
receives, with probability one half, a record that the attack rules out, if another class can spare one. So each claim
of the attack may be wrong. Then records are moved at random until the allowed loss is used. Boxes are fitted at the
end, which can only make them smaller.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Counts64
from sfumato.base.compare import same
from sfumato.base.text import number, percent
from sfumato.decide.pick import Choice
from sfumato.errors import SfumatoError, StudyError
from sfumato.front import Front, Point
from sfumato.measures.registry import GENERAL_LOSS, K
from sfumato.methods.local.apply import apply_boxes
from sfumato.methods.local.criteria import merged_equal
from sfumato.methods.local.model import Cells, Classes, Labels
from sfumato.methods.local.pages import VERIFIER
from sfumato.methods.local.search import model_of, plan_of, search_local
from sfumato.methods.run import Run
from sfumato.methods.shared import BoxSystem, ratio, salt_of, with_acceptances
from sfumato.methods.system import Abilities, Applying, Publishing
from sfumato.plans.boxes import BoxPlan
from sfumato.release.classes import BoxDraft
from sfumato.release.classes_rows import assigned
from sfumato.release.downcoding import CELLS, CLASSES, downcode, values_left
from sfumato.release.draft import Draft, Verifier
from sfumato.release.manifest import Manifest
from sfumato.release.readback import require_source, table_of
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable

MOST_TRIES = 100_000


def _narrowed(classes: Classes) -> tuple[Counts64, npt.NDArray[np.int8]]:
    """Return the classes whose labels the downcoding attack narrows, and the values that it leaves to each class."""
    unit, costs = classes.labels.unit, classes.costs
    if len(costs) > CLASSES:
        return np.zeros(0, np.int64), np.zeros((0, 0), np.int8)
    left, _ = values_left(classes.low, classes.high, costs, unit, CELLS)
    size = np.add.reduceat(left, unit[:-1], axis=1)
    return np.flatnonzero(np.any(size < classes.high - classes.low, axis=1)), left


def randomized(classes: Classes, k: int, slack: float, rng: np.random.Generator) -> Classes:
    """Return the classes after random moves with a total additional cost of at most `slack`, summed over records."""
    cells, low, high, costs = classes.cells, classes.low, classes.high, classes.costs
    cell, owner, count = (list(part[classes.owner >= 0]) for part in (classes.cell, classes.owner, classes.count))
    rows = classes.rows.copy()

    def move(e: int, other: int, number: int) -> None:
        nonlocal slack
        slack -= max(number * float(costs[other] - costs[owner[e]]), 0.0)
        rows[owner[e]] -= number
        rows[other] += number
        count[e] -= number
        cell.append(cell[e])
        owner.append(np.int64(other))
        count.append(np.int64(number))

    starts, (narrowed, left) = classes.labels.unit[:-1], _narrowed(classes)
    tuples, homes = np.array(cell), np.array(owner)
    for c in rng.permutation(narrowed[rng.random(len(narrowed)) < 0.5]).tolist():
        codes = cells.codes[tuples]
        inside = np.all((low[c] <= codes) & (codes < high[c]), axis=1)
        inside &= np.any(left[c][starts + codes] == 0, axis=1) if inside.any() else False
        inside &= (rows[homes] > k) & (costs[c] - costs[homes] <= slack)
        spare = [e for e in np.flatnonzero(inside).tolist() if count[e] > 0]
        if spare:
            move(int(rng.choice(spare)), c, 1)
    for e in rng.permutation(len(tuples))[:MOST_TRIES].tolist():
        own = int(owner[e])
        movable = min(int(rows[own]) - k, int(count[e]))
        if movable < 1:
            continue
        codes = cells.codes[cell[e]]
        holds = np.setdiff1d(np.flatnonzero(np.all((low <= codes) & (codes < high), axis=1)), own)
        number = int(rng.integers(1, movable + 1))
        holds = holds[number * (costs[holds] - costs[own]) <= slack]
        if len(holds):
            move(e, int(rng.choice(holds)), number)
    moved, lost = (np.array(cell), np.array(owner), np.array(count)), np.flatnonzero(classes.owner < 0)
    suppressed = classes.cell[lost], classes.owner[lost], classes.count[lost]
    return Classes.joined(classes.labels, cells, moved, suppressed)


def classes_of(labels: Labels, cells: Cells, plan: BoxPlan) -> Classes:
    """Return a plan as classes with the smallest labels that cover them."""
    of, owner, count = np.array(plan.members, dtype=np.int64).reshape(-1, 3).T
    return Classes.of(labels, cells, of, owner, count)


def drawn_point(front: Front, point: Point, rng: np.random.Generator) -> Point:
    """Return a point with a recoding drawn at random; its loss is at most the one that the front states."""
    study, share = front.study, front.study.local.draw
    table = study.table()
    plan = point.plan
    if not isinstance(plan, BoxPlan) or plan.columns != table.columns:
        raise SfumatoError("the plan and the table differ: nothing was released", expected="a plan of this table")
    segments, labels, cells = model_of(study, table)
    before = assigned(study, table, plan, "")
    classes = classes_of(labels, cells, plan)
    full = sum(study.weights_for(table)) * table.records
    stated = with_margin(_loss(classes, table), share)
    if not same(front.loss_of_source(stated), point.loss) or not same(stated * full, point.values[GENERAL_LOSS.name]):
        raise SfumatoError(
            f"the loss of the plan is not the {point.loss:.10g} that the front promises",
            expected="the figures of the search; nothing was released",
            remedy="search again with this version",
        )
    k = int(point.values[K.name])
    after = merged_equal(randomized(classes, k, share * classes.loss * cells.records, rng))
    loss = _loss(after, table)
    weights = np.array(study.weights_for(table))
    undrawn = downcode(before, weights, k).as_dict()
    values = {K.name: float(after.rows.min()), GENERAL_LOSS.name: loss * full}
    details = {**point.details, "promised": point.loss, "undrawn": undrawn}
    return Point(
        point.id, values, front.loss_of_source(loss), point.suppressed, plan_of(segments, after), point.bound, details
    )


def _loss(classes: Classes, table: FrequencyTable) -> float:
    return (classes.loss * classes.cells.records + table.removed) / table.records


def with_margin(loss: float, share: float) -> float:
    """Return a loss increased by the share that a draw may add, at most 1.

    >>> round(with_margin(0.5, 0.1), 12), with_margin(0.99, 0.1)
    (0.55, 1.0)
    """
    return min(loss * (1.0 + share), 1.0)


def with_margins(front: Front, study: Study) -> Front:
    """Return a front whose losses include the share that a draw may add."""
    points = []
    for point in front.points:
        loss = with_margin(point.loss, study.local.draw)
        more = loss / point.loss if point.loss else 1.0
        values = {**point.values, GENERAL_LOSS.name: point.values[GENERAL_LOSS.name] * more}
        details = dict(point.details)
        if "ratio" in details:
            details["ratio"] = details["ratio"] * more
        points.append(replace(point, values=values, loss=loss, details=details))
    return replace(front, points=tuple(points))


@dataclass(frozen=True)
class Local(BoxSystem):
    """The method whose plans have a label for each class and column, and the class of each record."""

    name: str = "local"
    plans: str = "local recodings"
    verifier: Verifier = VERIFIER
    apply: Callable[[Applying], Draft] | None = apply_boxes
    abilities: ClassVar[Abilities] = Abilities(resumable=True, proves_floor=True, draws=True)
    title = "Local recodings"
    bound = "no recoding with these labels below"
    shown = "which tuples are in which class"

    def front_of(self, study: Study, table: FrequencyTable, run: Run) -> Front:
        settings = study.local
        if settings.draw and table.counts_units:
            raise StudyError(
                "draw under [local] where rows belong to persons or households: it moves single rows between classes",
                expected="draw where rows are persons, or no draw",
                remedy="leave draw out",
            )
        if settings.draw and set(study.search.constraints) - {K.name}:
            raise StudyError(
                "draw under [local] beside constraints on classes, which a drawn recoding may not meet",
                expected="draw, or constraints other than k",
                remedy="leave draw out",
            )
        front = search_local(study, table, run)
        return with_margins(front, study) if settings.draw else front

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        front = choice.front
        seed, point = front.study.local.test_seed, choice.point
        if front.study.local.draw:
            require_source(table_of(front.study), front.fingerprint)
            point = drawn_point(front, point, np.random.default_rng(secrets.randbits(128) if seed is None else seed))
        return BoxDraft.of(with_acceptances(front, how), point, VERIFIER, how.name, how.format, **salt_of(seed))

    def counted(self, manifest: Manifest) -> list[str]:
        return ["classes", number(manifest["own"]["classes"])]

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        points = front.points
        floors = [point.details.get("floor") for point in points]
        return {
            "suppressed": [number(point.suppressed) for point in points],
            "floor": ["–" if floor is None else percent(float(floor)) for floor in floors],
            "loss / floor": [ratio(point) for point in points],
            "classes": [number(len(p.plan.labels)) if isinstance(p.plan, BoxPlan) else "–" for p in points],
        }


SYSTEMS = {"local": Local()}
