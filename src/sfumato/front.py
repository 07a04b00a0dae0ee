"""The front: every non-dominated plan that a search found, frozen, with how it was found. Saved as one folder."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.algorithms.dominance import comparable, first_dominator, hypervolume
from sfumato.data.atomic import new_folder
from sfumato.data.frequency import FrequencyTable
from sfumato.data.inputs import note_input
from sfumato.data.json_files import read_json
from sfumato.data.seal import seal
from sfumato.errors import InputError, shortened
from sfumato.measures.histograms import Histogram, Histograms, histograms_of
from sfumato.plans.cuts import CutPlan
from sfumato.plans.plan import Plan, plan_from
from sfumato.study import Study, read_kept
from sfumato.version import __version__

FILES = ("front.parquet", "front.json", "run.toml")
CLASSES = "classes.parquet"  # fronts saved by earlier versions lack it
PACKAGES = ("duckdb", "numba", "numpy", "pyarrow")


@dataclass(frozen=True)
class Objective:
    """A measure, the way that is better, and whether it is of the released table or of the one before suppression."""

    name: str
    direction: str
    taken: str = "released"

    def as_dict(self) -> dict[str, str]:
        """`taken` tells where it is measured, if not on what is released."""
        found = {"name": self.name, "direction": self.direction}
        return found if self.taken == "released" else found | {"taken": self.taken}


@dataclass(frozen=True)
class Point:
    """One plan of a front. `loss` is in [0, 1]; `values` are the measures in their own units."""

    id: int
    values: Mapping[str, float]
    loss: float
    suppressed: int
    plan: Plan

    def as_dict(self) -> dict[str, Any]:
        choices = {name: list(c) if isinstance(c, tuple) else c for name, c in self.plan.choices.items()}
        found: dict[str, Any] = {
            "id": self.id,
            "values": dict(self.values),
            "loss": self.loss,
            "suppressed": self.suppressed,
            "suppress_below": self.plan.suppress_below,
        }
        if isinstance(self.plan, CutPlan) or self.plan.diversity_below:
            found["diversity_below"] = self.plan.diversity_below
        return found | {"plan": choices}


@dataclass(frozen=True)
class Front:
    """Points sorted by the first objective, and what they were found with.

    `exact` says that no plan of the search space dominates any of them; otherwise they are the best found.
    `others` are dominated points that were evaluated, for pictures only.
    """

    study: Study
    objectives: tuple[Objective, ...]
    points: tuple[Point, ...]
    algorithm: str
    exact: bool
    evaluations: int
    space: int
    seconds: float
    fingerprint: str
    rows: int
    certificate: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[Mapping[str, float], ...] = ()
    system: str = "lattice"
    tuples: int = field(default=0, compare=False)
    stages: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)
    classes: Histograms | None = field(default=None, compare=False, repr=False)

    @cached_property
    def recoding_of(self) -> tuple[int, ...]:
        """The recoding of each point, numbered in the order of the points: several may differ in suppression alone."""
        numbers: dict[tuple[Any, ...], int] = {}
        return tuple(numbers.setdefault(tuple(p.plan.choices.values()), len(numbers)) for p in self.points)

    def with_classes(self, table: FrequencyTable) -> Front:
        """The same front with the class histograms of its recodings, which answer other limits of suppression.

        Where missing values match anything, or records were removed before, suppression has no such answers.
        """
        if table.removed or not self.points or any(domain.wildcard for domain in table.domains):
            return self
        first = dict(zip(reversed(self.recoding_of), reversed(self.points), strict=True))
        plans = [first[number].plan for number in range(len(first))]
        return replace(self, classes=histograms_of(table, plans, self.study.search.weights))

    def histogram(self, number: int) -> Histogram | None:
        """The classes of a point's recoding before suppression, if they were kept."""
        return None if self.classes is None else self.classes.of(self.recoding_of[self.point(number).id])

    def point(self, number: int) -> Point:
        """A point by its id."""
        if not 0 <= number < len(self.points):
            raise InputError(f"there is no point {number}", expected=f"an id from 0 to {len(self.points) - 1}")
        return self.points[number]

    @property
    def how(self) -> str:
        """How it was found, in a clause."""
        found = "exact" if self.exact else f"best found with seed {self.study.search.seed}"
        if self.system == "lattice":
            share = self.evaluations / self.space
            what = f"{self.evaluations:,} of {self.space:,} nodes evaluated ({share:.1%})"
        else:
            what = f"{self.evaluations:,} of {float(self.space):.1e} cuts evaluated"
        return ", ".join(dict.fromkeys((found, self.algorithm, what)))  # an exact search need not say so twice

    def as_dict(self) -> dict[str, Any]:
        """The front as `sfumato search --json` prints it."""
        return {
            "system": self.system,
            "algorithm": self.algorithm,
            "exact": self.exact,
            "objectives": [objective.as_dict() for objective in self.objectives],
            "points": [self._told(point) for point in self.points],
            "evaluations": self.evaluations,
            "space": self.space,
            "seconds": self.seconds,
            "certificate": dict(self.certificate),
            "rows": self.rows,
            "fingerprint": self.fingerprint,
            "tuples": self.tuples,
            "stages": [dict(stage) for stage in self.stages],
        }

    def _told(self, point: Point) -> dict[str, Any]:
        """A point with the two parts of its loss beside it."""
        gone = point.suppressed / self.rows
        kept = max(point.loss - gone, 0.0)
        return point.as_dict() | {"generalization_loss": kept, "suppression_loss": gone}

    def save(self, folder: str | Path, replace: bool = False) -> Path:
        """Write the front as a new folder: front.parquet, front.json, the run file. Whole or not at all.

        It is private: its owner alone can read it. With `replace` an earlier front of that name gives way.
        """
        folder = Path(folder).absolute()
        with new_folder(folder, replace=replace and (folder / FILES[1]).is_file()) as inside:
            self._write(inside)
            load_front(inside)  # a front that cannot be read back is none
        return folder

    def _write(self, folder: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        columns: dict[str, list[Any]] = {"id": [point.id for point in self.points]}
        for objective in self.objectives:
            columns[f"value:{objective.name}"] = [point.values[objective.name] for point in self.points]
        columns["loss"] = [point.loss for point in self.points]
        columns["suppressed"] = [point.suppressed for point in self.points]
        columns["suppress_below"] = [point.plan.suppress_below for point in self.points]
        if self.system == "cuts":
            columns["diversity_below"] = [point.plan.diversity_below for point in self.points]
        kind = "level" if self.system == "lattice" else self.system
        for name in self.points[0].plan.choices if self.points else ():
            columns[f"{kind}:{name}"] = [point.plan.choices[name] for point in self.points]
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / "front.parquet")
        about = self.as_dict() | {"others": [dict(other) for other in self.others]}
        about["versions"] = versions(self.study.engine)
        (folder / "front.json").write_text(json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False), "utf-8")
        (folder / "run.toml").write_text(self.study.as_toml(), "utf-8")
        if self.classes is not None and self.classes.readable:
            self.classes.write(folder / CLASSES)
        seal(folder)


