"""Whoever is suppressed could have been somebody else: the public files of a release would be the same.

1,000 ordinary people and two who stand out in every column are released; then the same people with two others who
stand out. Every kind of release is a function from a folder with `people.csv` to a release; others may be added to
`KINDS`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.csv
import pyarrow.parquet
import pyreadstat
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.release.fronts import publish
from tests.release.planted import (
    HIGH,
    JOBS,
    LOW,
    TOWNS,
    Person,
    front_with,
    labels_of,
    people,
    public_texts,
    rows_of,
    write_people,
)

import sfumato as sf
from sfumato.data.profile import values_of
from sfumato.hierarchies import Hierarchy, save
from sfumato.hierarchies.hierarchy import edited
from sfumato.hierarchies.recipes import builder, recipe
from sfumato.methods.apply import apply_plan
from sfumato.methods.publish import verify
from sfumato.plans.recodings import CutPlan, LevelPlan
from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True)
class Chance:
    """What is drawn for an example, the same for both tables: a seed, the least class, a level, the strange people."""

    seed: int
    k: int
    level: int
    strange: tuple[Person, ...]

    @property
    def rng(self) -> random.Random:
        return random.Random(self.seed)


Kind = Callable[[Path, Chance], Any]
WORDS = st.text("abdeghiklmnoprstuvwyz", min_size=6, max_size=9).map(str.title)


def numbers(low: float, high: float) -> st.SearchStrategy[str]:
    """Numbers that are no bounds of declared intervals, which are shown whoever is in them: 10-29, 50-79."""
    whole = st.integers(int(low), int(high)).filter(lambda n: n % 5 not in (0, 4))
    return whole.flatmap(lambda n: st.sampled_from([str(n), f"{n}.5", f"{n}.25"]))


def dates(low: int, high: int) -> st.SearchStrategy[str]:
    return st.tuples(st.integers(low, high), st.integers(1, 12), st.integers(1, 28)).map(
        lambda part: f"{part[0]:04}-{part[1]:02}-{part[2]:02}"
    )


@st.composite
def strangers(draw: st.DrawFn, number: int, low: bool) -> Person:
    """Somebody who stands out in every column, below or above the others."""
    return Person(
        age=draw(numbers(0, 12) if low else numbers(90, 10**9)),
        # More than three digits: 00115 would be the number of the prefix 115**.
        zip=draw(st.integers(1000, 9999) if low else st.integers(80_000, 99_999)).__format__("05"),
        job=f"{draw(WORDS)}{number}",
        born=draw(dates(1800, 1930) if low else dates(2010, 2090)),
        pay=draw(numbers(-(10**6), 800) if low else numbers(7000, 10**8)),
        town=f"{draw(WORDS)}{number}",
        ill=f"{draw(WORDS)}{number}",
        visits=str(70_000 + number),
    )


@st.composite
def chances(draw: st.DrawFn) -> Chance:
    """Each of the second two stands on the same side as one of the first: where quantiles lie depends on the sides."""
    low = draw(st.tuples(st.booleans(), st.booleans())) * 2
    found = tuple(draw(strangers(number, low[number])) for number in range(4))
    return Chance(draw(st.integers(0, 99)), draw(st.sampled_from([3, 5, 20])), draw(st.integers(0, 9)), found)


def published(folder: Path, study: sf.Study, plan: Any) -> Any:
    """A release of a plan, verified; with a smaller least class where nobody would be left."""
    fronts = (front_with(study, replace(plan, suppress_below=k)) for k in (plan.suppress_below, 3, 2))
    front = next(front for front in fronts if front.points[0].suppressed < front.rows)
    front.save(folder / "front")
    release = publish(front, 0, folder / "out", state=folder / "state")
    verify(folder / "out", study.data.path).raise_if_failed()
    return release


def on_a_level(folder: Path, column: str, tree: Any, chance: Chance) -> Any:
    """A column on one of the levels of its hierarchy, beside one that singles the two out."""
    other = "job" if column != "job" else "town"
    study = people(folder, {column: {"hierarchy": tree}, other: {}})
    table = study.table()
    height = table.domains[table.columns.index(column)].hierarchy.height
    level = 1 + chance.level % max(height - 1, 1)
    return published(folder, study, LevelPlan({column: level, other: 0}, chance.k))


def from_recipe(column: str, **given: Any) -> Kind:
    return lambda folder, chance: on_a_level(folder, column, given, chance)


def from_built_file(column: str, **given: Any) -> Kind:
    """As `sfumato hierarchy build` writes it."""

    def released(folder: Path, chance: Chance) -> Any:
        counts = values_of(people(folder, {column: {}}).source(), column)
        options = {name: value for name, value in given.items() if name != "build"}
        tree = builder(column, recipe(given["build"], options))(list(counts), list(counts.values()))
        save(tree, folder / "tree.csv")
        return on_a_level(folder, column, str(folder / "tree.csv"), chance)

    return released


def declared(column: str, public: bool) -> Kind:
    """A codebook with all strange values, in groups with others and in groups of their own."""

    def released(folder: Path, chance: Chance) -> Any:
        rng, ordinary = chance.rng, JOBS if column == "job" else TOWNS
        strange = [getattr(person, column) for person in chance.strange]
        paths = [(value, rng.choice("ABC"), "*") for value in ordinary]
        paths += [(value, rng.choice(["A", "B", "Z"]), "*") for value in strange]
        save(Hierarchy.from_paths(column, paths), folder / "tree.csv")
        return on_a_level(folder, column, {"path": str(folder / "tree.csv"), "public": public}, chance)

    return released


def edited_on_the_page(column: str) -> Kind:
    """Values joined under the names that the page proposes, one of them moved under another."""

    def released(folder: Path, chance: Chance) -> Any:
        ordinary = JOBS if column == "job" else TOWNS
        values = list(values_of(people(folder, {column: {}}).source(), column))
        strange = [value for value in values if value not in ordinary]
        rng = chance.rng
        targets = [rng.choice(ordinary) for _ in strange]
        paths = edited(column, [(value, "*") for value in values], "add_level", level=1)
        change = {"do": "move", "level": 0, "labels": [targets[0]], "to": strange[0]}  # a label called like a stranger
        paths = edited(column, paths, **change)
        if targets[1] != targets[0]:
            to = "{" + " | ".join([targets[1], strange[1]]) + "}"
            paths = edited(column, paths, "join", level=1, labels=[targets[1], strange[1]], to=to)
        save(Hierarchy.from_paths(column, paths), folder / "tree.csv")
        return on_a_level(folder, column, str(folder / "tree.csv"), chance)

    return released


def cut(known: Mapping[str, Mapping[str, Any]], apart: bool = False) -> Kind:
    """Cuts at ordinary values; `apart` gives the two groups of their own, beside the others (for numbers)."""
    other = "job" if "job" not in known else "town"

    def planned(table: FrequencyTable, chance: Chance) -> CutPlan:
        rng = chance.rng
        strange = {cell for person in chance.strange for cell in person.cells}
        cuts = {}
        for domain in sorted(table.domains, key=lambda domain: domain.name):
            order = [domain.hierarchy.leaves[leaf] for leaf in domain.order]
            ordinary = [value for value in order if value not in strange]
            drawn = set(rng.sample(ordinary, min(rng.randint(1, 4), len(ordinary))))
            drawn |= set(order) if domain.name == other else set()
            if apart:
                drawn |= {order[place] for place in range(len(order)) if {order[place], order[place - 1]} & strange}
            cuts[domain.name] = tuple(value for value in order if value in drawn or value == order[0])
        return CutPlan(cuts, chance.k)

    def released(folder: Path, chance: Chance) -> Any:
        study = people(folder, {**known, other: {}})
        return published(folder, study, planned(study.table(), chance))

    return released


def cut_along_a_tree(public: bool) -> Kind:
    """Cuts of a column with a hierarchy: groups may be its nodes, or parts of them."""

    def released(folder: Path, chance: Chance) -> Any:
        values = sorted([*TOWNS, *(person.town for person in chance.strange)])
        paths = [(town, f"{'ABC'[place * 3 // len(values)]}*", "*") for place, town in enumerate(values)]
        save(Hierarchy.from_paths("town", paths), folder / "tree.csv")
        tree = {"path": str(folder / "tree.csv"), "public": public}
        return cut({"town": {"hierarchy": tree}})(folder, chance)

    return released


def in_parquet(folder: Path, chance: Chance) -> Any:
    columns = {name: pyarrow.string() for name in ("age", "zip")}
    table = pyarrow.csv.read_csv(
        folder / "people.csv", convert_options=pyarrow.csv.ConvertOptions(column_types=columns)
    )
    pyarrow.parquet.write_table(table, folder / "people.parquet")
    study = people(folder, {"age": {"hierarchy": {"build": "quantile", "bins": 5}}, "job": {}})
    return published(
        folder,
        study.replace(data={"path": str(folder / "people.parquet")}),
        LevelPlan({"age": 1, "job": 0}, chance.k),
    )


def applied(of: str) -> Kind:
    """The same people released once more with the plan, of a release or of a front."""

    def released(folder: Path, chance: Chance) -> Any:
        cut({"age": {}, "town": {}})(folder, chance)
        point = 0 if of == "front" else None
        return apply_plan(folder / of, folder / "people.csv", folder / "new", point=point, state=folder / "again")

    return released


def in_spss(folder: Path, chance: Chance) -> Any:
    """A labelled file in which every value has a label, also those that only the strange have; some mean missing."""
    frame = pd.read_csv(folder / "people.csv", dtype={"zip": str})
    labels = {
        name: {v: f"label of {v}" for v in frame[name].unique().tolist()} for name in ("job", "town", "ill", "visits")
    }
    missing = {"visits": [float(person.visits) for person in chance.strange[:2]], "town": [JOBS[0]]}
    pyreadstat.write_sav(frame, folder / "people.sav", variable_value_labels=labels, missing_ranges=missing)
    study = people(folder, {"age": {"hierarchy": {"build": "quantile"}}, "job": {}, "town": {}})
    study = study.replace(data={"path": str(folder / "people.sav")})
    return published(folder, study, LevelPlan({"age": 1, "job": 0, "town": 0}, chance.k))


AGES = [
    {"build": "interval", "widths": [10, 20, 40]},
    {"build": "interval"},
    {"build": "quantile", "bins": 6},
    {"build": "breaks", "levels": [[10, 30, 50, 80], [30, 80]]},
    {"build": "flat"},
]
RECIPES = [
    *(("age", found) for found in AGES),
    ("pay", {"build": "interval"}),
    ("pay", {"build": "quantile", "bins": 7}),
    ("pay", {"build": "breaks", "levels": [[0, 2000, 3000.5], [3000.5]]}),
    ("zip", {"build": "prefix"}),
    ("zip", {"build": "prefix", "keep": [3, 1]}),
    ("zip", {"build": "quantile"}),
    ("born", {"build": "date"}),
    ("town", {"build": "frequency", "shares": [0.01, 0.2]}),
    ("town", {"build": "flat"}),
]
KINDS: dict[str, Kind] = {
    **{
        f"{column} by {found['build']} {place}": from_recipe(column, **found)
        for place, (column, found) in enumerate(RECIPES)
    },
    **{
        f"{column} built into a file {place}": from_built_file(column, **found)
        for place, (column, found) in enumerate(RECIPES)
    },
    "a codebook of jobs": declared("job", public=False),
    "a public codebook of jobs": declared("job", public=True),
    "a public codebook of towns": declared("town", public=True),
    "jobs edited on the page": edited_on_the_page("job"),
    "towns edited on the page": edited_on_the_page("town"),
    "cuts of ages": cut({"age": {}}),
    "cuts of ages, the two apart": cut({"age": {}}, apart=True),
    "cuts of pay": cut({"pay": {}}),
    "cuts of pay at breaks": cut({"pay": {"breaks": [1500, 2500.5, 4000]}}),
    "cuts of zips": cut({"zip": {}}, apart=True),
    "cuts of days": cut({"born": {}}),
    "cuts of towns": cut({"town": {}}),
    "cuts of jobs": cut({"job": {}}),
    "cuts of towns and ages": cut({"town": {}, "age": {}}),
    "cuts of prefixes": cut({"zip": {"hierarchy": {"build": "prefix", "keep": [3, 2]}}}),
    "cuts along a tree": cut_along_a_tree(public=False),
    "cuts along a public tree": cut_along_a_tree(public=True),
    "quantiles in Parquet": in_parquet,
    "labels in SPSS": in_spss,
    "a release applied": applied("out"),
    "a front applied": applied("front"),
}


def same_files(kind: str, chance: Chance, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whoever is suppressed, every public file is the same but for the order of the rows."""
    texts = []
    for strange in (chance.strange[:2], chance.strange[2:]):
        folder = tmp_path_factory.mktemp("planted")
        write_people(folder / "people.csv", strange, seed=chance.seed)
        release = KINDS[kind](folder, chance)
        texts.append(public_texts(release))
        assert not {person.ill for person in strange} & {row["ill"] for row in rows_of(release)}
        if "public" not in kind:
            nothing_of(strange, release, texts[-1])
    for name in texts[0]:
        assert texts[0][name] == texts[1][name], name


