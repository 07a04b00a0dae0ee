"""Persons and households of three tables, by the four recoding methods and both engines, against plain pandas.

The figures of a published file are compared with what pandas counts of that file. A column that numbers the rows is
released for the test, so that the rows can be found in the source, where the numbers of persons and households are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.data.settings import EngineOptions
from tests.release.fronts import ANYTHING
from tests.release.visits import figures, linked, visits

pytestmark = pytest.mark.scale

WIDTHS = {"build": "interval", "widths": [5, 10, 20, 40]}
Case = tuple[pd.DataFrame, dict[str, str], list[str], str]  # rows, the roles of numbers, quasi-identifiers, sensitive


def of_visits(_: Path) -> Case:
    """Patients whose age varies between visits, two to a household."""
    frame = visits(160, varying=True)
    frame["family"] = "F" + (frame["pid"].str[1:].astype(int) // 2).astype(str)
    return frame, {"pid": "unit", "family": "household"}, ["age", "postcode", "sex"], "ill"


def of_testdata(shared: Path) -> Case:
    frame = pd.read_csv(shared / "data/sdcmicro/testdata.csv", dtype=str)
    return frame, {"ori_hid": "household"}, ["urbrur", "walls", "sex", "age"], "relat"


def of_dwellings(shared: Path) -> Case:
    """The sensitive column is constant within households, so that it is counted in households."""
    frame = pd.read_csv(shared / "data/sdcmicro/testdata.csv", dtype=str)
    assert frame.groupby("ori_hid")["water"].nunique().max() == 1
    return frame, {"ori_hid": "household"}, ["urbrur", "sex", "age"], "water"


def of_hawaii(shared: Path) -> Case:
    frame = pd.read_csv(shared / "data/acs-pums/psam_p15_2018.csv.gz", dtype=str)
    return frame, {"SERIALNO": "household"}, ["PUMA", "AGEP", "SEX", "MAR"], "CIT"


def of_serial_numbers(shared: Path) -> Case:
    """The household is the person that rows belong to."""
    frame = pd.read_csv(shared / "data/acs-pums/psam_p15_2018.csv.gz", dtype=str)
    return frame, {"SERIALNO": "unit"}, ["PUMA", "AGEP", "SEX"], "CIT"


def counted(rows: pd.DataFrame, case: Case) -> dict[str, float]:
    """What pandas counts of released rows, by the definitions of persons and households."""
    frame, numbers, keys, secret = case
    names = {role: name for name, role in numbers.items()}
    person, family = names.get("unit", "row"), names.get("household")
    by = [rows[key] for key in keys]
    size = rows.groupby(by)[person].transform("nunique")
    found = {"k": size.min(), "uniques": rows.loc[size == 1, person].nunique() / frame[person].nunique()}
    if family is not None:
        families = rows.groupby(by)[family].transform("nunique")
        found["households"] = families.min()
        found["household_uniques"] = rows.loc[families == 1, family].nunique() / frame[family].nunique()
        risk = (1 / size).groupby([rows[family], rows[person]]).max()
        whole = 1 - (1 - risk).groupby(level=0).prod()
        found["household_risk"] = whole.sum() / frame[family].nunique()
    holder = person
    if family is not None and frame.groupby(family)[secret].nunique().max() == 1:
        holder = family
    shares = pd.crosstab(rows[holder], rows[secret], normalize="index").mean()
    diversity, frequency, distance = [], [], []
    for _, one in rows.groupby(by):
        n, held = one[holder].nunique(), one.groupby(secret)[holder].nunique()
        own = pd.crosstab(one[holder], one[secret], normalize="index").mean()
        diversity.append(1 if held.max() == n else min(len(held), n))
        frequency.append(n / held.max())
        distance.append(own.reindex(shares.index, fill_value=0.0).sub(shares).abs().sum() / 2)
    return found | {"distinct_l": min(diversity), "frequency_l": min(frequency), "t_closeness": max(distance)}


def study_of(path: Path, system: str, case: Case) -> sf.Study:
    _, numbers, keys, secret = case
    columns: dict[str, Any] = {name: {"role": role} for name, role in numbers.items()}
    for key in keys:
        tree = WIDTHS if key in ("age", "AGEP") else {"build": "flat"}
        columns[key] = {"role": "quasi_identifier"} | ({} if system == "cells" else {"hierarchy": tree})
    columns |= {secret: {"role": "sensitive", "distance": "equal"}, "row": {"role": "other"}}
    budgets = {"local": {"k": [3], "passes": 0}, "cells": {"k": [3], "passes": 0, "effort": 0, "exact": 0}}
    search: dict[str, Any] = {"system": system}
    if "household" in numbers.values():
        search["constraints"] = {"households": 2}
    if system in ("lattice", "cuts"):
        search["max_suppression"] = 0.05
    if system == "cuts":
        search |= {"generations": 3, "population": 12}
    own = {name: budget for name, budget in budgets.items() if name == system}
    return sf.Study(path, columns=columns, search=search, policy=ANYTHING, **own)


CASES = (of_visits, of_testdata, of_dwellings, of_hawaii, of_serial_numbers)
SYSTEMS = ("lattice", "cuts", "local", "cells")
ON_SPARK = [(of_visits, "lattice"), (of_dwellings, "cuts"), (of_testdata, "local"), (of_hawaii, "cells")]


@pytest.mark.parametrize(
    ("engine", "table", "system"),
    [
        *(("duckdb", table, system) for table in CASES for system in SYSTEMS),
        *(("spark", table, system) for table, system in ON_SPARK),
    ],
)
def test_figures_of_a_file_are_those_of_pandas(
    engine: str, table: Callable[[Path], Case], system: str, shared: Path, tmp_path: Path
) -> None:
    """Spark takes minutes for a release, so it makes one of each method and table."""
    frame, numbers, keys, secret = table(shared)
    frame = frame[[*numbers, *keys, secret]].assign(row=np.arange(len(frame)))
    frame.to_parquet(tmp_path / "table.parquet")
    case: Case = (frame, numbers, keys, secret)
    study = study_of(tmp_path / "table.parquet", system, case)
    if engine == "spark":
        conf = {"spark.sql.shuffle.partitions": "2"}
        study = study.replace(
            engine="spark", engine_options=EngineOptions(master="local[2]", memory_limit="1g", conf=conf)
        )
    accept = {f"{rule}:row": "a number made for a test" for rule in ("identifying", "dependence")}
    choice = sf.pick(sf.search(study), min_k=2)
    release = sf.publish(choice, tmp_path / "release", accept=accept, state=tmp_path / "state")
    out = pd.read_parquet(release.data).astype(str)
    assert not set(numbers) & set(out.columns)
    rows = linked(frame.astype({secret: str}), out, keys)
    stated = figures(json.loads((release.folder / "private/manifest.json").read_text("utf-8")))
    expected = counted(rows.assign(row=rows.index), case)
    assert expected["k"] >= 2
    assert ("household_risk" in expected) == ("household" in numbers.values())
    for name, value in expected.items():
        assert stated[name] == pytest.approx(value), name
