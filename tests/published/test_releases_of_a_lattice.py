"""The whole front over node and threshold of Adult, and ARX's optima with two criteria."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

import sfumato as sf

pytestmark = pytest.mark.published

ORDER = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]
MEASURES = {
    "distinct_l": "distinct_l",
    "entropy_l": "entropy_l",
    "t": "t_closeness",
    "beta": "beta_likeness",
    "ebeta": "enhanced_beta",
    "delta": "delta_disclosure",
}


@pytest.mark.parametrize(("limit", "points"), [(0, 13), (0.01, 61), (0.05, 99), (0.10, 116)])
def test_the_front_of_adult_is_that_of_every_node_and_threshold(
    adult: sf.FrequencyTable, limit: float, points: int
) -> None:
    study = sf.read(sf.sample("adult")).with_search(max_suppression=limit)
    front, full = sf.search(study, table=adult), sf.search(study.with_search(algorithm="exhaustive"), table=adult)
    assert len(front.points) == len(full.points) == points
    assert full.evaluations == 17_920
    assert [(p.values, p.plan, p.suppressed) for p in front.points] == [
        (p.values, p.plan, p.suppressed) for p in full.points
    ]
    assert front.evaluations < 0.25 * front.space


def test_the_optima_of_arx_with_two_criteria(shared: Path) -> None:
    """56 settings. Rounding makes ARX take a class of exactly ℓ equally common values to be just short of entropy ℓ;
    the same classes go here when a hundred-millionth more is demanded."""
    folder = shared / "data/arx/adult"
    columns: dict[str, dict[str, object]] = {
        name: {
            "role": "quasi_identifier",
            "hierarchy": {"path": str(folder / f"adult_hierarchy_{name}.csv"), "separator": ";", "header": False},
        }
        for name in ORDER
    }
    columns["occupation"] = {"role": "sensitive"}
    study = sf.Study(data={"path": str(folder / "adult.csv"), "separator": ";"}, columns=columns)
    table = study.table()
    with (folder / "reference_arx392_adult8_criteria_k5.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 56
    for row in rows:
        name, *numbers = row["criterion"].split(":")
        given = [float(number) for number in numbers]
        measures = {"delta_disclosure": {"absent": "ignored"}, "recursive_l": {"c": given[0]}}
        limit = {"recursive_l": given[-1]} if name == "recursive" else {MEASURES[name]: given[0]}
        if name == "entropy_l":
            limit = {"entropy_l": given[0] * (1 + 1e-8)}
        if name == "delta":  # ARX's δ is in bits
            limit = {"delta_disclosure": given[0] * math.log(2)}
        asked = study.with_settings({"measures": measures}).with_search(
            objectives=["arx_loss"], constraints={"k": 5} | limit, max_suppression=float(row["limit"])
        )
        (point,) = sf.search(asked, table=table).points
        assert point.values["arx_loss"] == pytest.approx(float(row["loss"]), abs=1e-9), row
        assert point.suppressed == int(row["suppressed"]), row
