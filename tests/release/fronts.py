"""Fronts made by hand, and small tables with odd corners."""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.decide.pick import Choice
from sfumato.front import Front, Objective, Point
from sfumato.measures.classes import classify
from sfumato.measures.suppression import suppress_within
from sfumato.plans.recodings import LevelPlan
from sfumato.release.readback import loss_of, measures_of
from sfumato.study.sections import PolicySettings

NAMES = ("k", "general_loss")
WHY = "a table made for a test"
ANYTHING = PolicySettings(
    k=1, l=1, t=1, left_out=1, uniques=1, identifying=1, reason=WHY, accept=[{"rule": "raw", "reason": WHY}]
)


def front_of(
    study: sf.Study,
    plans: Sequence[Mapping[str, int]],
    most: int = 0,
    names: Sequence[str] = NAMES,
    *,
    anything: bool = True,
) -> Front:
    """A front with the given plans, measured on the frequency table; with `anything` no policy stands in its way."""
    if anything and study.policy == PolicySettings():
        study = study.model_copy(update={"policy": ANYTHING})
    table, measures = study.table(), measures_of(study)
    points = []
    for number, levels in enumerate(plans):
        classes = classify(table, LevelPlan(levels).recoding(table), study.weights_for(table))
        if most:
            classes = suppress_within(classes, most)
        below = int(classes.size[classes.kept].min()) if classes.suppressed.any() else 0
        values = {name: measures[name].value(classes) for name in names}
        points.append(Point(number, values, loss_of(classes), classes.suppressed_rows, LevelPlan(levels, below)))
    objectives = tuple(Objective(name, measures[name].direction) for name in names)
    front = Front(
        study, objectives, tuple(points), "exact", True, len(points), 100, 0.1, table.fingerprint, table.records
    )
    return replace(front, left_out=table.left_out)


def write_csv(path: Path, rows: Sequence[Sequence[Any]], separator: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)
    return path


def people(rows: int = 200, seed: int = 7) -> list[list[Any]]:
    """A header and rows: a name, an age, a postcode, a sex that may be missing, an illness, an income."""
    rng = random.Random(seed)
    found: list[list[Any]] = [["name", "age", "post code", "sex", "ill", "income"]]
    for number in range(rows):
        age = rng.choice([*range(20, 60), 97 if number == 0 else 30])
        sex = rng.choice(["F", "M", "M", "?"] if number % 9 == 0 else ["F", "M"])
        post = f"{rng.randint(10, 13)}{rng.randint(0, 9)}"
        found.append(
            [f"p{number}", age, post, sex, rng.choice(["flu", "cold", "gout"]), rng.randint(100, 900) // 10 * 10]
        )
    return found


def small(folder: Path, missing: str = "category", rows: int = 200, **columns: dict[str, Any]) -> sf.Study:
    """A study of such people with hierarchies that are built from the values."""
    write_csv(folder / "people.csv", people(rows))
    declared: dict[str, Any] = {
        "name": {"role": "identifier"},
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [10, 20]}},
        "post code": {"role": "quasi_identifier", "hierarchy": {"build": "prefix"}},
        "sex": {"role": "quasi_identifier"},
        "ill": {"role": "sensitive"},
        "income": {"role": "other"},
    }
    data = {"path": str(folder / "people.csv"), "na": ["?"], "missing": missing}
    return sf.Study(data=data, columns=declared | columns)


def publish(front: sf.Front, number: int, folder: Path, **given: Any) -> sf.Release:
    """A point of a front as a release, without a choice."""
    return sf.publish(Choice(front, front.point(number), ""), folder, **given)


def publish_protection(front: sf.Front, folder: Path, point: int | None = None, **given: Any) -> sf.Release:
    """A point of a protection as a release; the chosen one unless given."""
    return publish(front, int(front.details["chosen"]) if point is None else point, folder, **given)
