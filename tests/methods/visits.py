"""A table of visits: several rows of one person, some of whose values change from visit to visit."""

from __future__ import annotations

import numpy as np
import pandas as pd

import sfumato as sf


def visits(patients: int = 120, *, varying: bool = False, seed: int = 3) -> pd.DataFrame:
    """Patients with 1 to 6 visits; with `varying` the ward is that of the visit, else everything is constant."""
    rng = np.random.default_rng(seed)
    number = rng.integers(1, 7, patients)
    patient = np.repeat(np.arange(patients), number)
    return pd.DataFrame(
        {
            "patient": [f"p{one:04d}" for one in patient],
            "age": rng.integers(20, 80, patients)[patient],
            "sex": rng.choice(["f", "m"], patients)[patient],
            "ward": rng.choice(["a", "b", "c", "d"], len(patient) if varying else patients)[
                np.arange(len(patient)) if varying else patient
            ],
            "diagnosis": rng.choice(["flu", "asthma", "angina", "fracture", "none"], len(patient)),
        }
    )


def study_of(table: pd.DataFrame, **settings: object) -> sf.Study:
    """The study of visits, with the patient as the unit."""
    columns = {
        "patient": {"role": "unit"},
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10, 20, 40]}},
        "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "ward": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "diagnosis": {"role": "sensitive"},
    }
    return sf.Study(table, **({"columns": columns} | settings))


def persons(released: pd.DataFrame, keys: list[str], unit: pd.Series) -> pd.Series:
    """Distinct units of every class, for each row."""
    return unit.groupby([released[key] for key in keys]).transform("nunique")
