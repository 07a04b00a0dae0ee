"""The front: every non-dominated plan that a search found, frozen, with how it was found, and saved as one folder.

An objective is a measure with a direction. A point is one plan of the front with its figures.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, overload

import numpy as np

from sfumato.base.arrays import Counts64, Floats
from sfumato.base.arrow import read_numbers, write_numbers
from sfumato.base.files import new_folder
from sfumato.base.formats import json_lines, read_json
from sfumato.base.notebook import ACCENT, SECOND, card, plotly_figure, points_picture, short, to_frame
from sfumato.base.text import percent
from sfumato.base.trust import note_input, seal
from sfumato.errors import InputError, counted, shortened
from sfumato.measures.classes import ClassTable
from sfumato.measures.fast_paths import Form
from sfumato.measures.histograms import Histogram, Histograms, histograms_of
from sfumato.measures.measure import Measure
from sfumato.measures.registry import GENERALIZATION_LOSS, OF_FORM, SUPPRESSION_LOSS, K, known_measures
from sfumato.plans.recodings import CutPlan, LevelPlan, Plan, RecodingPlan
from sfumato.study import Study, read_kept
from sfumato.study.methods import METHODS
from sfumato.tables.domain import Loss, loss_of_entered, loss_of_source
from sfumato.tables.frequency import FrequencyTable
from sfumato.version import __version__


@dataclass(frozen=True)
class Objective:
    """A measure, its direction, and where it is measured: on the released table, or before suppression.

    `title`, `privacy` and `scale` are given for a method's own measure, which is not in the registry.
    """

    name: str
    direction: str
    taken: str = "released"
    title: str = ""
    privacy: bool | None = None
    scale: str = ""

    @classmethod
    def of(cls, form: Form) -> Objective:
        """Return the measure that follows from class histograms in this form, with the short name of the measure."""
        return cls(OF_FORM[form].name, OF_FORM[form].direction, title=OF_FORM[form].label)

    @property
    def form(self) -> Form | None:
        """The figure of class histograms that gives it under any suppression; None if it needs the table."""
        return next((form for form, measure in OF_FORM.items() if measure.name == self.name), None)

    @property
    def sign(self) -> float:
        """The factor that makes less of it better."""
        return -1.0 if self.direction == "max" else 1.0

    def value(self, measure: Measure, classes: ClassTable) -> float:
        """Return the value of the measure on the classes of a release.

        It is measured on the rows that remain if `taken` is "released". "input" compares these rows with the
        distribution of the input. Any other value means the table before suppression.
        """
        if self.taken == "input":
            classes = replace(classes, reference="input")
        elif self.taken != "released":
            classes = classes.with_suppressed(np.zeros_like(classes.suppressed))
        return float(measure.value(classes))

    @property
    def protects(self) -> bool:
        """Whether it measures privacy; otherwise it measures a cost."""
        return known_measures()[self.name].kind == "privacy" if self.privacy is None else self.privacy

    @property
    def logarithmic(self) -> bool:
        """Whether its scale is logarithmic. By default a measure to maximise is, and one to minimise is not."""
        return (self.scale or ("log" if self.direction == "max" else "linear")) == "log"

    def gain(self, values: Floats) -> Floats:
        """Return values on a scale where equal steps have equal worth and more is better."""
        values = np.asarray(values, dtype=np.float64)
        return np.asarray(-self.sign * (np.log(np.maximum(values, 1e-9)) if self.logarithmic else values))

    @property
    def label(self) -> str:
        """The name for readers."""
        return self.title or known_measures()[self.name].about.title

    def as_dict(self) -> dict[str, object]:
        """Return the objective as JSON. `taken` is left out if it is measured on the released table.

        Returns:
            A dictionary.
        """
        taken = {} if self.taken == "released" else {"taken": self.taken}
        own = {} if self.privacy is None else {"title": self.title, "privacy": self.privacy, "scale": self.scale}
        return {"name": self.name, "direction": self.direction} | taken | own


PlanReader = Callable[[Mapping[str, Any]], Plan]


@dataclass(frozen=True, repr=False)
class Point:
    """One plan of a front. `loss` is in [0, 1]; `values` are the measures in their own units.

    `bound` is the lower bound of the front's last objective, if it is known. `details` are further figures of the
    method. `suppressed` counts records, and `suppressed_units` counts units if the table has any.
    """

    id: int
    values: Mapping[str, float]
    loss: float
    suppressed: int
    plan: Plan
    bound: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    suppressed_units: int | None = None

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {short(value)}" for name, value in self.values.items())
        return f"<Point {self.id}: {values}, loss {100 * self.loss:.1f} %, {self.suppressed:,} suppressed>"

    @property
    def recoding_plan(self) -> RecodingPlan:
        """The plan, if it recodes the table."""
        if isinstance(self.plan, LevelPlan | CutPlan):
            return self.plan
        raise InputError("the plans of this front do not recode the table", expected="a front of lattice or cuts")

    def as_dict(self) -> dict[str, Any]:
        """Return the point as JSON, which lacks infinities: they are null, and their names are listed.

        Returns:
            A dictionary.
        """
        endless = [name for name, value in self.values.items() if not math.isfinite(value)]
        return self._entries() | self.plan.entries() | ({"infinite": endless} if endless else {})

    def saved(self) -> dict[str, object]:
        """Return all that is needed to restore the point."""
        return self._entries() | self.plan.saved()

    def _entries(self) -> dict[str, object]:
        values = {name: value if math.isfinite(value) else None for name, value in self.values.items()}
        further = {
            "suppressed_units": self.suppressed_units,
            "bound": self.bound,
            "details": dict(self.details) or None,
        }
        return {"id": self.id, "values": values, "loss": self.loss, "suppressed": self.suppressed} | {
            name: value for name, value in further.items() if value is not None
        }


def numbered(points: Sequence[Point], first: Objective) -> tuple[Point, ...]:
    """Return points sorted by the first objective and numbered from 0. Ties are sorted by their plan."""
    ordered = sorted(points, key=lambda p: (p.values[first.name], p.loss, p.plan.rank))
    return tuple(replace(point, id=number) for number, point in enumerate(ordered))


def point_from(saved: Mapping[str, Any], read_plan: PlanReader) -> Point:
    """Return a saved point. A value of null is an infinity, which JSON lacks."""
    values = {name: math.inf if value is None else value for name, value in saved["values"].items()}
    plan, details, units = read_plan(saved), dict(saved.get("details", {})), saved.get("suppressed_units")
    numbers = (*values.values(), saved["loss"], saved["suppressed"])
    if not all(isinstance(number, int | float) for number in numbers) or not isinstance(units, int | None):
        raise ValueError("figures are numbers")
    return Point(saved["id"], values, saved["loss"], saved["suppressed"], plan, saved.get("bound"), details, units)


FILES = ("front.json", "run.toml")
KEPT = ["system", "algorithm", "exact", "evaluations", "space", "seconds", "certificate", "details", "rows", "left_out"]
KEPT += ["fingerprint", "tuples"]  # fields that are written as they are
CLASSES = "classes.parquet"  # only fronts of recodings have it
PRICES = "floor.parquet"  # only fronts with a lower bound have it
EXPECTED_PRICES = "the floor of a front that sfumato search wrote"
PRICE_UNIT = 10**12  # the price of a suppressed record, in the unit of prices
PACKAGES = ("duckdb", "numba", "numpy", "pyarrow")
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OSError, OverflowError, RecursionError, IndexError)


@dataclass(frozen=True, repr=False)
class Front:
    """Points sorted by the first objective, with how they were found.

    The front is `exact` if no plan of the search space dominates any point; otherwise the points are the best found.
    The dominated points in `others` were evaluated as well, and only pictures show them. The `details` are facts of one
    method: the prior of a channel, the areas of a group. The `prices` prove a lower bound: for each k, they are
    feasible dual prices of each tuple's records, in the order of the frequency table. The clause `found_how` replaces
    `how` if that is not about nodes or cuts. The missing rule left out `left_out` records of the source, which losses
    count as lost.
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
    units: int | None = None
    certificate: Mapping[str, object] = field(default_factory=dict)
    others: tuple[Mapping[str, float], ...] = ()
    system: str = "lattice"
    details: Mapping[str, Any] = field(default_factory=dict)
    found_how: str = ""
    tuples: int = field(default=0, compare=False)
    stages: tuple[Mapping[str, object], ...] = field(default=(), compare=False)
    classes: Histograms | None = field(default=None, compare=False, repr=False)
    prices: Mapping[int, Counts64] = field(default_factory=dict, compare=False, repr=False)
    left_out: int = 0

    def __repr__(self) -> str:
        sought = ", ".join(objective.name for objective in self.objectives)
        points, records = counted(len(self.points), "point"), counted(self.rows, "record")
        missing = f" ({self.left_out:,} left out)" if self.left_out else ""
        return f"<Front of {self.system}: {points} over {sought}, {records}{missing}>"

    def __len__(self) -> int:
        return len(self.points)

    def __bool__(self) -> bool:
        return True  # a front without points is still a front

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    @overload
    def __getitem__(self, number: int) -> Point: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Point, ...]: ...
    def __getitem__(self, number: int | slice) -> Point | tuple[Point, ...]:
        return self.points[number]

    def to_frame(self, kind: str | None = None) -> Any:
        """Return the points as a frame, one row for each.

        It is the kind of frame of the study's own table, or the kind that is asked for ("pandas", "polars", "pyarrow").
        The level, or the number of groups, of each column follows the figures.

        Args:
            kind: "pandas", "polars" or "pyarrow"; the kind of the study's own table unless given.

        Returns:
            A frame.
        """
        columns: dict[str, list[object]] = {"point": [point.id for point in self.points]}
        for name in self.points[0].values if self.points else ():
            columns[name] = [float(point.values[name]) for point in self.points]
        columns["loss"] = [point.loss for point in self.points]
        columns["suppressed"] = [point.suppressed for point in self.points]
        columns["left_out"] = [self.left_out for _ in self.points]
        if self.recodes and self.points:
            for name in self.points[0].recoding_plan.choices:
                chosen = [point.recoding_plan.choices[name] for point in self.points]
                kind_of = "level" if all(isinstance(one, int) for one in chosen) else "groups"
                columns[f"{name}_{kind_of}"] = [one if isinstance(one, int) else len(one) for one in chosen]
        return to_frame(columns, kind or self.study.frame_kind)

    def plot(self, chosen: int | None = None) -> Any:
        """Return the front as a plotly figure: privacy over loss, with a chosen point marked.

        Args:
            chosen: the id of a point to mark.

        Returns:
            A plotly figure.
        """
        first = self.objectives[0]

        def trace(name: str, points: Sequence[Point], marker: Mapping[str, object]) -> dict[str, object]:
            return {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": [100 * point.loss for point in points],
                "y": [point.values[first.name] for point in points],
                "text": [repr(point)[1:-1] for point in points],
                "hovertemplate": "%{text}<extra></extra>",
                "marker": marker,
            }

        traces = [trace("front", self.points, {"color": ACCENT, "size": 8})]
        if chosen is not None:
            mark = {"color": SECOND, "size": 14, "symbol": "diamond"}
            traces.append(trace("chosen", [self.point(chosen)], mark))
        scale = {"type": "log", "dtick": 1} if self._drawn_log else {}
        return plotly_figure(traces, {"title": "information loss, %"}, {"title": first.label} | scale, 420)

    @property
    def _drawn_log(self) -> bool:
        """Whether the scale of the first objective is logarithmic in pictures."""
        first = self.objectives[0]
        return first.privacy is None and known_measures()[first.name].about.scale == "log"

    def picture(self, chosen: int | None = None, mark: tuple[float, float] | None = None) -> str:
        """Return the front as a small SVG. A point is marked, or a loss and a value of the first objective."""
        if not self.points:
            return ""
        first = self.objectives[0]
        if mark is None and chosen is not None:
            mark = self.point(chosen).loss, float(self.point(chosen).values[first.name])
        return points_picture(
            [100 * point.loss for point in self.points],
            [float(point.values[first.name]) for point in self.points],
            x_title="information loss, %",
            y_title=first.label,
            log=self._drawn_log,
            mark=None if mark is None else (100 * mark[0], mark[1]),
        )

    def _repr_html_(self) -> str:
        heads = ["point", *(objective.name for objective in self.objectives), "loss", "suppressed"]
        places = sorted({round(step * (len(self.points) - 1) / 9) for step in range(10)}) if self.points else []
        names = heads[1:-2]
        rows = [
            [p.id, *(short(p.values[name]) for name in names), f"{100 * p.loss:.1f} %", f"{p.suppressed:,}"]
            for p in (self.points[position] for position in places)
        ]
        fewer = f" {len(rows)} of {len(self.points)} points are shown." if len(rows) < len(self.points) else ""
        notes = [f"{self.how[:1].upper()}{self.how[1:]}.{fewer}", self.left_out_says]
        return card(repr(self)[1:-1], heads, rows, self.picture(), list(filter(None, notes)))

    @property
    def persons(self) -> int:
        """The number of units, or of records if every record is a unit: the base of the suppression limit."""
        return self.rows if self.units is None else self.units

    def suppressed_count(self, point: Point) -> int:
        """Return how many units, or records if every record is a unit, a point suppresses."""
        return point.suppressed if point.suppressed_units is None else point.suppressed_units

    def suppressed_share(self, point: Point) -> float:
        """Return the share of all units, or records, that a point suppresses."""
        return self.suppressed_count(point) / self.persons

    @property
    def recodes(self) -> bool:
        """Whether its plans recode the table. Such a front has classes, which answer for any suppression."""
        return METHODS[self.system].recodes

    @property
    def tells_k(self) -> bool:
        """Whether the k of every point is known, so that `ask` can answer."""
        return self.recodes or (bool(self.points) and all(K.name in point.values for point in self.points))

    def with_left_out(self, left_out: int) -> Front:
        """Return the front of the whole source, of which the missing rule left out some records.

        Every loss, and every bound of a loss, becomes that of the source, where these records count as lost. Measures
        in their own units, prices and ratios to a bound refer to the records that entered the search.
        """
        if self.left_out or not left_out:
            return self
        whole = replace(self, left_out=left_out)

        def of_source(figures: Mapping[str, Any], name: str) -> Mapping[str, Any]:
            return {**figures, name: whole.loss_of_source(figures[name])} if name in figures else figures

        points = [
            replace(point, loss=whole.loss_of_source(point.loss), details=of_source(point.details, "floor"))
            for point in self.points
        ]
        others = tuple(of_source(other, "loss") for other in self.others)
        return replace(whole, points=tuple(points), others=others)

    @property
    def left_out_says(self) -> str:
        """The records that the missing rule left out, in a clause; empty if there are none."""
        if not self.left_out:
            return ""
        share = percent(self.left_out / (self.rows + self.left_out))
        return f"{counted(self.left_out, 'record')} of the source left out because of missing values ({share})"

    def loss_of_source(self, loss: Loss) -> Loss:
        """Return what a loss of the records that entered the search is for the source."""
        return loss_of_source(loss, self.rows, self.left_out)

    def loss_of_entered(self, loss: float) -> float:
        """Return what a loss of the source is for the records that entered the search."""
        return loss_of_entered(loss, self.rows, self.left_out)

    def ratio(self, loss: float, bound: float) -> float | None:
        """Return the ratio of a loss to a bound, without the records that were left out; None if the bound is 0."""
        least = self.loss_of_entered(bound)
        return self.loss_of_entered(loss) / least if least > 0 else None

    @cached_property
    def recoding_of(self) -> tuple[int, ...]:
        """The recoding of each point, numbered in the order of the points. Several points may share one."""
        numbers: dict[tuple[object, ...], int] = {}
        return tuple(numbers.setdefault(p.plan.rank, len(numbers)) for p in self.points)

    def with_classes(self, table: FrequencyTable) -> Front:
        """Return the front with the class histograms of its recodings, which answer other suppression limits.

        There are no such histograms if missing values match anything, if records were removed before or belong to
        units, or if a class may violate a criterion that is neither size nor diversity.
        """
        unknown = table.removed or not self.points or table.units is not None
        if unknown or any(domain.wildcard for domain in table.domains):
            return self
        if any(isinstance(point.plan, LevelPlan) and point.plan.limits for point in self.points):
            return self
        first = np.unique(self.recoding_of, return_index=True)[1]  # the first point of each recoding
        plans = [self.points[position].recoding_plan for position in first]
        return replace(self, classes=histograms_of(table, plans, self.study.search.weights))

    def histogram(self, number: int) -> Histogram | None:
        """Return the classes of a point's recoding before suppression, if they were kept.

        Args:
            number: the id of a point.

        Returns:
            Sizes and diversities of the classes, or None.
        """
        return None if self.classes is None else self.classes.of(self.recoding_of[self.point(number).id])

    def point(self, number: int) -> Point:
        """Return a point by its id.

        Args:
            number: its id.

        Returns:
            The point.
        """
        if not 0 <= number < len(self.points):
            ids = "0, the only one" if len(self.points) == 1 else f"an id from 0 to {len(self.points) - 1}"
            raise InputError(f"there is no point {number}", expected=ids)
        return self.points[number]

    @property
    def how(self) -> str:
        """How it was found, in a clause."""
        if self.found_how:
            return self.found_how
        proof = "exact" if self.exact else f"best found with seed {self.study.search.seed}"
        cut_short = not self.exact and self.algorithm in ("exact", "exhaustive")
        name = f"the {self.algorithm} search was stopped" if cut_short else self.algorithm
        if METHODS[self.system].levels:
            share = self.evaluations / self.space
            what = f"{self.evaluations:,} of {self.space:,} nodes evaluated ({percent(share)})"
        else:
            many = f"{self.space:,}" if self.space < 10**12 else f"about 10^{round(math.log10(self.space))}"
            what = f"{self.evaluations:,} of {many} cuts evaluated"
        return ", ".join(dict.fromkeys((proof, name, what)))  # an exact search already says so

    def as_dict(self) -> dict[str, object]:
        """Return the front as `sfumato search --json` prints it.

        Returns:
            A dictionary.
        """
        return self._about([self._point_entries(point) for point in self.points])

    def _about(self, points: Sequence[Mapping[str, object]]) -> dict[str, object]:
        kept = {name: getattr(self, name) for name in KEPT}
        units = {} if self.units is None else {"units": self.units}
        objectives = [objective.as_dict() for objective in self.objectives]
        return kept | units | {"how": self.how, "objectives": objectives, "points": points, "stages": list(self.stages)}

    def _point_entries(self, point: Point) -> dict[str, object]:
        """Return a point as JSON, with the parts of its loss if records were recoded or suppressed."""
        source = self.rows + self.left_out
        gone, missing = point.suppressed / source, self.left_out / source
        parts = {GENERALIZATION_LOSS.name: max(point.loss - gone - missing, 0.0), SUPPRESSION_LOSS.name: gone}
        parts |= {"left_out_loss": missing} if missing else {}
        return point.as_dict() | (parts if self.recodes else {})

    def save(self, folder: str | Path, replace: bool = False) -> Path:
        """Write the front as a new folder with front.json and the run file, completely or not at all.

        Only its owner can read the folder. With `replace` an earlier front of that name is replaced.

        Args:
            folder: the folder to write.
            replace: whether an earlier front of that name may be replaced.

        Returns:
            The folder.
        """
        folder = Path(folder).absolute()
        with new_folder(folder, replace=replace and (folder / FILES[0]).is_file()) as inside:
            about = self._about([point.saved() for point in self.points])
            about |= {"others": list(self.others), "versions": versions(self.study.engine)}
            (inside / FILES[0]).write_text(json_lines(about), "utf-8")
            (inside / FILES[1]).write_text(self.study.as_toml(), "utf-8")
            if self.classes is not None and self.classes.readable:
                self.classes.write(inside / CLASSES)
            if self.prices:
                write_numbers(inside / PRICES, {f"{K.name}{k}": prices for k, prices in self.prices.items()})
            seal(inside)
            if self.points:  # check that the saved front can be read
                read_front(inside, lambda _: type(self.points[0].plan).from_saved)
        return folder