def drawn(examples: int, kinds: Iterable[str]) -> Callable[..., Any]:
    """So many examples; a failing one is shown as it was drawn, because every try is two releases."""
    quick = settings(
        max_examples=examples,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    return lambda test: pytest.mark.parametrize("kind", kinds)(quick(given(chance=chances())(test)))


# One of each way to make labels is tried with every change; all of them, more often, with `make test-hostile`.
USUAL = (
    "age by quantile 2",
    "town built into a file 12",
    "a public codebook of jobs",
    "jobs edited on the page",
    "cuts of ages, the two apart",
    "cuts of towns and ages",
    "cuts along a tree",
    "quantiles in Parquet",
    "labels in SPSS",
    "a release applied",
)
test_public_files_do_not_depend_on_who_is_suppressed = pytest.mark.long(drawn(2, USUAL)(same_files))
test_public_files_do_not_depend_on_forty_pairs_who_are = pytest.mark.published(drawn(40, KINDS)(same_files))


SEARCHES: dict[str, dict[str, Any]] = {
    "lattice": {"system": "lattice", "max_suppression": 0.05},
    "cuts": {"system": "cuts", "max_suppression": 0.05, "generations": 4, "population": 16, "local_search": 4},
}


@pytest.mark.published
@pytest.mark.parametrize("system", SEARCHES)
def test_points_of_a_search(system: str, tmp_path: Path) -> None:
    """From a search to a release, as a publisher does it; where the two are suppressed, nothing of them is left."""
    write_people(tmp_path / "people.csv")
    recipes = {"age": {"build": "quantile", "bins": 4}, "town": {"build": "frequency"}, "job": {"build": "flat"}}
    study = people(tmp_path, {name: {"hierarchy": found} for name, found in recipes.items()})
    front = sf.search(study.with_search(**SEARCHES[system]))
    without = 0
    for point in front.points[:: max(len(front.points) // 6, 1)]:
        release = publish(front, point.id, tmp_path / f"out{point.id}", state=tmp_path / f"state{point.id}")
        verify(release.folder, study.data.path).raise_if_failed()
        if not {LOW.ill, HIGH.ill} & {row["ill"] for row in rows_of(release)}:
            nothing_of((LOW, HIGH), release, public_texts(release))
            without += 1
    assert without >= 2


def nothing_of(strange: Sequence[Person], release: Any, texts: Mapping[str, str]) -> None:
    """No public file holds a word of the two, and no label of theirs a number of them."""
    for name, text in texts.items():
        for word in (word for person in strange for word in person.words if len(word) > 4):
            assert not re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", text), (name, word)
    for column in ("age", "pay", "zip"):
        if column in rows_of(release)[0]:
            labels = labels_of(release, column) if len(texts) > 1 else {row[column] for row in rows_of(release)}
            shown = {float(part) for label in labels for part in re.findall(r"-?\d+\.?\d*", label.replace("-", " "))}
            assert not shown & {abs(float(getattr(person, column))) for person in strange}, (column, labels)
