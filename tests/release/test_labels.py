"""Suppressed means gone: labels, dictionary and reports hold nothing that comes only from suppressed records."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.release.fronts import publish
from tests.release.planted import (
    HIGH,
    LOW,
    dictionary_of,
    front_with,
    labels_of,
    people,
    public_files,
    public_texts,
    rows_of,
    write_people,
)

import sfumato as sf
from sfumato.cli import run
from sfumato.hierarchies import Hierarchy, save
from sfumato.methods.apply import apply_plan
from sfumato.methods.publish import verify
from sfumato.plans.recodings import CutPlan, LevelPlan
from sfumato.release.publish import Release
from sfumato.tables.frequency import FrequencyTable
from sfumato.web.api import hierarchies
from sfumato.web.workspace import Places, version_of

Columns = Mapping[str, Mapping[str, Any]]


def released(folder: Path, known: Columns, plan: Any, **data: Any) -> Release:
    """People released by a plan, verified with the source; neither of the two who stand out is in the file."""
    study = people(folder, known, **data)
    made = plan(study.table()) if callable(plan) else plan
    front = front_with(study, made)
    front.save(folder / "front")
    release = publish(front, 0, folder / "out", state=folder / "state")
    verify(folder / "out").raise_if_failed()
    verify(folder / "out", study.data.path).raise_if_failed()
    assert release.manifest["suppressed"] >= 2
    return release


def cut(*, suppress_below: int = 5, **starts: tuple[str, ...]) -> Any:
    """A plan of cuts: where groups start, beside the first value of the order; `each` starts one but those after it."""

    def planned(table: FrequencyTable) -> CutPlan:
        cuts = {}
        for domain in table.domains:
            order = [domain.hierarchy.leaves[leaf] for leaf in domain.order]
            wanted = starts[domain.name]
            if wanted[:1] == ("each",):
                wanted = tuple(value for value in order if f"not {value}" not in wanted)
            cuts[domain.name] = tuple(value for value in order if value == order[0] or value in wanted)
        return CutPlan(cuts, suppress_below)

    return planned


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_people(tmp_path / "people.csv")


# The rows of the table in the security review, one by one.


@pytest.mark.usefixtures("table")
def test_cuts_list_only_the_labels_that_occur(tmp_path: Path) -> None:
    """The two have groups of their own, which are not in the file."""
    plan = cut(age=("20", "40", "117"), zip=("10001", "99999"), job=("each",))
    release = released(tmp_path, {"age": {}, "zip": {}, "job": {}}, plan)
    for column in ("age", "zip", "job"):
        assert labels_of(release, column) == {row[column] for row in rows_of(release)}, column
    assert labels_of(release, "age") == {"<40", ">=40"}
    for path in public_files(release):
        for word in (*LOW.words, *HIGH.words):
            assert word not in path.read_text("utf-8"), (path.name, word)


@pytest.mark.usefixtures("table")
def test_ranges_of_cuts_do_not_show_suppressed_extremes(tmp_path: Path) -> None:
    release = released(tmp_path, {"age": {}, "job": {}}, cut(age=("25", "57"), job=("each",)))
    assert {row["age"] for row in rows_of(release)} == {"<25", "25-56", ">=57"}
    assert labels_of(release, "age") == {"<25", "25-56", ">=57"}


@pytest.mark.usefixtures("table")
def test_sets_of_cuts_name_released_values_only(tmp_path: Path) -> None:
    plan = cut(town=("Bern", "Dax"), job=("Cook", "Smith"), age=("20", "117"))
    release = released(tmp_path, {"town": {}, "job": {}, "age": {}}, plan)
    assert labels_of(release, "job") == {"Clerk", "Cook", "{Smith | Teacher}"}
    assert labels_of(release, "town") == {"{Bern | Cluj}", "{Dax | Fano | Gent}"}


@pytest.mark.usefixtures("table")
def test_quantiles_do_not_show_suppressed_extremes(tmp_path: Path) -> None:
    """Nor other extremes: the lowest and the highest group are open."""
    known = {"age": {"hierarchy": {"build": "quantile", "bins": 4}}, "job": {}}
    release = released(tmp_path, known, LevelPlan({"age": 1, "job": 0}, 5))
    labels = {row["age"] for row in rows_of(release)}
    assert labels_of(release, "age") == labels
    assert len(labels) == 4
    assert sum(label.startswith("<") for label in labels) == 1
    assert sum(label.startswith(">=") for label in labels) == 1
    for label in labels:
        assert not {"3", "117"} & set(label.replace("<", "").replace(">=", "").split("-")), label


@pytest.mark.usefixtures("table")
def test_a_hierarchy_built_into_a_file_is_not_public(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The README's own way: `hierarchy build`, then the file in the run file."""
    arguments = ["--kind", "interval", "--width", "10", "--width", "20", "-o", str(tmp_path / "age.csv")]
    assert run(["hierarchy", "build", str(tmp_path / "people.csv"), "-c", "age", *arguments]) == 0
    capsys.readouterr()
    known = {"age": {"hierarchy": str(tmp_path / "age.csv")}, "job": {}}
    release = released(tmp_path, known, LevelPlan({"age": 1, "job": 0}, 5))
    assert labels_of(release, "age") == {"20-29", "30-39", "40-49", "50-59", "60-69"}
    assert "recode" not in next(c for c in dictionary_of(release)["columns"] if c["name"] == "age")


