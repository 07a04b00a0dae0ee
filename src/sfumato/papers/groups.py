"""The numbers of the groups paper (Tavrov, Chertov 2016) and ours.

The synthetic census as a study: two files with the same installations, and a run file that names them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sfumato.base.arrays import Floats
from sfumato.base.files import new_folder, refuse_existing_folder
from sfumato.base.progress import peak_memory
from sfumato.base.settings import toml_text
from sfumato.methods.groups.attack.attack import Attack, attack_with
from sfumato.methods.groups.attack.outliers import Adequacy, Sensitive, findings, spearman, tau
from sfumato.methods.groups.files import read_auxiliary, read_target, settings_of
from sfumato.samples.census import COLUMNS, Census, plant, write_census
from sfumato.study import Study, read
from sfumato.study.census_mapping import recipe

PAPER_RECORDS, PAPER_MEMBERS, PAPER_AREAS = 3_205_478, 14_263, 1_238
SURVEY_SHARE, SURVEY_MEMBERS = 565_243 / PAPER_RECORDS, 3_992 / PAPER_MEMBERS


@dataclass(frozen=True)
class Planted:
    """A census on disk: the auxiliary file, the survey to publish, the run file, and what was planted."""

    folder: Path
    run: Path
    census: Census
    survey: Census
    seed: int


def make_census(
    folder: Path,
    records: int = PAPER_RECORDS,
    members: int = PAPER_MEMBERS,
    areas: int = PAPER_AREAS,
    seed: int = 1,
    state: int | None = None,
) -> Planted:
    """Write `census.parquet`, `survey.parquet` and `run.toml` to a new folder."""
    refuse_existing_folder(folder)
    census = plant(records, members, areas, seed)
    survey = plant(
        max(round(records * SURVEY_SHARE), 10 * areas),
        max(round(members * SURVEY_MEMBERS), 1),
        areas,
        seed,
        scale_seed=1,
    )
    labels = np.array(survey.labels())
    expert = labels[survey.installations].tolist()
    with new_folder(folder, private=False) as inside:
        write_census(census, inside / "census.parquet", seed)
        write_census(survey, inside / "survey.parquet", seed + 1)
        (inside / "run.toml").write_text(run_file(expert, state), encoding="utf-8")
        read(inside / "run.toml")
    return Planted(folder, folder / "run.toml", census, survey, seed)


def run_file(expert: list[str], state: int | None = None) -> str:
    """Return the run file of a synthetic census. Columns are the attributes themselves."""
    kept = {"range", "ordinal", "terms"}
    ready = recipe("acs").attributes
    attributes = {name: {"column": name, **ready[name].model_dump(mode="json", include=kept)} for name in COLUMNS}
    groups = {
        "vital": {"military": [{"military": "1"}]},
        "area": ["state", "puma"],
        "expert": expert,
        "auxiliary": [{"path": "census.parquet", "name": "census"}],
        "attributes": attributes,
    }
    if state is not None:
        groups |= {"only": [{"state": str(state)}], "expert": [e for e in expert if e.startswith(f"{state:02d}-")]}
    return toml_text({"version": 1, "data": {"path": "survey.parquet"}, "groups": groups})


CONFUSIONS = {
    "census 2000 (table 6)": (Adequacy(60, 38, 4, 785), (0.953, 0.891, None, 98.047)),
    "ACS 2013 (table 7)": (Adequacy(42, 39, 8, 564), (0.930, 0.775, None, 55.067)),
}
TAUS = {10: 2.176068, 38: 2.477843, 61: 2.515381}
SIGNIFICANCE = 0.01
WAYS = ("hinges", "mad", "rank")
CENSUS_SEED = 11  # the first of several on which nothing was tried before they were reported
LEAST_SHARE = 0.005  # states with fewer members are left out of the paper's tables

Say = Callable[[str], None]


class Row(NamedTuple):
    """One number: its place in the paper, the published value, and ours."""

    name: str
    published: str
    ours: str


def golden_rows() -> list[Row]:
    """Return the numbers that follow from formulas only.

    >>> list(golden_rows()[0])
    ['census 2000 (table 6): PA', '0.953', '0.953']
    """
    rows = []
    for name, (confusion, published) in CONFUSIONS.items():
        ours = (confusion.accuracy, confusion.printed_j, confusion.youden_j, confusion.bayes)
        for figure, said, have in zip(("PA", "J as printed", "Youden's J", "MB"), published, ours, strict=True):
            rows.append(Row(f"{name}: {figure}", "–" if said is None else f"{said:.3f}", f"{have:.3f}"))
    return rows + [Row(f"τ of {m} values at 0.01", f"{said:.6f}", f"{tau(m, 0.01):.6f}") for m, said in TAUS.items()]


def hawaii_study(folder: Path, paper_ranges: bool = False) -> Study:
    """Return the study that attacks Hawaii 2018 from Hawaii 2015 and from the thirteen other states."""
    states = "psam_2018_14states_noreplicates.parquet"
    return Study(
        data={"path": str(folder / "psam_p15_2018.csv.gz")},
        groups={
            "recipe": "acs_paper" if paper_ranges else "acs",
            "other_columns": "release",
            "expert": ["00301", "00302", "00306"],
            "auxiliary": [
                {"path": str(folder / "ss15phi.csv.gz"), "name": "Hawaii 2015"},
                {"path": str(folder / states), "name": "thirteen states", "leave_out": [{"ST": "15"}]},
            ],
        },
    )


def hawaii_lines(folder: Path, seeds: Sequence[int], say: Say = lambda text: None) -> list[dict[str, Any]]:
    """Return every attacker from every auxiliary file, over the seeds: one line each."""
    study = hawaii_study(folder)
    target = read_target(study)
    lines = []
    for auxiliary in settings_of(study).auxiliary:
        other = read_auxiliary(study, auxiliary)
        for attacker in ("exact", "evolutionary", "boosted"):
            say(f"Hawaii 2018 from {auxiliary.title}: {attacker}")
            lines.append(spread_of(attack_with(study, target, other, attacker, "military", seeds)))
    return lines


def spread_of(attacks: Sequence[Attack]) -> dict[str, Any]:
    """Return several seeds of one attacker in one line: the least and the greatest of each figure."""
    lines = [attack.line() for attack in attacks]

    def ends(values: Iterable[float]) -> tuple[float, float]:
        listed = list(values)
        return min(listed), max(listed)

    return {
        "attacker": lines[0]["attacker"],
        "auxiliary": lines[0]["auxiliary"],
        "undisclosed": {way: ends(line["undisclosed"][way] for line in lines) for way in WAYS},
        "false": {way: ends(line["false"][way] for line in lines) for way in WAYS},
        "spearman": ends(line["spearman"] or 0.0 for line in lines),
        "average_precision": ends(line["average_precision"] for line in lines),
        "ranks": [line["ranks"] for line in lines],
    }


@dataclass(frozen=True)
class CensusRun:
    """One attacker on the synthetic census: adequacy state by state, and its run time.

    The unrevised figures count every outlier of the test as a finding.
    """

    attacker: str
    seed: int
    census: Adequacy
    survey: Adequacy
    census_unrevised: Adequacy
    survey_unrevised: Adequacy
    spearman: float | None
    average_precision: float | None
    held_out_precision: float | None
    rules: int
    cpu_seconds: float
    peak_gigabytes: float

    def as_dict(self) -> dict[str, object]:
        said = {name: value.as_dict() if isinstance(value, Adequacy) else value for name, value in vars(self).items()}
        rounded = {"cpu_seconds": round(self.cpu_seconds, 1), "peak_gigabytes": round(self.peak_gigabytes, 2)}
        return {"census_seed" if name == "seed" else name: value for name, value in (said | rounded).items()}


def census_runs(planted: Planted, attackers: Sequence[str], say: Say = lambda text: None) -> list[CensusRun]:
    """Learn on the census, and apply it to itself and to the survey, as the paper does."""
    study = read(planted.run)
    other = read_auxiliary(study, settings_of(study).auxiliary[0])
    survey = read_target(study)
    runs = []
    for attacker in attackers:
        say(f"synthetic census: {attacker}")
        began = time.process_time()
        (attack,) = attack_with(study, survey, other, attacker, "military", [settings_of(study).attack.seed])
        model = attack.model
        grades = model.memberships(other)
        flagged = grades >= model.threshold
        signal = np.bincount(other.area_of[flagged], grades[flagged], minlength=len(other.areas)).astype(np.float64)
        spent = time.process_time() - began
        expert = [other.areas.index(label) for label in settings_of(study).expert]
        truth = other.quantity("military").astype(np.float64)
        mine = survey.quantity("military").astype(np.float64)
        sizes = [file.sizes().astype(np.float64) for file in (other, survey)]
        runs.append(
            CensusRun(
                attacker=attacker,
                seed=planted.seed,
                census=by_state(other.areas, truth, signal, expert, sizes[0]),
                survey=by_state(survey.areas, mine, attack.fuzzy(), expert, sizes[1]),
                census_unrevised=by_state(other.areas, truth, signal, expert),
                survey_unrevised=by_state(survey.areas, mine, attack.fuzzy(), expert),
                spearman=spearman(mine, attack.fuzzy()),
                average_precision=attack.precision,
                held_out_precision=model.about.get("average_precision"),
                rules=len(getattr(model, "rules", ())),
                cpu_seconds=spent,
                peak_gigabytes=peak_memory() / 1e9,
            )
        )
    return runs


def by_state(
    labels: Sequence[str], truth: Floats, signal: Floats, expert: Sequence[int], sizes: Floats | None = None
) -> Adequacy:
    """Return the paper's tables 6 and 7: each state's signal by itself, then the sum of all confusions.

    The truth is what was planted, whether or not it stands out. In a state without an installation every finding is
    false. The paper's expert also excluded outliers of the attacker's signal that clearly are no installations. Here
    the excluded ones are those that the areas' `sizes` and counting noise explain (docs/readings.md, 4.15).
    """
    states = np.array([label.partition("-")[0] for label in labels])
    total = Adequacy(0, 0, 0, 0)
    for state in np.unique(states):
        mine = np.flatnonzero(states == state)
        if truth[mine].sum() <= LEAST_SHARE * truth.sum():
            continue
        position = {int(area): i for i, area in enumerate(mine)}
        known = [position[area] for area in expert if area in position]
        planted = Sensitive(tuple(sorted(known)), (), {})
        held = None if sizes is None else sizes[mine]
        total += findings(signal[mine], planted, SIGNIFICANCE, held).adequacy["hinges"]
    return total


def hawaii_rows(line: dict[str, Any]) -> list[Row]:
    """Return what an attacker finds in Hawaii, over the seeds."""
    who = f"Hawaii 2018 from {line['auxiliary']}, {line['attacker']}"
    ranks = "; ".join(" ".join(map(str, one)) for one in line["ranks"])
    rows = []
    for way in WAYS:
        found = f"{_span(line['undisclosed'][way])} / {_span(line['false'][way])}"
        rows.append(Row(f"{who}: undisclosed / false by {way}", "–", found))
    low, high = line["spearman"]
    return [*rows, Row(f"{who}: Spearman", "–", f"{low:.3f}–{high:.3f}"), Row(f"{who}: ranks", "–", ranks)]


def _span(ends: tuple[float, float]) -> str:
    return f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g}–{ends[1]:g}"


def census_rows(run: CensusRun) -> list[Row]:
    """Return the synthetic census and the paper's tables 6 and 7."""
    rows = []
    pairs = (
        ("census, as table 6", run.census, (0.953, 0.891, 98.047)),
        ("survey, as table 7", run.survey, (0.930, 0.775, 55.067)),
    )
    for name, measured, said in pairs:
        ours = (measured.accuracy, measured.printed_j, measured.bayes)
        for figure, paper, have in zip(("PA", "J as printed", "MB"), said, ours, strict=True):
            shown = "–" if have is None else f"{have:.3f}"
            rows.append(Row(f"synthetic {name}, {run.attacker}: {figure}", f"{paper:.3f}", shown))
    for name, plain in (("census", run.census_unrevised), ("survey", run.survey_unrevised)):
        shown = f"PA {plain.accuracy:.3f}, J {plain.printed_j or 0:.3f}, MB {plain.bayes:.1f}"
        rows.append(Row(f"synthetic {name}, {run.attacker}, no outlier set aside", "–", shown))
    if run.held_out_precision is not None:
        shown = f"{run.held_out_precision:.3f}"
        rows.append(Row(f"synthetic census, {run.attacker}: average precision, held out", "about 0.5", shown))
    cost = f"{run.cpu_seconds:.0f} CPU s, {run.peak_gigabytes:.1f} GB, {run.rules} rules"
    return [*rows, Row(f"synthetic census, {run.attacker}: spent", "–", cost)]
