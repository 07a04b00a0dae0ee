"""Publishing: the written file measures as the search said, whatever the table looks like."""

from __future__ import annotations

import csv
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import front_of, publish, small, write_csv

import sfumato as sf
from sfumato.errors import DataError, HierarchyError, InputError, SfumatoError
from sfumato.front import Front
from sfumato.methods.publish import verify
from sfumato.release.publish import Release
from sfumato.study import ColumnSettings

ADULT = {"age": 4, "workclass": 1, "education": 2, "marital-status": 1, "race": 1, "sex": 0}
ADULT |= {"native-country": 3, "salary-class": 0}
MIDDLE = {"age": 1, "post code": 1, "sex": 0}
RAW = {"age": 0, "post code": 0, "sex": 0}
TOP = {"age": 3, "post code": 3, "sex": 1}


def rows_of(release: Release) -> list[dict[str, str]]:
    with release.data.open(newline="") as file:
        return list(csv.DictReader(file))


def checked(front: Front, folder: Path, **options: Any) -> Release:
    """Publish point 0, verify it with and without the source."""
    release = publish(front, 0, folder, state=folder.parent / "state", **options)
    verify(folder).raise_if_failed()
    verify(folder, front.study.folder / front.study.data.path).raise_if_failed()
    for name, value in front.point(0).values.items():
        assert release.manifest["figures"][name]["value"] == pytest.approx(value, rel=1e-9), name
    return release


@pytest.mark.long
def test_adult_measures_as_the_search_said(tmp_path: Path) -> None:
    names = ("k", "general_loss", "distinct_l", "t_closeness", "precision", "non_uniform_entropy", "sum_k")
    front = front_of(sf.read(sf.sample("adult-complete")), [ADULT], 301, names)
    release = checked(front, tmp_path / "out")
    found = release.manifest
    assert (found["records"], found["suppressed"]) == (30162, front.points[0].suppressed)
    assert found["released"] == 30162 - found["suppressed"]
    assert found["figures"]["non_uniform_entropy"]["measured_on"] == "source"
    with gzip.open(release.data, "rt") as file:
        rows = list(csv.reader(file))
    assert len(rows) == found["released"]
    assert len(rows[0]) == 9


@pytest.mark.long
@pytest.mark.parametrize("levels", [RAW, MIDDLE, TOP, {"age": 2, "post code": 2, "sex": 0}])
@pytest.mark.parametrize("missing", ["drop", "category"])
def test_recipes_missing_values_and_every_level(tmp_path: Path, levels: dict[str, int], missing: str) -> None:
    study = small(tmp_path, missing)
    front = front_of(study, [levels], 30, ("k", "general_loss", "width_loss", "precision", "arx_loss", "entropy_l"))
    release = checked(front, tmp_path / "out")
    rows = rows_of(release)
    assert "name" not in rows[0]
    assert list(rows[0])[:5] == ["age", "post code", "sex", "ill", "income"]
    shown = {row["sex"] for row in rows}
    assert shown <= {"F", "M", "*"} | ({"?"} if missing == "category" and levels["sex"] == 0 else set())
    if levels is TOP:
        assert shown == {"*"}
        assert release.manifest["suppressed"] == 0


def test_missing_values_that_match_anything(tmp_path: Path) -> None:
    study = small(tmp_path, "wildcard")
    release = checked(front_of(study, [{"age": 2, "post code": 2, "sex": 0}]), tmp_path / "out")
    assert "?" in {row["sex"] for row in rows_of(release)}


def test_one_spelling_of_missing(tmp_path: Path) -> None:
    """Two spellings in one class would tell records apart that are counted as alike."""
    write_csv(tmp_path / "t.csv", [["q", "x"], *([["?", "a"], ["NA", "b"], [" ", "c"], ["v", "d"], ["v", "e"]] * 2)])
    columns = {"q": {"role": "quasi_identifier"}, "x": {"role": "other"}}
    data = {"path": str(tmp_path / "t.csv"), "na": ["?", "NA"], "missing": "category"}
    release = checked(front_of(sf.Study(data=data, columns=columns), [{"q": 0}]), tmp_path / "out")
    assert sorted(row["q"] for row in rows_of(release)) == ["?"] * 6 + ["v"] * 4


def test_parquet_keeps_types_where_it_can(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "Age": [20.0, 21.0, None, float("nan"), 25.0] * 8,
            "age": list(range(5)) * 8,
            'odd "name", yes': ["a", " a", "b", "b", "a"] * 8,
            "when": pa.array([1, 2, 3, 4, 5, 6, 7, 8] * 5, pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    columns = {
        "Age": {"role": "quasi_identifier"},
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [2]}},
        'odd "name", yes': {"role": "quasi_identifier"},
        "when": {"role": "other"},
    }
    study = sf.Study(data={"path": str(tmp_path / "t.parquet"), "missing": "category"}, columns=columns)
    front = front_of(study, [{"Age": 0, "age": 1, 'odd "name", yes': 0}])
    release = checked(front, tmp_path / "out")
    read = pq.read_table(release.data)
    assert read.column_names == ["Age", "age_1", 'odd "name", yes', "when"]  # the engine tells case apart so
    assert "differ only in case" in release.warnings[0]
    assert [str(field.type) for field in read.schema] == ["double", "string", "string", "int64"]
    assert set(read.column(2).to_pylist()) == {"a", "b"}