@pytest.mark.usefixtures("table")
def test_a_tree_edited_on_the_page_is_not_public(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.prepare()
    (places.studies / "one").mkdir()
    text = people(tmp_path, {"job": {}, "town": {}}).as_toml()
    (places.studies / "one" / "run.toml").write_text(text, "utf-8")
    (places.studies / "one" / "study.json").write_text("{}", "utf-8")
    paths = hierarchies.show(places, "one", "job")["paths"]
    for change in (
        {"do": "add_level", "level": 1},
        {"do": "join", "level": 1, "labels": ["Astronaut", "Clerk", "Cook", "Teacher"], "to": "office"},
        {"do": "join", "level": 1, "labels": ["Smith", "Zookeeper"], "to": "{Smith | Zookeeper}"},  # the page's own
    ):
        paths = hierarchies.edit(places, "one", "job", paths, **change)["paths"]
    hierarchies.keep(places, "one", "job", version_of(places.study("one")), paths=paths)
    study = sf.read(places.studies / "one" / "run.toml")
    release = publish(front_with(study, LevelPlan({"job": 1, "town": 0}, 5)), 0, tmp_path / "out", state=tmp_path)
    verify(tmp_path / "out", study.data.path).raise_if_failed()
    assert labels_of(release, "job") == {"office", "Smith"}
    texts = "".join(public_texts(release).values())
    assert "Astronaut" not in texts
    assert "Zookeeper" not in texts


@pytest.mark.usefixtures("table")
def test_intervals_list_only_the_labels_that_occur(tmp_path: Path) -> None:
    known = {"age": {"hierarchy": {"build": "interval", "widths": [10, 20]}}}
    release = released(tmp_path, known, LevelPlan({"age": 1}, 5))
    assert labels_of(release, "age") == {"20-29", "30-39", "40-49", "50-59", "60-69"}


@pytest.mark.long
def test_adult_cuts_list_only_the_labels_that_occur(tmp_path: Path) -> None:
    """Three categories of the bundled table have suppressed holders only."""
    study = sf.read(sf.sample("adult-complete").with_name("cuts.toml"))
    keep = {"workclass": ("each", "not State-gov"), "marital-status": ("each", "not Widowed")}
    keep["native-country"] = ("each", "not Cuba")
    hidden = dict.fromkeys(("age", "education", "occupation", "race", "sex", "salary-class"), ())
    front = front_with(study, cut(suppress_below=50, **keep, **hidden)(study.table()))
    release = publish(front, 0, tmp_path / "out", state=tmp_path / "state")
    verify(tmp_path / "out", sf.sample("adult-complete").with_name("adult.data.gz")).raise_if_failed()
    columns = {column["name"]: column for column in dictionary_of(release)["columns"]}
    text = "".join(path.read_text("utf-8") for path in public_files(release) if path != release.data)
    for name in ("Without-pay", "Married-AF-spouse", "Outlying-US(Guam-USVI-etc)"):
        assert name not in text
    assert columns["race"]["done"] == "hidden"


# What the hierarchies say of themselves.


@pytest.mark.usefixtures("table")
def test_a_hierarchy_declared_public_lists_what_its_labels_stand_for(tmp_path: Path) -> None:
    paths = [(job, "office" if job[0] in "AC" else "elsewhere", "*") for job in ("Astronaut", "Clerk", "Cook", "Smith")]
    paths += [("Teacher", "elsewhere", "*"), ("Zookeeper", "outdoors", "*"), ("Zoologist", "outdoors", "*")]
    save(Hierarchy.from_paths("job", paths), tmp_path / "job.csv")
    known = {"job": {"hierarchy": {"path": str(tmp_path / "job.csv"), "public": True}}, "town": {}}
    release = released(tmp_path, known, LevelPlan({"job": 1, "town": 0}, 5))
    entry = next(c for c in dictionary_of(release)["columns"] if c["name"] == "job")
    assert entry["recode"] == {path[0]: path[1] for path in paths if path[1] != "outdoors"}
    assert labels_of(release, "job") == {"office", "elsewhere", *(path[0] for path in paths if path[1] != "outdoors")}


@pytest.mark.usefixtures("table")
def test_cuts_of_a_public_hierarchy_are_named_by_it(tmp_path: Path) -> None:
    save(Hierarchy.from_paths("age", [(str(age), "*") for age in range(130)]), tmp_path / "age.csv")
    known = {"age": {"hierarchy": {"path": str(tmp_path / "age.csv"), "public": True}}, "job": {}}
    release = released(tmp_path, known, cut(age=("19", "45"), job=("each",)))
    assert labels_of(release, "age") - set(map(str, range(130))) == {"19-44", ">=45"}


@pytest.mark.usefixtures("table")
def test_declared_breaks_are_the_bounds_of_cuts(tmp_path: Path) -> None:
    def planned(table: FrequencyTable) -> CutPlan:
        domain = table.domains[table.columns.index("pay")]
        order = [domain.hierarchy.leaves[leaf] for leaf in domain.order]
        starts = [next(value for value in order if float(value) >= least) for least in (2000, 3000.25)]
        assert starts[0] != "2000.0"
        return cut(pay=tuple(starts), job=("each",))(table)

    release = released(tmp_path, {"pay": {"breaks": [2000, 3000.25]}, "job": {}}, planned)
    assert labels_of(release, "pay") == {"<2000", "[2000 .. 3000.25)", ">=3000.25"}


@pytest.mark.usefixtures("table")
def test_words_for_cuts_count_groups_and_know_no_levels(tmp_path: Path) -> None:
    """A cut has no hierarchy with levels, and a group of suppressed people is not counted."""
    plan = cut(age=("20", "40", "117"), zip=("10001", "99999"), job=("each",))
    release = released(tmp_path, {"age": {}, "zip": {}, "job": {}}, plan)
    columns = {column["name"]: column for column in dictionary_of(release)["columns"]}
    assert columns["age"]["words"] == "Grouped into 2 groups."
    assert columns["zip"]["words"] == "Grouped into one group."
    assert "level" not in json.dumps(dictionary_of(release))
    for name in ("external.html", "dictionary.html"):
        (page,) = [path for path in public_files(release) if path.name == name]
        assert "level" not in page.read_text("utf-8")
        assert "Grouped into 2 groups." in page.read_text("utf-8")


# What else a suppressed record could leave behind.


def changed(path: Path, cells: Mapping[str, str], who: str = "Zookeeper") -> None:
    """Other cells for one of the two people."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["job"] == who:
            row.update(cells)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def test_the_spelling_of_missing_is_that_of_released_records(table: Path, tmp_path: Path) -> None:
    rows = table.read_text().splitlines()
    rows += ["NA,10001,Clerk,1980-01-01,1000.0,Bern,flu,1"] * 20
    table.write_text("\n".join(rows) + "\n")
    changed(table, {"age": "-"})  # sorts before the others' spelling
    plan = LevelPlan({"age": 0, "job": 0}, 5)
    release = released(tmp_path, {"age": {}, "job": {}}, plan, na=["-", "NA"], missing="category")
    assert {"-", "NA"} & {row["age"] for row in rows_of(release)} == {"NA"}


def test_missing_values_of_suppressed_records_are_not_mentioned(table: Path, tmp_path: Path) -> None:
    changed(table, {"age": ""})
    known = {"age": {"hierarchy": {"build": "interval", "widths": [10]}}, "job": {}}
    release = released(tmp_path, known, LevelPlan({"age": 1, "job": 0}, 5), missing="category")
    assert "missing value" not in json.dumps(dictionary_of(release))


@pytest.mark.usefixtures("table")
def test_the_loss_does_not_tell_how_few_were_suppressed(tmp_path: Path) -> None:
    """Nothing is generalized, so all that is lost are two records of 1,002: 0.2 %."""
    release = released(tmp_path, {"job": {}}, LevelPlan({"job": 0}, 5))
    assert release.manifest["suppressed"] == 2
    assert release.manifest["loss"] == pytest.approx(2 / 1002)
    outside = public_texts(release)["external.html"]
    assert "fewer than 10 records" in outside
    assert "0.2 %" not in outside
    assert "0.002" not in outside


def test_a_fraction_of_a_suppressed_record_does_not_change_the_labels(table: Path, tmp_path: Path) -> None:
    changed(table, {"age": "117.5"})
    for recipe, expected in (
        ({"build": "interval", "widths": [20]}, {"20-39", "40-59", "60-79"}),
        ({"build": "breaks", "levels": [[30, 40]]}, {"<30", "30-39", ">=40"}),
    ):
        folder = tmp_path / str(recipe["build"])
        folder.mkdir()
        (folder / "people.csv").write_text(table.read_text())
        release = released(folder, {"age": {"hierarchy": recipe}, "job": {}}, LevelPlan({"age": 1, "job": 0}, 5))
        assert {row["age"] for row in rows_of(release)} == labels_of(release, "age") == expected


def test_default_widths_do_not_depend_on_a_few_records(table: Path, tmp_path: Path) -> None:
    changed(table, {"age": "1000000000.5"})
    known = {"age": {"hierarchy": {"build": "interval"}}, "job": {}}
    release = released(tmp_path, known, LevelPlan({"age": 1, "job": 0}, 5))
    assert "20-24" in labels_of(release, "age")


def test_the_dictionary_lists_labels_in_an_order_of_their_own(table: Path, tmp_path: Path) -> None:
    """Not in that of the values under them, some of which are gone."""
    changed(table, {"town": "Aaa"})
    paths = [("Aaa", "south", "*"), ("Aachen", "east", "*"), ("Bern", "north", "*"), ("Cluj", "east", "*")]
    paths += [(town, "south", "*") for town in ("Dax", "Fano", "Gent")]
    save(Hierarchy.from_paths("town", paths), tmp_path / "town.csv")
    known = {"town": {"hierarchy": str(tmp_path / "town.csv")}, "job": {}}
    release = released(tmp_path, known, LevelPlan({"town": 1, "job": 0}, 5))
    entry = next(c for c in dictionary_of(release)["columns"] if c["name"] == "town")
    assert entry["labels"] == ["east", "north", "south"]
    known = {"age": {"hierarchy": {"build": "breaks", "levels": [[9, 30, 50]]}}, "job": {}}
    (tmp_path / "ages").mkdir()
    (tmp_path / "ages" / "people.csv").write_text(table.read_text())
    release = released(tmp_path / "ages", known, LevelPlan({"age": 1, "job": 0}, 5))
    entry = next(c for c in dictionary_of(release)["columns"] if c["name"] == "age")
    assert entry["labels"] == ["9-29", "30-49", ">=50"]


def test_a_value_called_like_the_rare_ones_is_refused(table: Path, tmp_path: Path) -> None:
    """Another name for the group would tell everybody that somebody has that value."""
    changed(table, {"town": "other <30%"})
    study = people(tmp_path, {"town": {"hierarchy": {"build": "frequency", "shares": [0.3]}}})
    with pytest.raises(sf.HierarchyError, match="is a value of town"):
        study.table()


def test_parquet_statistics_hold_released_values_only(table: Path, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(table), tmp_path / "people.parquet")
    study = people(tmp_path, {"age": {}, "job": {}}).replace(data={"path": str(tmp_path / "people.parquet")})
    front = front_with(study, cut(age=("25", "57"), job=("each",))(study.table()))
    release = publish(front, 0, tmp_path / "out", state=tmp_path / "state")
    verify(tmp_path / "out", tmp_path / "people.parquet").raise_if_failed()
    assert labels_of(release, "age") == {"<25", "25-56", ">=57"}
    raw = release.data.read_bytes()
    for word in (LOW.job, HIGH.job, LOW.ill, HIGH.ill):
        assert word.encode() not in raw
    described = pyarrow.parquet.ParquetFile(release.data).metadata
    assert described.metadata in (None, {})
    groups = [described.row_group(place) for place in range(described.num_row_groups)]
    visits = [group.column(release_names(release).index("visits")).statistics for group in groups]
    assert max(found.max for found in visits) <= 9


def release_names(release: Release) -> list[str]:
    return list(rows_of(release)[0])


# Next year's file.


@pytest.fixture
def grouped(table: Path, tmp_path: Path) -> Release:
    return released(
        tmp_path, {"age": {}, "job": {}, "town": {}}, cut(age=("25", "57"), job=("Cook", "Smith"), town=("each",))
    )


def next_year(tmp_path: Path, *rows: str) -> Path:
    lines = (tmp_path / "people.csv").read_text().splitlines()
    path = tmp_path / "next.csv"
    path.write_text("\n".join([*lines, *rows]) + "\n")
    return path


@pytest.mark.long
@pytest.mark.parametrize("of", ["out", "front"])
@pytest.mark.usefixtures("grouped")
def test_apply_names_what_the_new_file_releases(tmp_path: Path, of: str) -> None:
    """Last year's labels, and the values that are released now and were not then."""
    astronauts = ["30,10001,Astronaut,1980-01-01,1000.0,Bern,flu,1"] * 20
    elders = ["117,10001,Cook,1980-01-01,1000.0,Bern,cold,1"] * 20
    new = next_year(tmp_path, *astronauts, *elders)
    point = 0 if of == "front" else None
    applied = apply_plan(tmp_path / of, new, tmp_path / "next", point=point)
    with applied.data.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["job"] for row in rows} == {"{Astronaut | Clerk}", "Cook", "{Smith | Teacher}"}
    assert {row["age"] for row in rows} == {"<25", "25-56", ">=57"}
    assert HIGH.job not in applied.data.read_text()
    assert applied.manifest["figures"]["k"]["value"] >= 5