def read_front(folder: str | Path, plan_reader: Callable[[str], PlanReader], run: str | Path | None = None) -> Front:
    """Read a front from its folder. `plan_reader` returns, for the name of a method, the reader of its plans.

    A folder that this user did not make here is untrusted: its figures can be looked at, but the table that it names is
    not opened. `run` is the user's own run file, which names the table.
    """
    folder = Path(folder)
    absent = [name for name in FILES if not (folder / name).is_file()]
    if absent:
        raise InputError(
            f"{folder} is not the folder of a front: it lacks {shortened(absent)}",
            expected="a folder that sfumato search wrote",
        )
    for name in (*FILES, CLASSES, PRICES):
        note_input(folder / name)
    study = read_kept(folder / "run.toml", run)
    try:
        about = read_json(folder / "front.json", expected="a file that sfumato search wrote")
        read_plan, floor = plan_reader(about["system"]), folder / PRICES
        prices = read_numbers(floor, expected=EXPECTED_PRICES) if floor.is_file() else {}
        points = tuple(point_from(saved, read_plan) for saved in about["points"])
        objectives = tuple(Objective(**saved) for saved in about["objectives"])
        _check_points(points, objectives, about)
        return Front(
            study=study,
            objectives=objectives,
            points=points,
            units=about.get("units"),
            others=tuple(about["others"]),
            found_how="" if METHODS[about["system"]].recodes else about["how"],
            stages=tuple(about["stages"]),
            classes=Histograms.read(folder / CLASSES) if (folder / CLASSES).is_file() else None,
            prices={int(name.removeprefix(K.name)): own for name, own in prices.items()},
            **{name: about[name] for name in KEPT},
        )
    except InputError as error:
        if error.what.startswith(str(folder)):  # it names the file
            raise
        raise InputError(f"{folder}/front.json cannot be read: {error.what}", expected=error.expected) from error
    except UNREADABLE as error:
        raise InputError(f"{folder}/front.json cannot be read", expected="a file that sfumato search wrote") from error