def load_front(folder: str | Path, run: str | Path | None = None) -> Front:
    """Read a front back from its folder.

    A folder that this user did not make here is data: what it says can be looked at, and the table that it names is
    not opened. `run` is a run file of one's own, which names the table again.
    """
    folder = Path(folder)
    absent = [name for name in FILES if not (folder / name).is_file()]
    if (folder / "protection.json").is_file():
        raise InputError(
            f"{folder} is the protection of a group, not a front",
            expected="a folder that sfumato search wrote",
            remedy=f"sfumato groups publish {folder} -o release",
        )
    if absent:
        raise InputError(
            f"{folder} is not the folder of a front: it lacks {shortened(absent)}",
            expected="a folder that sfumato search wrote",
        )
    for name in (*FILES, CLASSES):
        note_input(folder / name)
    study = read_kept(folder / "run.toml", run)
    try:
        about = read_json(folder / "front.json", expected="a file that sfumato search wrote")
        points = tuple(_point(about["system"], found) for found in about["points"])
        _check_points(points, about)
        objectives = tuple(Objective(**found) for found in about["objectives"])
        return Front(
            study=study,
            objectives=objectives,
            points=points,
            algorithm=about["algorithm"],
            exact=about["exact"],
            evaluations=about["evaluations"],
            space=about["space"],
            seconds=about["seconds"],
            fingerprint=about["fingerprint"],
            rows=about["rows"],
            certificate=about["certificate"],
            others=tuple(about["others"]),
            system=about["system"],
            tuples=about.get("tuples", 0),
            stages=tuple(about.get("stages", ())),
            classes=Histograms.read(folder / CLASSES) if (folder / CLASSES).is_file() else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OSError, OverflowError, RecursionError) as error:
        raise InputError(f"{folder}/front.json cannot be read", expected="a file that sfumato search wrote") from error


