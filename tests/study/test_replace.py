"""A study with changed sections keeps everything else, and is checked like a run file."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.data.settings import Role
from sfumato.study.sections import ColumnSettings, SearchSettings


@pytest.fixture
def study() -> sf.Study:
    columns = {"age": {"role": "quasi_identifier", "missing": "drop"}, "ill": {"role": "sensitive"}}
    search = {"max_suppression": 0.1, "seed": 7}
    data = {"path": "people.csv", "na": ["?"]}
    return sf.Study(data=data, columns=columns, search=search).placed(Path("/somewhere"))


def test_settings_in_a_mapping_keep_the_others(study: sf.Study) -> None:
    changed = study.replace(search={"seed": 8}, data={"missing": "wildcard"}, engine="spark")
    assert (changed.search.seed, changed.search.max_suppression) == (8, 0.1)
    assert (changed.data.na, changed.data.missing, changed.engine) == (("?",), "wildcard", "spark")
    assert changed.folder == study.folder
    assert changed.columns == study.columns
    assert (study.search.seed, study.data.missing, study.engine) == (7, "category", "duckdb")


def test_a_section_object_replaces_the_section(study: sf.Study) -> None:
    changed = study.replace(search=SearchSettings(seed=8))
    assert (changed.search.seed, changed.search.max_suppression) == (8, 0.0)


def test_columns_are_replaced_one_by_one_and_wholly(study: sf.Study) -> None:
    changed = study.replace(columns={"age": ColumnSettings(role=Role.OTHER)})
    assert changed.columns["age"] == ColumnSettings(role=Role.OTHER)
    assert changed.columns["ill"] == study.columns["ill"]


def test_what_a_run_file_refuses_is_refused(study: sf.Study) -> None:
    with pytest.raises(sf.StudyError, match="seed"):
        study.replace(search={"seed": -1})
    with pytest.raises(sf.StudyError, match="serach"):
        study.replace(serach={"seed": 1})
    with pytest.raises(sf.StudyError, match="does not read"):
        study.replace(columns={"age": study.columns["age"].model_copy(update={"harmless": ("x",)})})
