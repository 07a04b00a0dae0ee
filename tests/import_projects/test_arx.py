"""Projects of ARX: opened, searched to the same optimum, and refused where they are not what they seem."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import DataError
from sfumato.import_projects.arx import import_arx
from tests.import_projects.projects import ROWS, SMALL, configuration, definition, write_project


def test_a_project_of_four_people(tmp_path: Path) -> None:
    """k = 2 without suppression: the only two-anonymous node but the hidden one keeps the sexes and decades."""
    imported = import_arx(write_project(tmp_path / "p.deid"), tmp_path / "out")
    study = sf.read(imported.run_file)
    assert {name: column.role.value for name, column in study.columns.items()} == {
        "name": "identifier",
        "age": "quasi_identifier",
        "sex": "quasi_identifier",
        "ill": "sensitive",
        "note": "other",
    }
    assert (study.search.constraints, study.search.max_suppression) == ({"k": 2}, 0.0)
    point = sf.search(study).points[0]
    assert point.plan.entries()["plan"] == {"age": 1, "sex": 0}


@pytest.mark.parametrize("limit", [0.01])
def test_the_same_optimum_as_arx(shared: Path, tmp_path: Path, limit: float) -> None:
    """Done when, 4: of 12,960 nodes the one of least Loss that ARX 3.9.2 finds at k = 5 and 1 % suppression."""
    folder = shared / "data/arx/adult"
    rows = (folder / "adult.csv").read_text("utf-8")
    names = rows.split("\n", 1)[0].strip().split(";")
    attributes: dict[str, tuple[str, str | None]] = {
        name: ("QUASI_IDENTIFYING_ATTRIBUTE", (folder / f"adult_hierarchy_{name}.csv").read_text("utf-8"))
        for name in names
    }
    path = write_project(tmp_path / "adult.deid", attributes, rows, ["5-anonymity"], limit)
    front = sf.search(sf.read(import_arx(path, tmp_path / "out").run_file))
    with (folder / "reference_arx392_adult9_k5_all_nodes.csv").open() as file:
        nodes = [row for row in csv.DictReader(file) if row["feasible_at_1pct_suppression"] == "1"]
    best = min(nodes, key=lambda row: float(row["arx_loss_k5"]))
    point = front.points[0]
    assert point.plan.entries()["plan"] == {name: int(best[name]) for name in names}
    assert point.values["arx_loss"] == pytest.approx(float(best["arx_loss_k5"]), abs=1e-9)


def test_every_privacy_model_that_is_known_here(tmp_path: Path) -> None:
    criteria = [
        "3-anonymity",
        "distinct-2-diversity for attribute 'ill'",
        "shannon-entropy-1.5-diversity for attribute 'ill'",
        "recursive-(3.0,2)-diversity for attribute 'ill'",
        "0.2-closeness with ordered distance for attribute 'ill'",
        "2.0-basic likeness for attribute 'ill'",
        "2.5-enhanced likeness for attribute 'ill'",
        "1.0-disclosure privacy for attribute 'ill'",
        "(0.0,0.5)-presence",
    ]
    imported = import_arx(write_project(tmp_path / "p.deid", criteria=criteria, limit=1.0), tmp_path / "out")
    study = sf.read(imported.run_file)
    assert study.search.constraints == {
        "k": 3,
        "distinct_l": 2,
        "entropy_l": 1.5,
        "recursive_l": 2,
        "t_closeness": 0.2,
        "beta_likeness": 2,
        "enhanced_beta": 2.5,
        "delta_disclosure": pytest.approx(0.6931471805599453),
    }
    assert study.measures == {"recursive_l": {"c": 3.0}, "delta_disclosure": {"absent": "ignored"}}
    assert study.columns["ill"].distance == "ordered"
    assert study.search.max_suppression == 0.999
    text = imported.run_file.read_text("utf-8")
    for note in ("not carried over: (0.0,0.5)-presence", "became 99.9%", "bits"):
        assert any(note in one for one in imported.notes)
        assert note in text


def test_what_is_not_carried_over_is_said(tmp_path: Path) -> None:
    attributes = SMALL | {"sex": ("QUASI_IDENTIFYING_ATTRIBUTE", None)}
    weights = "".join(
        f"<attributeWeight><attribute>{name}</attribute><weight>{weight}</weight></attributeWeight>"
        for name, weight in (("age", 1.0), ("sex", 0.5), ("gone", 0.2))
    )
    given = {
        "input/definition.xml": definition(attributes, ("1", "2")),
        "input/config.xml": configuration(["2-anonymity"], 0.1, "Entropy-based information loss?", weights),
    }
    imported = import_arx(write_project(tmp_path / "p.deid", attributes, **given), tmp_path / "out")
    study = sf.read(imported.run_file)
    assert study.search.weights == {"age": 2, "sex": 1}
    for note in ("sex has no hierarchy", "age was limited to levels 1 to 2", "aggregated"):
        assert any(note in one for one in imported.notes), imported.notes


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_project(tmp_path / "p.deid")
    assert run(["import", "arx", str(path), "-o", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["columns"] == 5
    assert Path(told["run_file"]).is_file()
    assert run(["import", "arx", str(path), "-o", str(tmp_path / "out")]) == 2, "an existing folder is not replaced"
    assert run(["import", "arx", str(tmp_path / "none.deid"), "-o", str(tmp_path / "other")]) == 2


ENTITIES = '<!DOCTYPE d [<!ENTITY a "x">]><definition><assigment><name>&a;</name></assigment></definition>'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"input/definition.xml": ENTITIES}, "declares a document type or entities"),
        ({"input/definition.xml": "<definition>" + "<a>" * 40}, "more elements, or deeper"),
        ({"input/definition.xml": "<definition>"}, "not well-formed"),
        ({"input/definition.xml": "<definition></definition>"}, "declares no column"),
        ({"input/definition.xml": definition(SMALL).replace("INSENSITIVE", "UNKNOWN")}, "no type that is known"),
        ({"data/input.csv": ROWS.replace("note", "other")}, "declares 5 or other ones"),
        ({"input/config.xml": configuration([], 2.0)}, "a suppression limit of 2.0"),
        ({"input/config.xml": configuration([], 0).replace("0</", "lots</")}, "a suppression limit of lots"),
    ],
)
def test_a_project_that_is_not_one_is_refused(tmp_path: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        import_arx(write_project(tmp_path / "p.deid", **given), tmp_path / "out")
    assert not (tmp_path / "out").exists(), "nothing is left"


def test_names_in_the_archive_are_no_paths(tmp_path: Path) -> None:
    """A column, and with it the file of its hierarchy, may have any name; what is written has names of ours."""
    name = "../../evil"
    attributes = {name: SMALL["age"], "ill": SMALL["ill"]}
    rows = f"{name};ill\n31;flu\n35;none\n62;flu\n64;flu\n"
    (tmp_path / "deep").mkdir()
    imported = import_arx(write_project(tmp_path / "p.deid", attributes, rows), tmp_path / "deep" / "out")
    written = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert written == ["deep/out/data.csv", "deep/out/hierarchies/1-evil.csv", "deep/out/run.toml", "p.deid"]
    assert sf.read(imported.run_file).table().records == 4


def test_a_bomb_ends_at_its_limit(tmp_path: Path) -> None:
    path = write_project(tmp_path / "p.deid", **{"input/config.xml": "<config>" + " " * (17 << 20) + "</config>"})
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="larger than 16 MiB"):
        import_arx(path, tmp_path / "out")


def test_an_archive_with_two_files_of_one_name_is_refused(tmp_path: Path) -> None:
    path = write_project(tmp_path / "p.deid")
    with zipfile.ZipFile(path, "a") as archive_file, pytest.warns(UserWarning, match="Duplicate"):
        archive_file.writestr("input/config.xml", "<config/>")
    with pytest.raises(DataError, match="two of one name"):
        import_arx(path, tmp_path / "out")
    (tmp_path / "no.deid").write_text("no archive")
    with pytest.raises(DataError, match="cannot be opened"):
        import_arx(tmp_path / "no.deid", tmp_path / "out")