@pytest.mark.long
@pytest.mark.parametrize("of", ["out", "front"])
@pytest.mark.usefixtures("grouped")
def test_apply_keeps_the_labels_of_the_release(tmp_path: Path, of: str) -> None:
    new = next_year(tmp_path)
    new.write_text(new.read_text().replace("\n25,", "\n26,"))
    applied = apply_plan(
        tmp_path / of, new, tmp_path / "next", point=0 if of == "front" else None, state=tmp_path / "again"
    )
    with applied.data.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["job"] for row in rows} == {"Clerk", "Cook", "{Smith | Teacher}"}
    assert {row["age"] for row in rows} == {"<25", "25-56", ">=57"}


@pytest.mark.long
def test_apply_labels_are_true_of_every_record(table: Path, tmp_path: Path) -> None:
    """57 starts a group and is held by a suppressed record alone; next year it is released."""
    table.write_text("\n".join(line for line in table.read_text().splitlines() if not line.startswith("57,")) + "\n")
    changed(table, {"age": "57"})
    release = released(tmp_path, {"age": {}, "job": {}}, cut(age=("25", "57"), job=("each",)))
    assert {row["age"] for row in rows_of(release)} == {"<25", "25-57", ">=58"}
    new = next_year(tmp_path, *["57,10001,Cook,1980-01-01,1000.0,Bern,cold,1"] * 20)
    applied = apply_plan(release.folder, new, tmp_path / "next", state=tmp_path / "again")
    with applied.data.open() as file:
        assert {row["age"] for row in csv.DictReader(file)} == {"<25", "25-56", ">=57"}
