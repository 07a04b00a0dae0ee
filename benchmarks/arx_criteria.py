"""The 56 settings of two criteria on Adult whose optima ARX 3.9.2 recorded."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import sfumato as sf

RECORDED = "reference_arx392_adult8_criteria_k5.csv"
ORDER = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]
MEASURES = {
    "distinct_l": "distinct_l",
    "entropy_l": "entropy_l",
    "t": "t_closeness",
    "beta": "beta_likeness",
    "ebeta": "enhanced_beta",
    "delta": "delta_disclosure",
}


def study_of(folder: Path) -> sf.Study:
    """Adult as ARX's example declares it, with the occupation sensitive."""
    columns: dict[str, dict[str, object]] = {
        name: {
            "role": "quasi_identifier",
            "hierarchy": {"path": str(folder / f"adult_hierarchy_{name}.csv"), "separator": ";", "header": False},
        }
        for name in ORDER
    }
    columns["occupation"] = {"role": "sensitive"}
    return sf.Study(data={"path": str(folder / "adult.csv"), "separator": ";"}, columns=columns)


def settings(study: sf.Study, folder: Path) -> Iterator[tuple[dict[str, str], sf.Study]]:
    """Each recorded row with the study that asks for it.

    Rounding makes ARX take a class of exactly ℓ equally common values to be just short of entropy ℓ; the same classes
    go here when a hundred-millionth more is demanded.
    """
    with (folder / RECORDED).open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        name, *numbers = row["criterion"].split(":")
        given = [float(number) for number in numbers]
        measures = {"delta_disclosure": {"absent": "ignored"}, "recursive_l": {"c": given[0]}}
        limit = {"recursive_l": given[-1]} if name == "recursive" else {MEASURES[name]: given[0]}
        if name == "entropy_l":
            limit = {"entropy_l": given[0] * (1 + 1e-8)}
        if name == "delta":  # ARX's δ is in bits
            limit = {"delta_disclosure": given[0] * math.log(2)}
        yield (
            row,
            study.with_settings({"measures": measures}).with_search(
                objectives=["arx_loss"], constraints={"k": 5} | limit, max_suppression=float(row["limit"])
            ),
        )