@dataclass(frozen=True)
class Comparison:
    """Two fronts side by side: points, hypervolume as a share of the box around both, and who dominates whom."""

    points: tuple[int, int]
    hypervolume: tuple[float, float]
    dominated: tuple[int, int]
    shared: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "points": list(self.points),
            "hypervolume": list(self.hypervolume),
            "dominated": list(self.dominated),
            "shared": self.shared,
        }


def compare_fronts(one: Front, two: Front) -> Comparison:
    """Compare two fronts over the same objectives of the same table."""
    if one.objectives != two.objectives or one.fingerprint != two.fingerprint:
        raise InputError(
            "the fronts are of different objectives or different tables",
            expected="two fronts of the same study",
            remedy="search both with the same objectives",
        )
    signs = np.array([-1.0 if o.direction == "max" else 1.0 for o in one.objectives])
    values = [comparable(signs * [[p.values[o.name] for o in f.objectives] for p in f.points]) for f in (one, two)]
    both = np.vstack(values)
    low, span = both.min(axis=0), np.ptp(both, axis=0)
    scaled = [(v - low) / np.where(span > 0, span, 1.0) for v in values]
    volumes = [hypervolume(v, np.full(len(signs), 1.0 + 1e-9)) for v in scaled]
    beaten = [int(np.sum(first_dominator(a, b) >= 0)) for a, b in (values, values[::-1])]
    shared = {tuple(row) for row in values[0].tolist()} & {tuple(row) for row in values[1].tolist()}
    counts = len(one.points), len(two.points)
    return Comparison(counts, (volumes[0], volumes[1]), (beaten[0], beaten[1]), len(shared))


def versions(engine: str = "duckdb") -> dict[str, str]:
    """What the work was done with."""
    packages = (*PACKAGES, *(["pyspark"] if engine == "spark" else []))
    return {"sfumato": __version__, "python": platform.python_version()} | {name: version(name) for name in packages}


def numbered(points: Sequence[Point], first: Objective) -> tuple[Point, ...]:
    """Points sorted by the first objective and numbered from 0; ties by their plan, so the order is always the same."""
    ordered = sorted(points, key=lambda p: (p.values[first.name], p.loss, tuple(p.plan.choices.values())))
    return tuple(Point(i, p.values, p.loss, p.suppressed, p.plan) for i, p in enumerate(ordered))


def _check_points(points: Sequence[Point], about: Mapping[str, Any]) -> None:
    """Raise unless the points of a saved front are numbered, finite, and measured by its objectives."""
    names = {objective["name"] for objective in about["objectives"]}
    counts = [about[name] for name in ("evaluations", "space", "rows")]
    fine = all(isinstance(count, int) and count >= 0 for count in counts) and about["rows"] > 0
    fine &= about["system"] in ("lattice", "cuts") and bool(names)
    for place, point in enumerate(points):
        numbers = [point.loss, point.suppressed, *point.values.values()]
        fine &= point.id == place and names <= set(point.values)
        fine &= all(isinstance(n, int | float) and math.isfinite(n) for n in numbers)
        fine &= 0 <= point.suppressed <= about["rows"] and -1e-9 <= point.loss <= 1 + 1e-9
        below = (point.plan.suppress_below, point.plan.diversity_below)
        fine &= all(isinstance(n, int) and 0 <= n < 2**62 for n in below)
        fine &= all(
            isinstance(c, int) and c >= 0 if about["system"] == "lattice" else True for c in point.plan.choices.values()
        )
    if not fine:
        raise ValueError("the points do not fit the front")


def _point(system: str, found: Mapping[str, Any]) -> Point:
    plan = plan_from(system, found)
    return Point(found["id"], found["values"], found["loss"], found["suppressed"], plan)
