"""Bounds of blanked cells: they do not depend on the unit of weights, and say what they take for granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.release.fronts import ANYTHING

import sfumato as sf
from sfumato.errors import DataError, HierarchyError, UnreachableError
from sfumato.front import Front
from sfumato.methods.cells.patterns import Blanks, proven
from sfumato.methods.cells.search import Problem, original_values
from sfumato.methods.cells.system import bound_sentence


def forty() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {"a": rng.integers(0, 4, 40), "b": rng.choice(["x", "y", "z"], 40), "c": rng.integers(0, 3, 40)}
    )


def study_of(folder: Path, frame: pd.DataFrame | None = None, **given: Mapping[str, object]) -> sf.Study:
    frame = forty() if frame is None else frame
    frame.to_csv(folder / "p.csv", index=False)
    columns = {name: {"role": "quasi_identifier"} for name in frame.columns}
    search = {"system": "cells", **given.get("search", {})}
    cells = {"k": [3], "effort": 0, "passes": 0, **given.get("cells", {})}
    data = {"path": str(folder / "p.csv")}
    return sf.Study(data=data, columns=columns, search=search, cells=cells, policy=ANYTHING)


def weighted(folder: Path, reading: str, **weights: float) -> Front:
    return sf.search(study_of(folder, search={"weights": weights}, cells={"reading": reading}))


@pytest.mark.parametrize("reading", ["strict", "agreeing"])
def test_a_common_factor_of_weights_changes_nothing(reading: str, tmp_path: Path) -> None:
    """The solver's tolerances are absolute: with weights of 1e-8 it called anything exact."""
    plain = weighted(tmp_path, reading, a=1, b=1, c=1).points[0]
    exact = reading == "strict"  # the program of the other reading does not know which assignments are possible
    assert plain.details["method"] == ("exact" if exact else "heuristic")
    assert (plain.details["ratio"] == pytest.approx(1)) is exact
    for factor in (1e-8, 0.3, 1e6):
        other = weighted(tmp_path, reading, a=factor, b=factor, c=factor).points[0]
        assert other.details["method"] == plain.details["method"]
        assert other.details["cells"] == plain.details["cells"]
        assert other.loss == pytest.approx(plain.loss, rel=1e-9)
        assert other.details["floor"] == pytest.approx(plain.details["floor"], rel=1e-6)
        assert other.bound is not None
        assert other.bound <= other.values["general_loss"]


def test_weights_that_are_far_apart_are_not_left_to_the_tolerance_of_the_solver(tmp_path: Path) -> None:
    """Only the cheap column may be blanked enough: what the bound says is below what was found."""
    point = weighted(tmp_path, "strict", a=1, b=1, c=1e-8).points[0]
    assert point.details["method"] == "heuristic"
    assert point.bound is None or point.bound <= point.values["general_loss"]


@pytest.mark.parametrize("reading", ["strict", "agreeing"])
@pytest.mark.parametrize("exact", [0, 1500])
def test_a_constraint_on_k_binds_every_way_to_search(reading: str, exact: int, tmp_path: Path) -> None:
    cells = {"k": [2, 3], "reading": reading, "exact": exact, "blank_records": 0.2}
    front = sf.search(study_of(tmp_path, search={"constraints": {"k": 4.5}}, cells=cells))
    assert [point.values[front.objectives[0].name] >= 5 for point in front.points] == [True]
    with pytest.raises(UnreachableError, match="fewer than k = 41"):
        sf.search(study_of(tmp_path, search={"constraints": {"k": 41}}, cells=cells))


def test_shares_of_records_are_read_as_decimals(tmp_path: Path) -> None:
    """0.29 of 100 records are 29 of them, though 0.29 * 100 is a little less in binary."""
    frame = pd.concat([forty()] * 3, ignore_index=True)[:100]
    agreeing = study_of(tmp_path, frame, cells={"reading": "agreeing", "blank_records": 0.29})
    strict = study_of(tmp_path, frame, search={"max_suppression": 0.29})
    table = strict.table()
    for study in (agreeing, strict):
        problem = Problem(study, table, original_values(table), np.ones(3), np.ones(3, dtype=np.bool_), np.full(3, 100))
        assert problem.spare == 29


def test_the_quick_way_may_blank_as_many_records_as_the_program(tmp_path: Path) -> None:
    """100 different people in one column: a blank is a whole record. 29 of them are allowed, and not one less."""
    frame = pd.DataFrame({"a": [*range(29), *[100] * 71]})
    cells = {"reading": "agreeing", "blank_records": 0.29, "k": [2], "exact": 0}
    assert sf.search(study_of(tmp_path, frame, cells=cells)).points[0].details["blank_records"] == 29


@pytest.mark.parametrize("exact", [0, 1500])
def test_no_way_to_search_blanks_a_record_more_than_may_be(exact: int, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [*range(29), *[100] * 71]})
    cells = {"reading": "agreeing", "blank_records": 0.28, "k": [2], "exact": exact}
    with pytest.raises(UnreachableError, match="no way was found to blank cells within the limits"):
        sf.search(study_of(tmp_path, frame, cells=cells))


def removed_before(folder: Path, alone: int, exact: int, share: float) -> sf.Study:
    """90 records, some of them with a value of their own in a column that keeps its cells; 10 more were removed."""
    frame = pd.DataFrame({"a": [*range(alone), *[100] * (90 - alone)]})
    search, cells = {"max_suppression": share}, {"k": [2], "exact": exact, "never": ["a"]}
    study = study_of(folder, frame, search=search, cells=cells)
    return study.model_copy(update={"data": study.data.model_copy(update={"removed": 10})})