def versions(engine: str = "duckdb") -> dict[str, str]:
    """Return the versions of the software that did the work."""
    packages = (*PACKAGES, *(["pyspark"] if engine == "spark" else []))
    return {"sfumato": __version__, "python": platform.python_version()} | {name: version(name) for name in packages}


def _check_points(points: Sequence[Point], objectives: Sequence[Objective], about: Mapping[str, Any]) -> None:
    """Raise unless the points of a saved front are numbered, finite, and measured by its objectives."""
    names = {objective.name for objective in objectives}
    counts = [about[name] for name in ("evaluations", "space", "rows", "left_out")]
    fine = all(isinstance(count, int) and count >= 0 for count in counts) and about["rows"] > 0
    fine &= bool(names) and isinstance(about["details"], dict) and isinstance(about["fingerprint"], str)
    fine &= all(o.direction in ("max", "min") and isinstance(o.label, str) for o in objectives)
    fine &= all(o.scale in ("", "linear", "log") for o in objectives)
    for number, point in enumerate(points):
        fine &= point.id == number and all(math.isfinite(figure) for figure in (point.loss, point.suppressed))
        fine &= not any(math.isnan(point.values[name]) for name in names)
        fine &= 0 <= point.suppressed <= about["rows"] and -1e-9 <= point.loss <= 1 + 1e-9
        fine &= point.suppressed_units is None or 0 <= point.suppressed_units <= (about.get("units") or 0)
        fine &= point.bound is None or math.isfinite(point.bound)
    if not fine:
        raise ValueError("the points do not fit the front")
