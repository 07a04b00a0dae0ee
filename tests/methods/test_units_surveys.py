"""Real surveys with households: the figures of releases against plain pandas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.measures.classes import classify
from sfumato.measures.registry import measure
from sfumato.measures.suppression import suppress_by_plan

FLAT = {"build": "flat"}


def dwellings(shared: Path) -> tuple[pd.DataFrame, dict[str, object], list[str], str]:
    """sdcMicro's test data: rows are persons, `ori_hid` is the household."""
    table = pd.read_csv(shared / "data" / "sdcmicro" / "testdata.csv", dtype=str)
    keys = ["urbrur", "roof", "walls", "water", "sex"]
    table = table[[*keys, "relat", "ori_hid"]]
    columns = {key: {"role": "quasi_identifier", "hierarchy": FLAT} for key in keys}
    return (
        table,
        columns | {"relat": {"role": "sensitive", "distance": "equal"}, "ori_hid": {"role": "household"}},
        keys,
        "ori_hid",
    )


def hawaii(shared: Path) -> tuple[pd.DataFrame, dict[str, object], list[str], str]:
    """The American Community Survey of Hawaii: `SERIALNO` is the household, whose area is constant."""
    table = pd.read_csv(shared / "data" / "acs-pums" / "psam_p15_2018.csv.gz", dtype=str)
    keys = ["PUMA", "AGEP", "SEX", "MAR"]
    table = table[[*keys, "CIT", "SERIALNO"]].dropna().reset_index(drop=True)
    ages = {"build": "interval", "widths": [5, 10, 20, 40]}
    columns = {key: {"role": "quasi_identifier", "hierarchy": ages if key == "AGEP" else FLAT} for key in keys}
    return (
        table,
        columns | {"CIT": {"role": "sensitive", "distance": "equal"}, "SERIALNO": {"role": "household"}},
        keys,
        "SERIALNO",
    )


@pytest.mark.long
@pytest.mark.parametrize("system", ["lattice", "cuts"])
@pytest.mark.parametrize("survey", [dwellings, hawaii], ids=["testdata", "Hawaii"])
def test_figures_of_households_are_those_of_pandas(survey: object, system: str, shared: Path) -> None:
    table, columns, keys, household = survey(shared)  # type: ignore[operator]
    study = sf.Study(table, columns=columns)
    settings = {"generations": 2, "population": 8} if system == "cuts" else {"constraints": {"households": 2, "k": 3}}
    front = sf.search(study, system=system, max_suppression=0.02, **settings)
    point = min(front, key=lambda one: (one.values.get("k", 3) < 3, one.loss))
    frequency = study.table()
    plan = point.recoding_plan
    classes = suppress_by_plan(classify(frequency, plan.recoding(frequency)), plan)
    rows = pd.DataFrame(
        {
            domain.name: table[domain.name].map(dict(zip(domain.labels, part.groups.tolist(), strict=True)))
            for domain, part in zip(frequency.domains, plan.recoding(frequency), strict=True)
        }
    )
    by = [rows[key] for key in keys]
    size = table.groupby(by)[household].transform("size")
    kept = size >= plan.suppress_below
    if system == "lattice":
        families = table.groupby(by)[household].transform("nunique")
        kept &= families >= plan.limits.get("households", 0)
    families = table.groupby(by)[household].transform("nunique")
    sensitive = next(name for name, column in columns.items() if column["role"] == "sensitive")  # type: ignore[index]
    released, some = table[kept], [part[kept] for part in by]
    assert int((~kept).sum()) == point.suppressed
    assert measure("k").value(classes) == size[kept].min()
    assert measure("households").value(classes) == families[kept].min()
    assert measure("distinct_l").value(classes) == released.groupby(some)[sensitive].nunique().min()
    shares = released[sensitive].value_counts(normalize=True)
    distance = max(
        0.5 * one[sensitive].value_counts(normalize=True).reindex(shares.index, fill_value=0).sub(shares).abs().sum()
        for _, one in released.groupby(some)
    )
    assert measure("t_closeness").value(classes) == pytest.approx(distance)
    alone = table[household][(families == 1) & kept].nunique()
    assert measure("household_uniques").value(classes) == pytest.approx(alone / table[household].nunique())
    risk = (1 / size).where(kept, 0.0)
    each = 1 - (1 - risk).groupby(table[household]).prod()
    assert measure("household_risk").value(classes) == pytest.approx(each.mean())
    assert measure("uniques").value(classes) == np.mean((size == 1) & kept)