@pytest.mark.parametrize("exact", [0, 1500])
def test_records_removed_before_count_as_suppressed(exact: int, tmp_path: Path) -> None:
    """29 of 100 may go and 10 are gone: 19 more, and not 20."""
    assert sf.search(removed_before(tmp_path, 19, exact, 0.29)).points[0].suppressed == 29
    with pytest.raises(UnreachableError, match="20 of 90 records") as refused:
        sf.search(removed_before(tmp_path, 20, exact, 0.29))
    assert refused.value.remedy == "blanks allowed in a; or max_suppression from 0.3 on"
    assert sf.search(removed_before(tmp_path, 20, exact, 0.3)).points[0].suppressed == 30


def test_exact_is_said_only_where_the_bound_is_reached() -> None:
    """Three records of four columns: eight of twelve cells are blank."""
    codes, masks = np.arange(12, dtype=np.int32).reshape(3, 4), np.array([0b1111, 0b11, 0b1100])
    one = np.ones(3, dtype=np.int64)
    blanks, weights = Blanks(codes, one, np.arange(3), masks, one), np.ones(4)
    assert proven(blanks, 8.0, weights)
    for short in (0.001, 0.1, 1.0):
        assert not proven(blanks, 8.0 - short, weights)


def test_a_program_that_was_stopped_is_not_called_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One node is not enough here: the bound is a little below what was found, by less than two cells."""
    rng = np.random.default_rng(2)
    study = study_of(tmp_path, pd.DataFrame({name: rng.integers(0, 3, 60) for name in "abcd"}))
    monkeypatch.setattr("sfumato.methods.cells.patterns.NODES", 1)
    front = sf.search(study)
    point = front.points[0]
    assert point.bound is not None
    assert 0.5 < point.details["cells"] - point.bound < 2
    assert (point.details["method"], front.exact) == ("integer program, stopped", False)


def stated(point: sf.Point) -> dict[str, Any]:
    """What a manifest says of a point."""
    return {"point": point.as_dict(), "loss": point.loss, "records": 40, "left_out": 0}


def test_a_bound_says_which_limits_it_takes_for_granted(tmp_path: Path) -> None:
    """With a column that keeps its cells the bound is above a solution that blanks it."""
    free = sf.search(study_of(tmp_path)).points[0]
    bound = sf.search(study_of(tmp_path, cells={"never": ["c"]}, search={"max_suppression": 0.5})).points[0]
    assert bound.details["floor"] > free.loss
    assert free.details["within"] == ["suppressed records"]
    assert bound.details["within"] == ["columns", "suppressed records"]
    assert bound_sentence(stated(bound)).startswith(
        "Within the limits that were set on columns and the limit on suppressed records, no way to blank cells"
    )
    for exact in (0, 1500):
        cells = {"reading": "agreeing", "never": ["c"], "exact": exact, "blank_records": 0.2}
        kept = sf.search(study_of(tmp_path, cells=cells)).points[0]
        assert "columns" in kept.details["within"]
    plain = sf.search(study_of(tmp_path, cells={"exact": 0})).points[0]
    assert bound_sentence(stated(plain)).startswith("No way to blank cells")


def test_labels_that_are_already_generalized_are_refused_before_the_search(tmp_path: Path) -> None:
    frame = forty()
    frame.loc[0, "b"] = "*"
    with pytest.raises(HierarchyError, match="already generalized"):
        sf.search(study_of(tmp_path, frame))


@pytest.mark.parametrize("forged", [{"floor": 0.9, "ratio": 0.5}, {"ratio": 1.0}, {}])
def test_a_forged_bound_is_not_published(forged: dict[str, float], tmp_path: Path) -> None:
    """A bound of cells has no certificate, but its figures must fit together."""
    front = sf.search(study_of(tmp_path, cells={"exact": 0}))
    point = front.points[0]
    assert point.details["ratio"] > 1
    details = {**point.details, **forged}
    other = replace(front, points=(replace(point, details=details, bound=point.bound if forged else 0.5),))
    accept = dict.fromkeys(("k", "uniques"), "a small table made for a test")
    with pytest.raises(DataError, match="the front contradicts itself"):
        sf.publish(sf.pick(other, point=0), tmp_path / "out", accept=accept, state=tmp_path / "state")
    assert not (tmp_path / "out").exists()


def test_the_public_page_of_the_agreeing_reading_says_how_many_rows_are_possible(tmp_path: Path) -> None:
    study = study_of(tmp_path, cells={"reading": "agreeing", "blank_records": 0.2})
    front = sf.search(study)
    readings = front.points[0].details["readings"]
    release = sf.publish(sf.pick(front, point=0), tmp_path / "out", state=tmp_path / "state")
    text = (release.folder / "public" / "external.html").read_text("utf-8")
    pairs, k = readings["agreeing"], readings["matching_k"]
    assert pairs >= k >= 3
    assert f"Each row agrees with at least {pairs} records of the original table" in text
    assert f"each of these records with at least {pairs} rows" in text
    assert f"At least {k} rows remain possible for each record (matching k = {k})" in text
    assert f"<b>{k}</b>or more rows are possible for each source record (matching k)" in text
    assert "Possible does not mean equally likely" in text
    assert "can find that person's record" not in text.replace("&#39;", "'")
    strict = readings["k"]
    assert f"the smallest group has {strict} {'row' if strict == 1 else 'rows'} (k = {strict})" in text
    blanked = front.points[0].details["blanked"]
    share = [f"({100 * cells / 40:.1f} % of the records)" for cells in blanked.values() if cells >= 10]
    assert share
    assert all(one in text.replace("\N{NO-BREAK SPACE}", " ") for one in share)
    assert sf.verify(release.folder, study.data.path)
