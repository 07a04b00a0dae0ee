"""Where a number of persons or households repeats, nothing is published until the publisher says what a row is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest

import sfumato as sf
from sfumato.errors import SfumatoError

VISITS = 4_483


def visits() -> pandas.DataFrame:
    """600 patients with 4,483 visits; age, postcode and sex are those of the patient."""
    draw = np.random.default_rng(27)
    number = np.where(draw.random(600) < 0.08, draw.integers(1, 3, 600), draw.integers(4, 13, 600))
    place = 0
    while number.sum() != VISITS:
        step = 1 if number.sum() < VISITS else -1
        if 4 <= number[place] + step <= 12:
            number[place] += step
        place = (place + 1) % 600
    owner = np.repeat(np.arange(600), number)
    patients = pandas.DataFrame(
        {
            "patient_id": 10_000 + np.arange(600) * 7,
            "age": draw.integers(18, 90, 600),
            "zip": 10_000 + draw.integers(0, 40, 600),
            "sex": draw.choice(["F", "M"], 600),
        }
    )
    table = patients.iloc[owner].reset_index(drop=True)
    table["diagnosis"] = draw.choice(["flu", "asthma", "fracture", "migraine", "diabetes", "none"], VISITS)
    return table.sample(frac=1, random_state=27).reset_index(drop=True)


def study(table: pandas.DataFrame, **roles: object) -> sf.Study:
    settings: dict[str, object] = {"quasi_identifiers": ["age", "zip", "sex"], "sensitive": ["diagnosis"]}
    declared = sf.Study(table, **(settings | roles))  # type: ignore[arg-type]
    return declared.with_hierarchies(age=sf.intervals(10, 20), zip=sf.prefixes(), sex=sf.flat())


def published(declared: sf.Study, folder: Path) -> sf.Release:
    front = sf.search(declared, max_suppression=0.05, objectives=["k", "general_loss"])
    point = next(point for point in front if point["k"] >= 3)
    return sf.publish(front, point.id, folder / "release", state=folder / "state")


def test_the_visits_of_600_patients_are_refused_by_default(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError) as caught:
        published(study(visits(), identifiers=["patient_id"]), tmp_path)
    error = caught.value
    assert error.exit_code == 3
    assert [finding["key"] for finding in error.as_dict()["findings"]] == ["unit:patient_id"]
    assert "600 values in 4,483 rows" in error.what
    assert 'role = "unit"' in error.remedy and "unit_reason" in error.remedy
    assert not (tmp_path / "release").exists()
