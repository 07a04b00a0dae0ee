"""A release as .sav, .dta or .xlsx: it opens in the programs' own reader with the right values, labels and missings."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat
import pytest
import python_calamine
from tests.labelled.survey import SEX, front, study_of, survey, write
from tests.release.fronts import publish

from sfumato.data.labelled_write import without_time
from sfumato.errors import InputError
from sfumato.methods.publish import verify


def released(folder: Path, source: str, kind: str | None = None, **given: Any) -> Any:
    study = study_of(write(folder / f"survey.{source}"), **given)
    release = publish(front(study), 0, folder / "out", format=kind, state=folder / "state")
    verify(release.folder, str(study.data.path)).raise_if_failed()
    return release


def cell(value: Any) -> str:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def kept(frame: pd.DataFrame, names: list[str]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(cell(value) for value in row) for row in frame[names].itertuples(index=False))


@pytest.mark.long
def test_spss_to_spss(tmp_path: Path) -> None:
    release = released(tmp_path, "sav")
    assert release.data.name == "data.sav"
    theirs, meta = pyreadstat.read_sav(str(release.data), user_missing=True)
    _, before = pyreadstat.read_sav(str(tmp_path / "survey.sav"), user_missing=True)
    assert list(theirs.columns) == ["age", "sex", "marital", "health", "visits", "seen"]
    # What is kept is kept: codes, labels of codes that occur, missing codes, formats, column labels.
    assert meta.variable_value_labels["sex"] == SEX
    assert meta.variable_value_labels["health"] == {1: "good", 2: "fair", 3: "poor"}  # -8 does not occur
    assert "health" not in meta.missing_ranges
    assert meta.missing_ranges["visits"] == [{"lo": -9.0, "hi": -1.0}]
    assert set(theirs["visits"].dropna()) == {0.0, 1.0, 2.5, -9.0}
    assert meta.column_names_to_labels["health"] == "Health as the person sees it"
    for name in ("sex", "health", "visits", "seen"):
        assert meta.original_variable_types[name] == before.original_variable_types[name]
    # What is generalized is a code with the category as its label.
    assert sorted(meta.variable_value_labels["age"].values()) == ["20-29", "30-39", "40-49", "50-59"]
    assert sorted(meta.variable_value_labels["marital"].values()) == ["married", "not married", "widowed | divorced"]
    source = survey()
    age = theirs["age"].map(meta.variable_value_labels["age"])
    decade = source["age"].map(lambda a: f"{int(a // 10) * 10}-{int(a // 10) * 10 + 9}")
    groups = {1: "not married", 2: "married", 3: "widowed | divorced", 4: "widowed | divorced"}
    names = ["age", "sex", "marital", "health", "visits", "seen"]
    ours = kept(theirs.assign(age=age, marital=theirs["marital"].map(meta.variable_value_labels["marital"])), names)
    meant = kept(source.assign(age=decade, marital=source["marital"].map(groups)), names)
    assert ours <= meant
    assert sum((meant - ours).values()) == release.manifest["suppressed"] > 0


@pytest.mark.long
def test_stata_to_stata_keeps_the_letters(tmp_path: Path) -> None:
    release = released(tmp_path, "dta")
    theirs, meta = pyreadstat.read_dta(str(release.data), user_missing=True)
    assert meta.missing_user_values == {"visits": ["b"]}
    assert meta.variable_value_labels["visits"] == {"b": "not asked"}
    assert set(theirs["visits"].dropna().map(str)) == {"0.0", "1.0", "2.5", "b"}
    assert meta.variable_value_labels["sex"] == SEX
    assert sorted(meta.variable_value_labels["age"].values()) == ["20-29", "30-39", "40-49", "50-59"]


@pytest.mark.long
def test_a_workbook(tmp_path: Path) -> None:
    release = released(tmp_path, "sav", "xlsx")
    book = python_calamine.CalamineWorkbook.from_path(release.data)
    assert book.sheet_names == ["data", "labels"]
    rows = book.get_sheet_by_name("data").to_python()
    assert rows[0] == ["age", "sex", "marital", "health", "visits", "seen"]
    assert {row[0] for row in rows[1:]} == {"20-29", "30-39", "40-49", "50-59"}
    assert {row[1] for row in rows[1:]} == {1.0, 2.0}
    assert {row[4] for row in rows[1:]} == {0.0, 1.0, 2.5, ""}  # a code that meant missing is an empty cell
    labels = book.get_sheet_by_name("labels").to_python()
    assert ["sex", "1", "male"] in labels
    assert ["marital", "{3 | 4}", "widowed | divorced"] in labels
    assert not any(row[:2] == ["health", "-8"] for row in labels)


SLOW = [("sav", "parquet"), ("sav", "dta"), ("csv", "dta"), ("dta", "sav"), ("xlsx", None)]


@pytest.mark.parametrize(
    ("source", "kind"),
    [("sav", "csv"), ("csv", "sav"), *(pytest.param(*pair, marks=pytest.mark.published) for pair in SLOW)],
)
def test_any_format_into_any_other(tmp_path: Path, source: str, kind: str | None) -> None:
    release = released(tmp_path, source, kind)
    assert release.data.suffix == f".{kind or source}"
    assert release.manifest["figures"]["k"]["value"] > 1


def test_text_stays_text_in_a_workbook(tmp_path: Path) -> None:
    frame = survey()
    frame["visits"] = ['=HYPERLINK("http://x")', "007", "+1", None] * 75
    study = study_of(write(tmp_path / "survey.csv", frame))
    release = publish(front(study), 0, tmp_path / "out", format="xlsx", state=tmp_path / "state")
    sheet = python_calamine.CalamineWorkbook.from_path(release.data).get_sheet_by_name("data").to_python()
    assert {row[4] for row in sheet[1:]} == {'=HYPERLINK("http://x")', "007", "+1", ""}
    import zipfile

    with zipfile.ZipFile(release.data) as packed:
        for name in packed.namelist():
            assert b"<f>" not in packed.read(name), name
            assert b"hyperlink " not in packed.read(name), name


def test_names_that_the_program_does_not_take(tmp_path: Path) -> None:
    study = study_of(write(tmp_path / "survey.csv", survey().rename(columns={"visits": "long"})))
    columns = {("long" if name == "visits" else name): column for name, column in study.columns.items()}
    study = study.model_copy(update={"columns": columns})
    release = publish(front(study), 0, tmp_path / "out", format="dta", state=tmp_path / "state")
    _, meta = pyreadstat.read_dta(str(release.data))
    assert "long_" in meta.column_names
    assert meta.column_names_to_labels["long_"] == "long"
    assert "long" in release.manifest["columns"]
    verify(release.folder, study.data.path).raise_if_failed()


@pytest.mark.long
def test_long_categories_are_text(tmp_path: Path) -> None:
    study = study_of(write(tmp_path / "survey.sav"))
    tree = tmp_path / "marital.csv"
    tree.write_text(tree.read_text("utf-8").replace("not married", "n" * 130), "utf-8")
    release = publish(front(study), 0, tmp_path / "out", state=tmp_path / "state")
    theirs, meta = pyreadstat.read_sav(str(release.data))
    assert "n" * 130 in set(theirs["marital"])
    assert "marital" not in meta.variable_value_labels


def test_a_format_that_cannot_be_written(tmp_path: Path) -> None:
    study = study_of(write(tmp_path / "survey.sav"))
    with pytest.raises(InputError, match='as "sas7bdat"'):
        publish(front(study), 0, tmp_path / "out", format="sas7bdat", state=tmp_path / "state")
    with pytest.raises(InputError, match="to be written as dta"):
        publish(front(study), 0, tmp_path / "out", name="x.sav", format="dta", state=tmp_path / "state")


def test_the_file_does_not_say_when_it_was_written(tmp_path: Path) -> None:
    for kind, spelled in (("sav", b"01 Jan 7000:00:00"), ("dta", b"01 Jan 1970 00:00")):
        path = write(tmp_path / f"survey.{kind}")
        before, _ = getattr(pyreadstat, f"read_{kind}")(str(path))
        assert spelled not in path.read_bytes()
        without_time(path, kind)
        assert spelled in path.read_bytes()[:400]
        after, _ = getattr(pyreadstat, f"read_{kind}")(str(path))
        pd.testing.assert_frame_equal(before, after)
