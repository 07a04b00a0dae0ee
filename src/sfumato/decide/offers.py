"""Candidates: the releases that the recodings of a front give under every suppression, not only the searched one.

A candidate with another suppression has the same recoding and other thresholds, and is measured anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.errors import InputError, UnreachableError
from sfumato.front import Front, Objective, Point
from sfumato.measures.classes import classify
from sfumato.measures.fast_paths import Form
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, WEIGHTED_K, WEIGHTED_L, K, known_measures, measure
from sfumato.measures.suppression import suppress_by_plan
from sfumato.plans.boxes import BoxPlan
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True)
class Offer:
    """A release that could be made: a point's recoding, and the thresholds below which classes are suppressed.

    `searched` says that it is the point itself. Otherwise the recoding is the point's and the suppression is another.
    """

    point: int
    searched: bool
    k: int
    l: int | None
    weighted_k: float | None
    loss: float
    suppressed: int
    suppression: float
    suppress_below: int
    diversity_below: int
    value: float

    def as_dict(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "value"}


@dataclass(frozen=True, eq=False)
class Offers:
    """Candidates as arrays. `l` is -1 if diversity is not known, and `weighted_k` is NaN if class sizes are not."""

    front: Front
    point: Counts64
    searched: Flags
    k: Counts64
    l: Counts64
    weighted_k: Floats
    weighted_l: Floats
    loss: Floats
    suppressed: Counts64
    suppress_below: Counts64
    diversity_below: Counts64

    def __len__(self) -> int:
        return len(self.point)

    @property
    def suppression(self) -> Floats:
        return self.suppressed / self.front.persons

    @cached_property
    def _own(self) -> Mapping[str, Floats]:
        """The objectives of searched points; NaN for a candidate with another suppression."""
        points, names = self.front.points, [objective.name for objective in self.front.objectives]
        known = {name: np.array([point.values[name] for point in points], dtype=np.float64) for name in names}
        return {name: np.where(self.searched, values[self.point], np.nan) for name, values in known.items()}

    def values(self, privacy: Objective) -> Floats:
        """Return the value of an objective for each candidate."""
        if privacy.form is not None:
            return np.asarray(getattr(self, privacy.form), dtype=np.float64)
        return self._own[privacy.name]

    def some(self, which: Flags | Counts64) -> Offers:
        """Return the candidates of a mask or of positions."""
        arrays = {f.name: getattr(self, f.name)[which] for f in fields(self) if f.name != "front"}
        return replace(self, **arrays)

    def at(self, position: int, privacy: Objective) -> Offer:
        """Return the candidate at a position, with its value of an objective."""
        own = {f.name: getattr(self, f.name)[position].item() for f in fields(Offer) if f.name != "value"}
        offer = Offer(**own, value=float(self.values(privacy)[position]))
        l, mean = int(self.l[position]), float(self.weighted_k[position])
        return replace(offer, l=l if l > 0 else None, weighted_k=mean if np.isfinite(mean) else None)


def privacy_objective(front: Front, zero: bool, both: bool) -> Objective:
    """Return the privacy objective of a front, in the form in which its candidates can be compared.

    Weighted k is an objective without suppression only. With suppression, and for k and ℓ together, it is replaced by
    k.
    """
    for objective in front.objectives:
        measure = known_measures()[objective.name]
        if measure.kind != "privacy":
            continue
        form = measure.fast.histogram
        if form is None:
            return objective
        if both or (form.mean and not zero):
            form = Form.DIVERSITY if form is Form.MEAN_DIVERSITY else Form.SIZE
        return Objective.of(form)
    return Objective.of(Form.SIZE)


def offers_of(front: Front, limit: int) -> Offers:
    """Return every candidate that suppresses at most `limit` records, from the class histograms of a front."""
    if front.classes is None:
        return points_of(front)
    known: dict[tuple[int, int, int], int] = {}
    printed = front.study.search.reproduction and front.study.search.problem == 4
    for point, number in zip(front.points, front.recoding_of, strict=True):
        plan = point.recoding_plan
        k, l, gone = front.classes.of(number).achieved(plan.suppress_below, plan.diversity_below)
        if gone == point.suppressed and not printed:
            known.setdefault((number, k, l), point.id)
    options = [front.classes.of(number).options(limit) for number in range(len(front.classes))]
    recoding = np.repeat(np.arange(len(options)), [len(each.k) for each in options])
    size, diversity = np.concatenate([each.k for each in options]), np.concatenate([each.l for each in options])
    keys = zip(recoding.tolist(), size.tolist(), diversity.tolist(), strict=True)
    own = np.array([known.get(key, -1) for key in keys], dtype=np.int64)
    first = np.unique(front.recoding_of, return_index=True)[1]  # the first point of each recoding
    loss = np.array(front.loss_of_source(np.concatenate([each.loss for each in options])))
    loss[own >= 0] = [front.points[position].loss for position in own[own >= 0]]
    diverse = front.classes.diverse
    return Offers(
        front,
        np.where(own >= 0, own, first[recoding]),
        own >= 0,
        size,
        diversity if diverse else np.full(len(own), -1),
        np.concatenate([each.weighted_k for each in options]),
        np.concatenate([each.weighted_l for each in options]) if diverse else np.full(len(own), np.nan),
        loss,
        np.concatenate([each.suppressed for each in options]),
        np.concatenate([each.suppress_below for each in options]),
        np.concatenate([each.diversity_below for each in options]),
    )


def points_of(front: Front) -> Offers:
    """Return the points of a front as candidates. Figures that need class histograms are unknown without them."""
    points = front.points
    # A recoding suppresses classes below a size and a diversity. Where single records are suppressed, both are 0.
    plans = [None if isinstance(point.plan, BoxPlan) else point.recoding_plan for point in points]
    size = np.array([0 if plan is None else plan.suppress_below for plan in plans], dtype=np.int64)
    least = np.array([0 if plan is None else plan.diversity_below for plan in plans], dtype=np.int64)

    def figure(name: str, unknown: Sequence[float]) -> Floats:
        return np.array([p.values.get(name, other) for p, other in zip(points, unknown, strict=True)], dtype=np.float64)

    k, l = figure(K.name, size.tolist()), figure(DISTINCT_L.name, least.tolist())
    unknown = [np.nan] * len(points)
    if front.classes is not None:
        numbers = zip(front.recoding_of, size.tolist(), least.tolist(), strict=True)
        stated = np.array([front.classes.of(number).achieved(*below) for number, *below in numbers])
        # Suppression by a further criterion leaves at least the size and diversity of the thresholds.
        same = stated[:, 2] == [point.suppressed for point in points]
        k = np.where(same, stated[:, 0], k)
        l = np.where(same, stated[:, 1] if front.classes.diverse else -1, l)
    return Offers(
        front,
        np.arange(len(points)),
        np.ones(len(points), dtype=np.bool_),
        k.astype(np.int64),
        np.where(l > 0, l, -1).astype(np.int64),
        figure(WEIGHTED_K.name, unknown),
        figure(WEIGHTED_L.name, unknown),
        np.array([point.loss for point in points], dtype=np.float64),
        np.array([front.suppressed_count(point) for point in points], dtype=np.int64),
        size,
        least,
    )


def with_suppression(
    front: Front, number: int, suppress_below: int, diversity_below: int = 0, table: FrequencyTable | None = None
) -> Front:
    """Return the front with other suppression thresholds for one point, which is measured anew.

    The point can be published like any other. It was not found by the search, so the front no longer counts as exact.
    """
    point = front.point(number)
    before = point.recoding_plan
    for name, value in (("suppress_below", suppress_below), ("diversity_below", diversity_below)):
        if value < 0:
            raise InputError(f"{name} is {value}", expected="a whole number from 0")
    if (suppress_below, diversity_below) == (before.suppress_below, before.diversity_below):
        return front
    table = front.study.table() if table is None else table
    if diversity_below > 1 and not table.sensitive:
        raise InputError("no column is sensitive", expected="a sensitive column for diversity_below")
    plan = replace(before, suppress_below=suppress_below, diversity_below=diversity_below)
    weights = front.study.weights_for(table)
    whole = classify(table, plan.recoding(table), weights)
    classes = suppress_by_plan(whole, plan, front.study.measures)
    if not classes.kept.any():
        raise UnreachableError(
            f"no class of point {number} has at least {suppress_below} records and {diversity_below} sensitive values",
            expected="thresholds that leave something to release",
            remedy=f"suppress_below of at most {int(whole.size.max())}",
        )
    given = {objective: measure(objective.name).with_settings(front.study.measures) for objective in front.objectives}
    values = {objective.name: objective.value(measured, classes) for objective, measured in given.items()}
    loss = GENERAL_LOSS.value(classes) / (sum(weights) * table.records)
    units = None if table.units is None else classes.suppressed_units
    changed = Point(
        number, values, float(front.loss_of_source(loss)), classes.suppressed_rows, plan, suppressed_units=units
    )
    points = (*front.points[:number], changed, *front.points[number + 1 :])
    return replace(front, points=points, exact=False, classes=None)
