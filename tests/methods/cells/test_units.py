"""Blanked cells where rows belong to persons: k by plain pandas, three tables, and what is refused."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.release.fronts import ANYTHING
from tests.release.visits import KEYS, figures, linked, person_figures, visits

import sfumato as sf
from sfumato.errors import StudyError, UnreachableError
from sfumato.plans.boxes import BoxPlan

NUMBERED = {f"{rule}:row": "a number made for a test" for rule in ("identifying", "dependence")}


def study_of(path: Path, frame: pd.DataFrame, roles: dict[str, str], **settings: Any) -> sf.Study:
    frame.to_csv(path, index=False)
    columns: dict[str, Any] = {name: {"role": roles.get(name, "drop")} for name in frame}
    columns |= {n: {"role": "sensitive", "distance": "equal"} for n, role in roles.items() if role == "sensitive"}
    search = {"system": "cells"} | settings.pop("search", {})
    return sf.Study(path, columns=columns, search=search, policy=ANYTHING, **settings)


def roles_of(person: str, keys: list[str], secret: str) -> dict[str, str]:
    return {person: "unit", "row": "other", secret: "sensitive"} | dict.fromkeys(keys, "quasi_identifier")


def checked(
    study: sf.Study, frame: pd.DataFrame, folder: Path, k: int, person: str, keys: list[str], secret: str
) -> None:
    """Publish the least loss at k and compare k, uniqueness, ℓ and t with plain pandas."""
    front = sf.search(study)
    release = sf.publish(sf.pick(front, point=0), folder / f"release-{study.system}", accept=NUMBERED)
    manifest = json.loads((release.folder / "private/manifest.json").read_text())
    out = pd.read_csv(release.data, dtype=str, keep_default_na=False)
    assert person not in out
    stated = figures(manifest)
    expected = person_figures(linked(frame, out, keys), frame, keys, secret, person)
    for name, value in expected.items():
        assert stated[name] == pytest.approx(value), (study.system, name)
    assert stated["k"] >= k
    assert expected["uniques"] == 0
    assert not sf.verify(release.folder, source=study.data.path).differences


@pytest.mark.long
@pytest.mark.parametrize("varying", [False, True])
def test_a_release_has_k_patients_behind_every_pattern(tmp_path: Path, varying: bool) -> None:
    frame = visits(120, varying=varying, rows=True)
    study = study_of(tmp_path / "visits.csv", frame, roles_of("pid", KEYS, "ill"), cells={"k": [3]})
    checked(study, frame, tmp_path, 3, "pid", KEYS, "ill")


@given(data=st.data())
def test_patterns_of_random_units(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    rows = int(rng.integers(12, 50))
    frame = pd.DataFrame({"pid": rng.integers(0, rows // 2, rows), "age": rng.integers(0, 5, rows)})
    frame["sex"], frame["ill"] = rng.choice(["F", "M"], rows), rng.choice(["a", "b"], rows)
    if rng.random() < 0.5:
        frame[["age", "sex"]] = frame.groupby("pid")[["age", "sex"]].transform("first")
    share = float(rng.choice([0.0, 0.2]))
    folder = tmp_path_factory.mktemp("cells")
    roles = roles_of("pid", ["age", "sex"], "ill")
    study = study_of(folder / "t.csv", frame, roles, search={"max_suppression": share}, cells={"k": [2, 3]})
    table = study.table()
    try:
        front = sf.search(study, table=table)
    except UnreachableError:
        assert frame["pid"].nunique() < 3
        return
    units = table.units
    assert units is not None
    held = defaultdict(set)
    for t, u in zip(units.tuple_of.tolist(), units.unit.tolist(), strict=True):
        held[t].add(u)
    for point in front.points:
        assert isinstance(point.plan, BoxPlan)
        members = Counter(t for t, _, _ in point.plan.members)
        assert max(members.values()) == 1
        inside: dict[int, set[int]] = defaultdict(set)
        for t, owner, _ in point.plan.members:
            inside[owner] |= held[t]
        gone = inside.pop(-1, set())
        assert min(map(len, inside.values())) == point.values["k"] >= 2
        assert len(gone) == point.suppressed_units <= share * units.number + 1e-9
        assert point.bound is None or point.bound <= point.values["general_loss"] * (1 + 1e-12)


@pytest.mark.parametrize("role", ["unit", "household"])
def test_agreement_of_rows_is_refused_where_rows_belong_to_persons(tmp_path: Path, role: str) -> None:
    frame = visits(20)
    roles = {"pid": role} | dict.fromkeys(KEYS, "quasi_identifier")
    study = study_of(tmp_path / "visits.csv", frame, roles, cells={"k": [2], "reading": "agreeing"})
    with pytest.raises(StudyError, match="pid as a unit or household column"):
        sf.search(study)


@pytest.mark.parametrize("missing", ["drop", "category"])
@pytest.mark.parametrize("system", ["local", "cells"])
def test_missing_rules(tmp_path: Path, missing: str, system: str) -> None:
    frame = visits(60, rows=True)
    frame["age"] = frame["age"].astype(object)
    frame.loc[frame["pid"].isin(frame["pid"].unique()[:6]), "age"] = ""
    roles = roles_of("pid", KEYS, "ill")
    data = {"path": str(tmp_path / "visits.csv"), "missing": missing}
    frame.to_csv(tmp_path / "visits.csv", index=False)
    columns = {name: {"role": roles[name]} for name in frame}
    study = sf.Study(data=data, columns=columns, search={"system": system}, policy=ANYTHING, **{system: {"k": [3]}})
    kept = frame[frame["age"] != ""] if missing == "drop" else frame
    checked(study, kept, tmp_path, 3, "pid", KEYS, "ill")


def shared_table(shared: Path, name: str) -> tuple[pd.DataFrame, str, list[str], str]:
    """A table of shared data with its household numbers, keys and a sensitive column."""
    if name == "testdata":
        frame = pd.read_csv(shared / "data/sdcmicro/testdata.csv", dtype=str, keep_default_na=False)
        return frame, "ori_hid", ["urbrur", "sex", "relat", "walls"], "electcon"
    frame = pd.read_csv(shared / "data/acs-pums/psam_p15_2018.csv.gz", dtype=str, nrows=3000, keep_default_na=False)
    complete = frame[frame["SCHL"] != ""].reset_index(drop=True)
    return complete, "SERIALNO", ["SEX", "MAR", "RAC1P", "PUMA"], "SCHL"


@pytest.mark.long
@pytest.mark.parametrize("name", ["testdata", "acs"])
@pytest.mark.parametrize("system", ["local", "cells"])
def test_households_as_units_of_public_tables(shared: Path, tmp_path: Path, name: str, system: str) -> None:
    """Members of a household differ in the keys, so one household is in several tuples."""
    frame, person, keys, secret = shared_table(shared, name)
    frame = frame[[person, *keys, secret]].assign(row=np.arange(len(frame)))
    study = study_of(
        tmp_path / "table.csv", frame, roles_of(person, keys, secret), search={"system": system}, **{system: {"k": [3]}}
    )
    checked(study, frame, tmp_path, 3, person, keys, secret)


@pytest.mark.long
@pytest.mark.parametrize("name", ["testdata", "acs"])
@pytest.mark.parametrize("system", ["local", "cells"])
def test_household_risk_of_public_tables(shared: Path, tmp_path: Path, name: str, system: str) -> None:
    """Rows are persons, and every class holds two households: a constraint like any other."""
    frame, person, keys, secret = shared_table(shared, name)
    frame = frame[[person, *keys, secret]].assign(row=np.arange(len(frame)))
    roles = roles_of(person, keys, secret) | {person: "household"}
    search = {"system": system, "constraints": {"households": 2.0}}
    study = study_of(tmp_path / "table.csv", frame, roles, search=search, **{system: {"k": [3]}})
    release = sf.publish(sf.pick(sf.search(study), point=0), tmp_path / "release", accept=NUMBERED)
    stated = figures(json.loads((release.folder / "private/manifest.json").read_text()))
    out = pd.read_csv(release.data, dtype=str, keep_default_na=False)
    rows = linked(frame, out, keys)
    sizes = rows.groupby(keys)[person].transform("size")
    assert stated["k"] == sizes.min() >= 3
    assert stated["households"] == rows.groupby(keys)[person].nunique().min() >= 2
    risk = 1 - (1 - 1 / sizes).groupby(rows[person]).prod()
    assert stated["household_risk"] == pytest.approx(risk.reindex(frame[person].unique(), fill_value=0.0).mean())
    assert not sf.verify(release.folder, source=study.data.path).differences