def test_labels_that_stand_on_several_levels(tmp_path: Path) -> None:
    """`1` is a value and a group of two: only the level tells which."""
    write_csv(tmp_path / "h.csv", [["1", "1", "*"], ["2", "1", "*"], ["3", "3", "*"], ["4", "3", "*"]])
    write_csv(tmp_path / "t.csv", [["q", "s"], *([v, s] for v in "1234" for s in "abcde")])
    columns = {"q": {"role": "quasi_identifier", "hierarchy": str(tmp_path / "h.csv")}, "s": {"role": "sensitive"}}
    study = sf.Study(data={"path": str(tmp_path / "t.csv")}, columns=columns)
    release = checked(front_of(study, [{"q": 1}], names=("k", "general_loss", "precision")), tmp_path / "out")
    assert {row["q"] for row in rows_of(release)} == {"1", "3"}
    assert "several levels" in release.warnings[0]


def test_weights_and_parameters_travel_with_the_release(tmp_path: Path) -> None:
    study = small(tmp_path).with_search(weights={"age": 3})
    front = front_of(study, [MIDDLE], 40)
    assert front.points[0].loss != front_of(small(tmp_path), [MIDDLE], 40).points[0].loss
    checked(front, tmp_path / "out")


def test_random_order_and_original_dialect(tmp_path: Path) -> None:
    study = small(tmp_path)
    rows = (tmp_path / "people.csv").read_text().splitlines()
    (tmp_path / "people.csv").write_text("\n".join(row.replace(",", ";") for row in rows) + "\n")
    first, second = (checked(front_of(study, [RAW]), tmp_path / name) for name in ("a", "b"))
    assert first.data.read_text().startswith("age;post code;sex;ill;income\n")
    assert first.data.read_text() != second.data.read_text()
    assert sorted(first.data.read_text()) == sorted(second.data.read_text())
    assert second.warnings == ()


def test_cells_the_dialect_cannot_hold_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("q,x\n" + '1,say "a"\n2,b\n' * 4)
    columns = {"q": {"role": "quasi_identifier"}, "x": {"role": "other"}}
    study = sf.Study(data={"path": str(tmp_path / "t.csv"), "quote": ""}, columns=columns)
    with pytest.raises(SfumatoError):
        publish(front_of(study, [{"q": 0}]), 0, tmp_path / "out", state=tmp_path / "state")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_labels_that_read_as_missing_are_refused(tmp_path: Path) -> None:
    study = small(tmp_path).replace(data={"na": ("?", "*")})
    with pytest.raises(HierarchyError, match="read as missing"):
        publish(front_of(study, [TOP]), 0, tmp_path / "out", state=tmp_path / "state")


def test_refusals_leave_nothing(tmp_path: Path) -> None:
    study = small(tmp_path)
    front = front_of(study, [MIDDLE], 30)
    point = front.points[0]
    state = tmp_path / "state"
    for wrong in (
        replace(point, values={**point.values, "k": point.values["k"] + 1}),
        replace(point, values={**point.values, "general_loss": point.values["general_loss"] * (1 + 1e-8)}),
        replace(point, loss=point.loss + 1e-6),
        replace(point, suppressed=point.suppressed + 1),
    ):
        with pytest.raises(SfumatoError, match="as in the search"):
            publish(replace(front, points=(wrong,)), 0, tmp_path / "out", state=state)
    greedy = replace(point, plan=replace(point.plan, suppress_below=10**6))
    with pytest.raises(DataError, match="nothing would be released"):
        publish(replace(front, points=(greedy,)), 0, tmp_path / "out", state=state)
    with pytest.raises(InputError, match="no point 7"):
        publish(front, 7, tmp_path / "out", state=state)
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="already exists"):
        publish(front, 0, tmp_path / "there", state=state)
    with pytest.raises(InputError, match="no folder"):
        publish(front, 0, tmp_path / "no" / "out", state=state)
    with (tmp_path / "people.csv").open("a") as file:
        file.write("z,30,111,F,flu,1\n")
    with pytest.raises(InputError, match="has changed since the search"):
        publish(front, 0, tmp_path / "out", state=state)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "state") == ["people.csv", "there"]


