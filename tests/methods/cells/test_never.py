"""Columns that keep their cells: a request that they rule out is refused with the nearest that can be met."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.release.fronts import ANYTHING

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import UnreachableError


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    numbers = {"a": rng.integers(0, 4, 40), "b": rng.integers(0, 3, 40)}
    return pd.DataFrame({"id": [f"u{i}" for i in range(40)], **numbers})


def study_of(folder: Path, columns: str, suppressed: float = 0.0, **cells: object) -> sf.Study:
    people().to_csv(folder / "p.csv", index=False)
    roles = {name: {"role": "quasi_identifier"} for name in columns.split()}
    roles |= {name: {"role": "drop"} for name in {"id", "a", "b"} - set(roles)}
    search = {"system": "cells", "max_suppression": suppressed}
    path = {"path": str(folder / "p.csv")}
    return sf.Study(data=path, columns=roles, search=search, cells={"k": [3], **cells}, policy=ANYTHING)


def below(k: int, *columns: str) -> int:
    """Records whose values in some columns fewer than k records share."""
    sizes = people().groupby(list(columns))[columns[0]].transform("size")
    return int((sizes < k).sum())


@pytest.mark.parametrize("reading", ["strict", "agreeing"])
@pytest.mark.parametrize("exact", [0, 1500])
@pytest.mark.parametrize("keeps", [{"never": ["id"]}, {"limits": {"id": 0.0}}])
def test_a_column_of_unique_values_that_keeps_its_cells(
    reading: str, exact: int, keeps: dict[str, object], tmp_path: Path
) -> None:
    """The program of the agreeing reading failed with a ValueError: no pattern has k source records."""
    study = study_of(tmp_path, "id a b", reading=reading, exact=exact, **keeps)
    with pytest.raises(UnreachableError, match="id keeps its cells, and 40 of 40 records") as refused:
        sf.search(study)
    assert refused.value.remedy == "blanks allowed in id"
    assert run(["search", str(study.save(tmp_path / "run.toml"))]) == 3


def test_the_nearest_that_can_be_met_is_named_and_can_be_met(tmp_path: Path) -> None:
    short = below(9, "a")
    assert 0 < short < 40
    largest = int(people().groupby("a").size().min())
    with pytest.raises(UnreachableError, match=f"a keeps its cells, and {short} of 40 records") as refused:
        sf.search(study_of(tmp_path, "a b", never=["a"], k=[9]))
    assert refused.value.remedy == f"k = {largest}; or blanks allowed in a; or max_suppression from {short / 40:g} on"
    assert sf.search(study_of(tmp_path, "a b", never=["a"], k=[largest])).points[0].values["k"] >= largest
    assert sf.search(study_of(tmp_path, "a b", suppressed=short / 40, never=["a"], k=[9])).points[0].suppressed == short
    with pytest.raises(UnreachableError) as agreeing:
        sf.search(study_of(tmp_path, "a b", never=["a"], k=[9], reading="agreeing"))
    assert "max_suppression" not in agreeing.value.remedy


@pytest.mark.parametrize("exact", [0, 1500])
def test_what_can_be_met_by_suppressing_rare_values_is_found(exact: int, tmp_path: Path) -> None:
    """By boxes it was called unreachable: a blank that is not allowed seemed cheaper than a suppressed record."""
    short = below(3, "a", "b")
    assert short == 7
    study = study_of(tmp_path, "id a b", suppressed=0.5, never=["a", "b"], exact=exact)
    point = sf.search(study).points[0]
    assert point.suppressed == short
    assert (point.details["blanked"]["a"], point.details["blanked"]["b"]) == (0, 0)
    release = sf.publish(sf.pick(sf.search(study), point=0), tmp_path / "out", state=tmp_path / "state")
    out = pd.read_csv(release.data, dtype=str)
    assert len(out) == 40 - short
    assert out.groupby(["id", "a", "b"]).size().min() >= 3
    assert sf.verify(release.folder, study.data.path)


def test_a_recoding_first_can_meet_it(tmp_path: Path) -> None:
    flat = {name: {"hierarchy": {"build": "flat"}} for name in ("id", "a", "b")}
    study = study_of(tmp_path, "id a b", never=["id"], after="lattice", bases=2)
    study = study.replace(columns={name: study.columns[name].model_copy(update=own) for name, own in flat.items()})
    assert sf.search(sf.Study(**study.model_dump(exclude_unset=True))).points[0].values["k"] >= 3
