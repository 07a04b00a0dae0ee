"""Roles that are never released: no system writes their columns, and no option brings them back."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.release.fronts import front_of, publish, small

import sfumato as sf
from sfumato.data.settings import Role
from sfumato.errors import StudyError
from sfumato.methods.channel.estimate import warner
from sfumato.methods.channel.release import disguise
from sfumato.plans.channel import Channel

LEVELS = {"age": 2, "post code": 1, "sex": 1}
UNRELEASED = ("identifier", "drop", "vital")


def header(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return next(csv.reader(file))


def study_with(folder: Path, role: str) -> sf.Study:
    study = small(folder, income={"role": role})
    return (
        study.replace(data={"unit": "row", "unit_reason": "every line is one person"})
        if role == "identifier"
        else study
    )


def channel_of() -> Channel:
    values = ("cold", "flu", "gout")
    return Channel(("ill",), values, values, warner(3, 0.8))


def test_roles_say_whether_they_are_released() -> None:
    assert {str(role) for role in Role if not role.released} == {*UNRELEASED, "unit", "household"}
    assert {"area", "basic"}.isdisjoint(map(str, Role))


@pytest.mark.parametrize("role", UNRELEASED)
def test_a_recoded_table_lacks_them(tmp_path: Path, role: str) -> None:
    front = front_of(study_with(tmp_path, role), [LEVELS], 20)
    release = publish(front, 0, tmp_path / "out", state=tmp_path / "state")
    assert "income" not in header(release.data)


@pytest.mark.parametrize("role", UNRELEASED)
def test_a_disguised_table_lacks_them(tmp_path: Path, role: str) -> None:
    study = study_with(tmp_path, role)
    accept = {"k": "a small table made for a test", "uniques": "a small table made for a test"}
    release = disguise(study, [channel_of()], tmp_path / "d", keep=None, accept=accept, state=tmp_path / "state")
    assert header(release.data) == ["ill", "age", "post code", "sex"]
    with pytest.raises(StudyError, match=f"income has the role {role} and cannot be kept"):
        disguise(study, [channel_of()], tmp_path / "e", keep=["income"])


@pytest.mark.parametrize("role", UNRELEASED)
def test_a_released_file_is_read_without_them(tmp_path: Path, role: str) -> None:
    """The study that declares such a column reads its own release, which lacks it."""
    study = study_with(tmp_path, role)
    lines = (tmp_path / "people.csv").read_text().splitlines()
    (tmp_path / "released.csv").write_text("\n".join(",".join(line.split(",")[1:5]) for line in lines) + "\n")
    assert study.source(tmp_path / "released.csv").names == ("age", "post code", "sex", "ill")
