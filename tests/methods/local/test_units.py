"""Local recodings where rows belong to persons: counted with plain pandas and by trying all partitions."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.local import oracle
from tests.methods.local.tables import Rows, cells_of, tiny_tables
from tests.release.fronts import ANYTHING
from tests.release.visits import KEYS, figures, linked, person_figures, visits

import sfumato as sf
from sfumato.errors import DataError, StudyError, UnreachableError
from sfumato.front import Point
from sfumato.methods.local.floor import check_floor, check_front, dual_bound, lower_bound, recoding_bound
from sfumato.methods.local.model import Cells, Labels
from sfumato.methods.local.search import Solver, search_local
from sfumato.methods.run import Run
from sfumato.plans.boxes import BoxPlan
from sfumato.release.classes_rows import Assigned
from sfumato.tables.frequency import FrequencyTable

NUMBERED = {"identifying:row": "a number made for a test", "dependence:row": "a number made for a test"}
COLUMNS: dict[str, dict[str, Any]] = {
    "pid": {"role": "unit"},
    "age": {"role": "quasi_identifier"},
    "postcode": {"role": "quasi_identifier"},
    "sex": {"role": "quasi_identifier"},
    "ill": {"role": "sensitive"},
}


def study_of(frame: pd.DataFrame, **settings: Any) -> sf.Study:
    columns = {name: COLUMNS.get(name, {"role": "other"}) for name in frame}
    search = {"system": "local"} | settings.pop("search", {})
    return sf.Study(frame, columns=columns, search=search, policy=ANYTHING, **settings)


def persons_of(table: FrequencyTable, point: Point) -> tuple[dict[int, set[int]], set[int]]:
    """The persons of each class, and those of whom a row is suppressed, by loops."""
    assert isinstance(point.plan, BoxPlan)
    assert table.units is not None
    held: dict[int, set[int]] = defaultdict(set)
    for t, u in zip(table.units.tuple_of.tolist(), table.units.unit.tolist(), strict=True):
        held[t].add(u)
    inside: dict[int, set[int]] = defaultdict(set)
    gone: set[int] = set()
    for t, owner, count in point.plan.members:
        assert count == table.counts[t]  # a tuple is in one class, so its persons are
        if owner < 0:
            gone |= held[t]
        else:
            inside[owner] |= held[t]
    return inside, gone


@pytest.mark.long
@pytest.mark.parametrize("varying", [False, True])
def test_a_patient_with_many_visits_is_one_person(varying: bool) -> None:
    """In rows every patient is a class of 5 to 12; in persons each class holds k patients, at little more loss."""
    frame = visits(600, varying=varying)
    assert frame.groupby("pid").size().min() >= 5
    if not varying:
        assert frame.groupby(KEYS).size().min() >= 5
    study = study_of(frame, local={"k": [5], "passes": 2})
    table = study.table()
    front = sf.search(study, table=table)
    for point in front.points:
        inside, gone = persons_of(table, point)
        assert min(map(len, inside.values())) == point.values["k"] >= 5
        assert (len(gone), point.suppressed_units) == (0, 0)
        assert 0 < point.details["floor"] <= point.loss
        assert check_front(front, table)[int(point.values["k"])] >= point.details["floor"] * (1 - 1e-9)
    one = frame.drop_duplicates("pid").reset_index(drop=True)
    alone = sf.search(study_of(one, local={"k": [5]})).points[0].loss
    assert front.points[0].loss <= alone * (1.5 if varying else 1.1)


@given(data=st.data())
def test_random_units_in_random_tables(data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(12, 70))
    pid = rng.integers(0, int(rng.integers(6, rows)), rows)
    frame = pd.DataFrame({"pid": pid, "age": rng.integers(20, 28, rows), "postcode": rng.integers(0, 5, rows)})
    frame["sex"], frame["ill"] = rng.choice(["F", "M"], rows), rng.choice(["a", "b", "c"], rows)
    if rng.random() < 0.5:
        frame[KEYS] = frame.groupby("pid")[KEYS].transform("first")
    persons, share = frame["pid"].nunique(), float(rng.choice([0.0, 0.1, 0.3]))
    limits = {} if rng.random() < 0.6 else {"distinct_l": 2.0}
    search = {"max_suppression": share, "constraints": limits, "seed": seed}
    study = study_of(frame, search=search, local={"k": [2, 3]})
    table = study.table()
    try:
        front = search_local(study.replace(local={"effort": int(rng.integers(0, 2))}), table, Run())
    except UnreachableError:
        assert limits or persons < 3
        return
    for point in front.points:
        if table.units is None:  # every row is a person
            assert persons == rows
            continue
        inside, gone = persons_of(table, point)
        assert min(map(len, inside.values())) == point.values["k"] >= 2
        assert len(gone) == point.suppressed_units <= int(share * persons + 1e-9)
        assert "floor" not in point.details or point.details["floor"] <= point.loss * (1 + 1e-12)
        for owner in inside if limits else ():
            some = [t for t, own, _ in point.plan.members if own == owner]  # type: ignore[union-attr]
            values = table.units.values["ill"]
            held = {
                (int(u), int(v))
                for t, u, v in zip(values.tuple_of, values.unit, values.values, strict=True)
                if t in some
            }
            each = [len({u for u, v in held if v == value}) for value in {v for _, v in held}]
            assert len(each) >= 2
            assert max(each) < len(inside[owner])  # no value that all persons of a class have
    check_front(front, table)


def optimum(labels: Labels, rows: Rows, units: list[int], k: int) -> float:
    """The least loss of all partitions of rows into classes with k persons."""
    best = np.inf
    for parts in oracle.partitions(len(rows), 1):
        if all(len({units[r] for r in part}) >= k for part in parts):
            best = min(best, sum(oracle.class_cost(labels, [rows[r] for r in part]) for part in parts))
    return best / len(rows)


@given(table=tiny_tables(4, 6), k=st.integers(2, 3), data=st.data())
def test_no_floor_in_persons_is_above_the_optimum(table: tuple[Labels, Rows], k: int, data: st.DataObject) -> None:
    """Also for rows of one person in several tuples, and from any prices that a pass may begin with."""
    labels, rows = table
    units = [data.draw(st.integers(0, 3)) for _ in rows]
    if data.draw(st.booleans()):  # constant within persons
        rows = tuple(rows[units.index(unit)] for unit in units)
    cells = cells_of(rows)
    tuples = [tuple(cell) for cell in cells.codes.tolist()]
    pairs = {(tuples.index(row), unit) for row, unit in zip(rows, units, strict=True)}
    persons = np.bincount([t for t, _ in pairs], minlength=len(tuples)).astype(np.int64)
    best = optimum(labels, rows, units, k)
    if not np.isfinite(best):
        return
    solver = Solver(labels, Cells(cells.codes, persons, cells.counts), 0, 1)
    first = lower_bound(k, np.minimum(solver.cheapest_costs(k), 1.0), solver.cells.lost)
    paid = np.array([data.draw(st.sampled_from([0.1, 0.5, 1.0])) for _ in tuples])
    for start in (first, recoding_bound(labels, solver.cells, first, paid, 10**9)):
        last = dual_bound(labels, solver.cells, start, 12, 10**9)
        assert first.loss <= last.loss <= best + 1e-9
        model, codes = oracle.model_of(labels), solver.cells.codes
        counts, held = solver.cells.lost, solver.cells.counts
        assert check_floor(model, codes, counts, k, last.prices, held) == pytest.approx(last.loss)


def test_prices_that_heavy_persons_cannot_pay_are_refused() -> None:
    """One person with nine rows and one with one, k = 2, of a box that costs 1: the mean of two prices of 1 and 0 is
    below the cost, that of all ten rows is too; with the price of 1 for a box that costs half it is not."""
    model = oracle.model_of(_halves())
    codes, rows, persons = np.array([[0], [1], [2]], np.int32), np.array([9, 1, 1]), np.array([1, 1, 1])
    check_floor(model, codes, rows, 2, np.array([0.5, 0.5, 0.5]), persons)
    check_floor(model, codes, np.array([1, 1, 1]), 2, np.array([0.8, 0.2, 0.8]), persons)
    with pytest.raises(DataError, match="has to pay more than it costs"):
        check_floor(model, codes, rows, 2, np.array([0.8, 0.2, 0.8]), persons)


def _halves() -> Labels:
    from sfumato.methods.local.model import Column, labels_of

    return labels_of([Column([1, 1, 1])])


def test_a_release_says_what_plain_pandas_counts(tmp_path: Path) -> None:
    frame = visits(150, rows=True)
    study = study_of(frame, local={"k": [3]}, search={"constraints": {"distinct_l": 2.0}})
    release = sf.publish(sf.pick(sf.search(study), point=0), tmp_path / "release", accept=NUMBERED)
    manifest = json.loads((tmp_path / "release/private/manifest.json").read_text())
    out = pd.read_parquet(release.data).astype(str)
    assert "pid" not in out
    stated = figures(manifest)
    for name, expected in person_figures(linked(frame, out), frame).items():
        assert stated[name] == pytest.approx(expected), name
        assert manifest["figures"][name]["measured_on"] == "source"
    assert stated["k"] >= 3
    assert stated["distinct_l"] >= 2


def test_verify_counts_persons_again_with_the_source(tmp_path: Path) -> None:
    """Without the source no more than the rows of a class can be stated; with it every figure is counted again."""
    frame = visits(80)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    columns = {name: COLUMNS[name] for name in frame}
    study = sf.Study(
        tmp_path / "visits.csv", columns=columns, search={"system": "local"}, local={"k": [3]}, policy=ANYTHING
    )
    release = sf.publish(sf.pick(sf.search(study), point=0), tmp_path / "release")
    assert not sf.verify(release.folder).differences
    assert not sf.verify(release.folder, source=tmp_path / "visits.csv").differences
    path = release.folder / "private/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["figures"]["prosecutor_risk"]["value"] = 0.01
    path.write_text(json.dumps(manifest))
    again = sf.verify(release.folder, source=tmp_path / "visits.csv")
    assert any("prosecutor_risk is not that of the source" in str(difference) for difference in again.differences)
    manifest["figures"]["k"]["value"] = 10**6
    path.write_text(json.dumps(manifest))
    assert any("its k is not" in str(difference) for difference in sf.verify(release.folder).differences)


def test_a_draw_is_refused_where_rows_belong_to_persons() -> None:
    with pytest.raises(StudyError, match="draw under"):
        sf.search(study_of(visits(30), local={"k": [2], "draw": 0.05}))


@pytest.mark.long
def test_boxes_are_applied_to_the_patients_of_another_year(tmp_path: Path) -> None:
    """Each class of the new file holds k patients, and no class divides equal rows, so no salt decides who is where."""
    first, second = visits(150, rows=True), visits(150, rows=True, seed=2, varying=True)
    paths = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for frame, path in zip((first, second), paths, strict=True):
        frame.to_csv(path, index=False)
    columns = {name: COLUMNS.get(name, {"role": "other"}) for name in first}
    policy = ANYTHING.model_copy(update={"suppressed": 1.0})
    study = sf.Study(paths[0], columns=columns, search={"system": "local"}, local={"k": [3]}, policy=policy)
    release = sf.publish(sf.pick(sf.search(study), point=0), tmp_path / "release", accept=NUMBERED)
    applied = sf.apply_plan(release.folder, paths[1], tmp_path / "applied", unseen="star", accept=NUMBERED)
    manifest = json.loads((applied.folder / "private/manifest.json").read_text())
    out = pd.read_csv(applied.data, dtype=str, keep_default_na=False)
    expected = person_figures(linked(second, out), second)
    assert expected["k"] >= 3
    for name in ("k", "distinct_l", "t_closeness"):
        assert figures(manifest)[name] == pytest.approx(expected[name]), name
    released = set(out["row"].astype(int))
    gone = second.loc[~second["row"].isin(released), "pid"].nunique()
    assert manifest["point"]["suppressed_units"] == gone
    assert len(Assigned.load(applied.folder).split) == 0
    assert not sf.verify(applied.folder, source=paths[1]).differences
    assert out["row"].astype(int).tolist() != sorted(released)  # the file has an order of its own