def test_the_ledger_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.base.trust import state_folder

    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "x"))
    assert state_folder() == tmp_path / "x"
    monkeypatch.delenv("SFUMATO_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "y"))
    assert state_folder() == tmp_path / "y" / "sfumato"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state_folder() == Path.home() / ".local" / "state" / "sfumato"


def test_an_extreme_value_is_warned_of_and_not_told(tmp_path: Path) -> None:
    study = small(tmp_path)
    text = (tmp_path / "people.csv").read_text().splitlines()
    text[5] = text[5].rsplit(",", 1)[0] + ",98765432"
    (tmp_path / "people.csv").write_text("\n".join(text) + "\n")
    release = checked(front_of(study, [MIDDLE]), tmp_path / "out")
    (warning,) = release.warnings
    assert "income" in warning
    assert "98765432" not in warning


def test_the_reports_tell_the_outside_little(tmp_path: Path) -> None:
    study = small(tmp_path, rows=400)
    front = front_of(study, [{"age": 2, "post code": 2, "sex": 0}], 9)
    assert 0 < front.points[0].suppressed < 10
    release = checked(front, tmp_path / "out", reason="agreed <on> Monday")
    outside = (release.public / "external.html").read_text()
    assert "fewer than 10 records" in outside
    assert f"{400 - front.points[0].suppressed}" in outside
    assert str(400) not in outside.replace(f"{400 - front.points[0].suppressed}", "")
    for secret in (front.fingerprint, "flu", "gout", "seed", "people.csv.", "p17", "http", "Monday", '"suppressed":'):
        assert secret not in outside, secret
    shown = re.sub(r"<style.*?</style>", "", outside, flags=re.DOTALL)
    assert re.findall(r"(\d+) records?\b", shown.replace("fewer than 10 records", "")) == []
    inside = (release.folder / "private" / "internal.html").read_text()
    assert "agreed &lt;on&gt; Monday" in inside
    assert "<td>chosen</td>" in inside
    for page in (outside, inside, (release.public / "dictionary.html").read_text()):
        assert "<script src" not in page
        assert "http" not in page


@pytest.mark.long
def test_the_dictionary(tmp_path: Path) -> None:
    release = publish(
        front_of(sf.read(sf.sample("adult-complete")), [ADULT], 301), 0, tmp_path / "adult", state=tmp_path
    )
    dictionary = json.loads((release.public / "dictionary.json").read_text())
    columns = {column["name"]: column for column in dictionary["columns"]}
    assert columns["workclass"]["recode"]["Self-emp-inc"] == "Self-employed"
    assert columns["sex"]["done"] == "kept"
    assert columns["race"]["done"] == "hidden"
    assert dictionary["columns_left_out"] == 6
    for name in ("dictionary.json", "dictionary.html", "external.html"):
        assert "Adm-clerical" not in (release.public / name).read_text()
    built = checked(front_of(small(tmp_path), [MIDDLE], 30), tmp_path / "built")
    text = (built.public / "dictionary.json").read_text()
    assert "97" not in text.replace("90-99", "")  # the only one of that age; the list of values would tell
    assert "are not listed" in text


def test_an_entirely_missing_column_and_one_value(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [["q", "e", "o"], *([["a", "", "1"], ["b", "", "1"]] * 4)])
    columns = {name: {"role": "quasi_identifier"} for name in "qeo"}
    study = sf.Study(data={"path": str(tmp_path / "t.csv"), "missing": "category"}, columns=columns)
    checked(front_of(study, [{"q": 0, "e": 0, "o": 1}]), tmp_path / "out")
    checked(front_of(study, [{"q": 0, "e": 1, "o": 0}]), tmp_path / "top")


def test_formulas_are_neutralised_only_where_asked(tmp_path: Path) -> None:
    cells = ["=cmd|'/c calc'!A0", "+1+1", "-5", "@SUM(A1)", "plain"]
    rows = [["q", "note"], *([["a" if i % 2 else "b", cells[i % 5]] for i in range(20)])]
    write_csv(tmp_path / "t.csv", rows)
    columns = {"q": {"role": "quasi_identifier"}, "note": {"role": "other"}}
    study = sf.Study(data={"path": str(tmp_path / "t.csv")}, columns=columns)
    assert {row["note"] for row in rows_of(checked(front_of(study, [{"q": 0}]), tmp_path / "as-is"))} == set(cells)
    plain = checked(front_of(study.replace(data={"neutralise_formulas": True}), [{"q": 0}]), tmp_path / "plain")
    assert {row["note"] for row in rows_of(plain)} == {"'" + cells[0], "'+1+1", "-5", "'@SUM(A1)", "plain"}
    named = study.replace(columns={"q": ColumnSettings(role="quasi_identifier"), "note": ColumnSettings(role="drop")})
    write_csv(tmp_path / "t.csv", [["q", "note"], *([["=a", "x"], ["b", "y"]] * 4)])
    with pytest.raises(HierarchyError, match="takes for formulas"):
        publish(front_of(named.replace(data={"neutralise_formulas": True}), [{"q": 0}]), 0, tmp_path / "no")
