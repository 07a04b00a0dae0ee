"""Value labels stand beside the codes wherever values are shown: run file, hierarchy, words of a plan, map, page."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.labelled.survey import front, study_of, write
from typer.testing import CliRunner

from sfumato.auditing.inspect import inspect
from sfumato.cli import application
from sfumato.errors import InputError
from sfumato.plans.recodings import CutPlan, LevelPlan
from sfumato.report.map_figures import bars_of
from sfumato.web.api.hierarchies import _described
from sfumato.web.api.shelf import checked
from sfumato.web.workspace import Places


def test_in_words_and_bars(tmp_path: Path) -> None:
    table = study_of(write(tmp_path / "survey.sav")).table()
    words = LevelPlan({"age": 1, "sex": 1, "marital": 1}).words(table)
    assert "marital in 3 groups (not married, married, {3 | 4} (widowed | divorced))" in words
    cuts = CutPlan({"age": ("20",), "sex": ("1", "2"), "marital": ("1", "3")})
    assert "marital in 2 groups ([1 .. 2] (single .. married), {3 | 4} (widowed | divorced))" in cuts.words(table)
    domain = table.domains[table.columns.index("sex")]
    part = LevelPlan({"age": 0, "sex": 0, "marital": 0}).recoding(table)[table.columns.index("sex")]
    assert [bar.text for bar in bars_of(domain, part, domain.counts)] == [
        "1 (male) → 1 (male)",
        "2 (female) → 2 (female)",
    ]


def test_in_a_hierarchy(tmp_path: Path) -> None:
    study = study_of(write(tmp_path / "survey.sav"))
    given = ["hierarchy", "show", str(tmp_path / "marital.csv"), "--data", str(tmp_path / "survey.sav")]
    shown = CliRunner().invoke(application(), given)
    assert shown.exit_code == 0, shown.output
    assert "1 (single)" in shown.output
    assert "{3 | 4} (widowed | divorced)" in shown.output
    found = _described(study, "marital", study.table().domains[2].hierarchy)
    assert found["shown"]["2"] == "2 (married)"


def test_in_the_map_and_the_first_run_file(tmp_path: Path) -> None:
    from sfumato.decide.map import map_page

    study = study_of(write(tmp_path / "survey.sav"))
    page = map_page(front(study, {"age": 1, "sex": 0, "marital": 1}, 0), study.table())
    assert "widowed" in page
    assert "2 (female)" in page
    text = inspect(str(tmp_path / "survey.sav")).run_file("survey.sav")
    assert "# Marital status: " in text
    assert "declares missing codes for marital, health, visits" in text


def test_a_label_says_what_a_column_is(tmp_path: Path) -> None:
    import pyreadstat
    from tests.labelled.survey import survey

    frame = survey().rename(columns={"sex": "v7"})
    pyreadstat.write_sav(frame, tmp_path / "a.sav", column_labels={"v7": "Sex of respondent"})
    found = inspect(str(tmp_path / "a.sav"))
    roles = {column.name: suggestion.role for column, suggestion in zip(found.columns, found.suggestions, strict=True)}
    assert roles["v7"] == "quasi_identifier"


def test_a_workbench_reads_no_codebook_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside.json").write_text('{"sex": {"label": "Sex"}}', "utf-8")
    study = study_of(write(tmp_path / "inside" / "survey.sav"), codebook=str(tmp_path / "outside.json"))
    places = Places(tmp_path / "inside")
    with pytest.raises(InputError):
        checked(places, study)
