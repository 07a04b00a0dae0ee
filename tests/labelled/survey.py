"""A survey of 300 people with labels, as a labelled file, and a study of it."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat
from tests.release.fronts import ANYTHING, front_of

import sfumato as sf
from sfumato.front import Front

SEX = {1: "male", 2: "female"}
MARITAL = {1: "single", 2: "married", 3: "widowed", 4: "divorced", -9: "refused"}
HEALTH = {1: "good", 2: "fair", 3: "poor", -8: "no answer"}
TREE = [("1", "not married", "*"), ("2", "married", "*"), ("3", "{3 | 4}", "*"), ("4", "{3 | 4}", "*")]
LABELS = {"sex": SEX, "marital": MARITAL, "health": HEALTH}
TITLES = {"sex": "Sex", "marital": "Marital status", "health": "Health as the person sees it", "age": "Age in years"}


def survey(rows: int = 300, seed: int = 3) -> pd.DataFrame:
    rng = random.Random(seed)
    return pd.DataFrame(
        {
            "age": [float(rng.randint(20, 59)) for _ in range(rows)],
            "sex": [float(rng.choice([1, 2])) for _ in range(rows)],
            "marital": [float(rng.choice([1, 2, 3, 4])) for _ in range(rows)],
            "town": [rng.choice(["Bern", "Zürich", "Genève"]) for _ in range(rows)],
            "health": [rng.choice([1.0, 2.0, 3.0]) for _ in range(rows)],
            "visits": [rng.choice([0.0, 1.0, 2.5, -9.0, None]) for _ in range(rows)],
            "seen": [dt.date(2020, 1, 1) + dt.timedelta(days=rng.randint(0, 99)) for _ in range(rows)],
        }
    )


def write(path: Path, frame: pd.DataFrame | None = None, **given: Any) -> Path:
    frame = survey() if frame is None else frame
    kind = path.suffix[1:]
    if kind == "csv":
        frame.to_csv(path, index=False, float_format="%g")
        return path
    options: dict[str, Any] = {"column_labels": TITLES, "variable_value_labels": LABELS} | given
    if kind == "sav":
        options |= {"missing_ranges": {"health": [-8], "visits": [{"lo": -9, "hi": -1}], "marital": [-9]}}
        options |= {"variable_measure": {"sex": "nominal", "age": "scale"}, "variable_format": {"age": "F3.0"}}
        pyreadstat.write_sav(frame, path, **options)
    elif kind == "dta":
        frame = frame.assign(visits=["b" if one == -9 else one for one in frame["visits"]])
        labels = {name: {v: t for v, t in one.items() if v > 0} for name, one in LABELS.items()}
        labels["visits"] = {"b": "not asked"}
        options |= {"variable_value_labels": labels, "missing_user_values": {"visits": ["b"]}}
        pyreadstat.write_dta(frame, path, **options)
    else:
        frame.to_excel(path, index=False, engine="xlsxwriter", sheet_name="survey")
    return path


def study_of(path: Path, **data: Any) -> sf.Study:
    from sfumato.hierarchies import Hierarchy, save

    tree = path.with_name("marital.csv")
    if not tree.exists():
        save(Hierarchy.from_paths("marital", TREE), tree)
    quasi = "quasi_identifier"
    columns: dict[str, Any] = {
        "age": {"role": quasi, "hierarchy": {"build": "interval", "widths": [10, 20]}},
        "sex": {"role": quasi, "hierarchy": {"build": "flat"}},
        "marital": {"role": quasi, "hierarchy": {"path": str(tree)}},
        "town": {"role": "drop"},
        "health": {"role": "sensitive"},
        "visits": {"role": "other"},
        "seen": {"role": "other"},
    }
    return sf.Study(data={"path": str(path), **data}, columns=columns, policy=ANYTHING)


def front(study: sf.Study, levels: dict[str, int] | None = None, most: int = 20) -> Front:
    return front_of(study, [levels or {"age": 1, "sex": 0, "marital": 1}], most)
