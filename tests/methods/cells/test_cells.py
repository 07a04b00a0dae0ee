"""Blanked cells: readings record by record with plain code, the integer program, and files."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.release.fronts import ANYTHING

import sfumato as sf
from sfumato.errors import StudyError, UnreachableError
from sfumato.methods.cells.matching import release_support, source_support, without_needless
from sfumato.methods.cells.patterns import Blanks, Program, solve

Rows = list[tuple[int, ...]]
EQUAL = np.ones(3)
ALL = np.ones(3, dtype=np.bool_)


def blanks_of(rows: Rows, masks: list[int]) -> Blanks:
    """One tuple for each different row; each record with its own mask."""
    codes = sorted(set(rows))
    of = np.array([codes.index(row) for row in rows])
    counts = np.bincount(of)
    return Blanks(np.array(codes, np.int32), counts, of, np.array(masks), np.ones(len(rows), np.int64)).merged()


def agrees(pattern: tuple[int | None, ...], row: tuple[int, ...]) -> bool:
    return all(a is None or a == b for a, b in zip(pattern, row, strict=True))


def patterns_of(rows: Rows, masks: list[int]) -> list[tuple[int | None, ...]]:
    return [tuple(None if m >> j & 1 else v for j, v in enumerate(row)) for row, m in zip(rows, masks, strict=True)]


def plain_readings(source: Rows, released: list[tuple[int | None, ...]]) -> tuple[int, int, int]:
    """k in the strict reading, in the (k, k) reading, and where blanks match anything among released rows."""
    strict = min(released.count(pattern) for pattern in released)
    with_source = min(sum(agrees(pattern, row) for row in source) for pattern in released)
    with_released = min(sum(agrees(pattern, row) for pattern in released) for row in source)
    either = [
        sum(all(a is None or b is None or a == b for a, b in zip(one, two, strict=True)) for two in released)
        for one in released
    ]
    return strict, min(with_source, with_released), min(either)


def covers(pairs: list[list[int]], people: set[int]) -> bool:
    """Whether every row can have a person of its own among these, by augmenting paths."""
    owner: dict[int, int] = {}

    def placed(row: int, seen: set[int]) -> bool:
        for person in pairs[row]:
            if person in people and person not in seen:
                seen.add(person)
                if person not in owner or placed(owner[person], seen):
                    owner[person] = row
                    return True
        return False

    return all(placed(row, set()) for row in range(len(pairs)))


def fewest_possible(source: Rows, released: list[tuple[int | None, ...]]) -> tuple[int, int]:
    """The fewest rows possible for a person and people for a row: each pair is fixed, and the others matched."""
    agreeing = [[p for p, row in enumerate(source) if agrees(pattern, row)] for pattern in released]
    rows, people = [0] * len(source), [0] * len(released)
    for number, able in enumerate(agreeing):
        others = [other for place, other in enumerate(agreeing) if place != number]
        for person in able:
            if covers(others, set(range(len(source))) - {person}):
                rows[person] += 1
                people[number] += 1
    return min(rows), min(people)


def test_blanking_one_whole_record_satisfies_only_the_reading_that_is_no_target() -> None:
    """Two different records, one of them blank in all columns: each matches the other, and neither is protected."""
    blanks = blanks_of([(0, 0), (1, 1)], [0, 3])
    assert blanks.matching() == 2
    assert blanks.sizes().min() == 1
    source, released = blanks.agreeing()
    assert source.tolist() == [1, 2]
    assert released.tolist() == [2, 1]


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)), min_size=3, max_size=7)


@given(ROWS, st.data())
def test_readings_are_those_of_plain_code(rows: Rows, data: st.DataObject) -> None:
    masks = data.draw(st.lists(st.integers(0, 7), min_size=len(rows), max_size=len(rows)))
    blanks = blanks_of(rows, masks)
    source, released = blanks.agreeing()
    found = int(blanks.sizes().min()), int(min(source.min(), released.min())), blanks.matching()
    assert found == plain_readings(rows, patterns_of(rows, masks))


def best(rows: Rows, k: int, strict: bool, whole: int) -> int | None:
    """The fewest blanked cells, by trying everything."""
    least = None
    for masks in product(range(8), repeat=len(rows)):
        cost = sum(mask.bit_count() for mask in masks)
        if (least is not None and cost >= least) or (not strict and sum(mask == 7 for mask in masks) > whole):
            continue
        if plain_readings(rows, patterns_of(rows, list(masks)))[0 if strict else 1] >= k:
            least = cost
    return least


@pytest.mark.parametrize("strict", [True, False])
def test_the_program_finds_the_fewest_cells(strict: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(4):
        rows = [tuple(map(int, row)) for row in rng.integers(0, 2, (4, 3))]
        empty = blanks_of(rows, [0] * 4)
        most = np.full(3, 4)
        program = Program(empty.codes, empty.counts, 2, EQUAL, ALL, most, 0 if strict else 1, strict)
        found, bound = solve(program)
        expected = best(rows, 2, strict, 1)
        assert (found is None) == (expected is None)
        if found is not None:
            assert found.cost(EQUAL) == expected == pytest.approx(bound)


@given(ROWS, st.integers(2, 3))
def test_the_quick_way_agrees_with_k_and_is_above_its_bound(rows: Rows, k: int) -> None:
    empty = blanks_of(rows, [0] * len(rows))
    first = source_support(empty.codes, empty.counts, k, EQUAL, ALL)
    assert first is not None
    quick = release_support(first, k, EQUAL, ALL, len(rows))
    assert quick is not None
    found = without_needless(quick, k, EQUAL)
    for one in (quick, found):
        source, released = one.agreeing()
        assert min(source.min(), released.min()) >= k
    assert found.cost(EQUAL) <= quick.cost(EQUAL)
    program = Program(empty.codes, empty.counts, k, EQUAL, ALL, np.full(3, len(rows)), len(rows), strict=False)
    exact, _ = solve(program)
    assert exact is not None
    assert first.cost(EQUAL) <= exact.cost(EQUAL) <= found.cost(EQUAL)


FEW: list[Rows] = [
    [(1, 1, 0), (1, 0, 1), (0, 0, 1)],
    [(1, 1, 0), (2, 1, 0), (2, 0, 1), (0, 0, 0), (0, 1, 0)],
]


@pytest.mark.parametrize("rows", FEW)
def test_no_more_records_are_blank_altogether_than_may_be(rows: Rows) -> None:
    """With a record more to blank there is a way, or a cheaper one; neither the program nor the quick way takes it."""
    empty, everybody = blanks_of(rows, [0] * len(rows)), len(rows)
    first = source_support(empty.codes, empty.counts, 2, EQUAL, ALL)
    assert first is not None
    for whole in range(2):
        program = Program(empty.codes, empty.counts, 2, EQUAL, ALL, np.full(3, everybody), whole, strict=False)
        found, expected = solve(program)[0], best(rows, 2, False, whole)
        assert (None if found is None else found.cost(EQUAL)) == expected
        for one in (found, release_support(first, 2, EQUAL, ALL, whole)):
            assert one is None or int(one.count[one.mask == 7].sum()) <= whole


def test_the_program_suppresses_no_more_records_than_may_be() -> None:
    """Two records alike and one that is not: without it nothing is blank, with it all nine cells are."""
    empty = blanks_of([(0, 0, 0), (0, 0, 0), (1, 1, 1)], [0, 0, 0])
    for budget, released, cells in ((0, 3, 9), (1, 2, 0)):
        found, bound = solve(Program(empty.codes, empty.counts, 2, EQUAL, ALL, np.full(3, 3), budget, strict=True))
        assert found is not None
        assert (int(found.count.sum()), found.cost(EQUAL)) == (released, cells)
        assert bound == pytest.approx(cells + 3 * (3 - released))


def study_of(frame: pd.DataFrame, path: Path, **cells: object) -> sf.Study:
    frame.to_csv(path, index=False)
    columns = {name: {"role": "quasi_identifier"} for name in frame.columns}
    return sf.Study(data={"path": str(path)}, columns=columns, cells=cells, search={"system": "cells"}, policy=ANYTHING)


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {"a": rng.integers(0, 5, rows), "b": rng.integers(0, 3, rows), "c": rng.integers(0, 2, rows)}
    return pd.DataFrame(columns)


@pytest.mark.parametrize("reading", ["strict", "agreeing"])
def test_a_file_is_what_its_reading_says(reading: str, tmp_path: Path) -> None:
    frame = people(30, 4)
    study = study_of(frame, tmp_path / "p.csv", k=[3], reading=reading, blank_records=0.2, effort=1)
    front = sf.search(study)
    accept = dict.fromkeys(("k", "uniques"), "a small table made for a test")
    release = sf.publish(sf.pick(front, point=0), tmp_path / "out", accept=accept, state=tmp_path / "state")
    out = pd.read_csv(release.data, dtype=str)
    blank = int((out == "*").to_numpy().sum())
    released = [tuple(None if cell == "*" else int(cell) for cell in row) for row in out.to_numpy().tolist()]
    strict, agreeing, matching = plain_readings([tuple(row) for row in frame.to_numpy().tolist()], released)
    details = front.points[0].details
    expected = {"k": strict, "agreeing": agreeing, "matching": matching}
    if reading == "agreeing":
        source = [tuple(row) for row in frame.to_numpy().tolist()]
        rows, of_rows = fewest_possible(source, released)
        expected |= {"matching_k": rows, "matching_people": of_rows}
        assert min(rows, of_rows) >= 3
        assert front.points[0].values["matching_k"] == rows
        assert release.manifest["figures"]["matching_k"]["value"] == rows
        assert f">{rows}</" in (release.public / "external.html").read_text("utf-8")
    assert details["readings"] == expected
    assert details["cells"] == blank
    assert (strict if reading == "strict" else agreeing) >= 3
    assert release.manifest["figures"]["agreeing"]["value"] == agreeing
    assert release.manifest["loss"] == pytest.approx(blank / frame.size)
    assert sf.verify(release.folder, study.data.path)
    assert front.points[0].bound is not None
    assert front.points[0].bound <= front.points[0].values["general_loss"] + 1e-9


def test_columns_that_keep_their_cells_and_columns_with_a_limit(tmp_path: Path) -> None:
    frame = people(60, 5)
    study = study_of(frame, tmp_path / "p.csv", k=[2], never=["c"], limits={"b": 0.1}, effort=1)
    blanked = sf.search(study).points[0].details["blanked"]
    assert blanked["c"] == 0
    assert blanked["b"] <= 6
    with pytest.raises(UnreachableError):
        sf.search(study_of(frame, tmp_path / "p.csv", k=[2], never=["a", "b", "c"]))
    with pytest.raises(StudyError, match="no quasi-identifier"):
        sf.search(study_of(frame, tmp_path / "p.csv", never=["d"]))


def test_a_little_recoding_and_a_little_blanking_are_one_front(tmp_path: Path) -> None:
    """Ages in tens cost little and save many blanks; the file is counted with plain pandas."""
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"age": rng.integers(20, 40, 80), "sex": rng.choice(["F", "M"], 80)})
    frame.to_csv(tmp_path / "p.csv", index=False)
    columns = {
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10]}},
        "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
    }
    data = {"path": str(tmp_path / "p.csv")}
    cells = {"k": [4, 8], "effort": 1, "passes": 1}
    alone = sf.Study(data=data, columns=columns, cells=cells, search={"system": "cells"}, policy=ANYTHING)
    both = alone.with_settings({"cells": {"after": "lattice"}})
    plain, front = sf.search(alone), sf.search(both)
    assert {p.details.get("after") for p in front.points} != {None}
    least = {p.values["k"]: p.loss for p in plain.points}
    for point in front.points:
        assert point.loss <= min((loss for k, loss in least.items() if k >= point.values["k"]), default=1.0) + 1e-9
    accept = dict.fromkeys(("k", "uniques"), "a small table made for a test")
    release = sf.publish(sf.pick(front, point=0), tmp_path / "out", accept=accept, state=tmp_path / "state")
    out = pd.read_csv(release.data, dtype=str)
    assert out.groupby(["age", "sex"]).size().min() == front.points[0].values["k"] >= 4
    assert sf.verify(release.folder, tmp_path / "p.csv")


# Cells that sdcMicro blanks; its rows that fail the strict reading, and those that agree with fewer than k source
# records; source records that agree with fewer than k of its rows.
SDCMICRO = {2: (157, 90, 4, 70), 3: (293, 150, 18, 113), 5: (500, 262, 56, 192)}
KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]


def sdcmicro(shared: Path, k: int) -> tuple[Blanks, int]:
    """sdcMicro's own output as blanks, and how many cells it blanked."""
    source = pd.read_csv(shared / "data/sdcmicro/testdata.csv", dtype=str)[KEYS]
    released = pd.read_csv(shared / f"data/sdcmicro/reference/testdata_kanon_k{k}.csv", dtype=str)[KEYS]
    coded = np.stack([pd.factorize(source[name])[0] for name in KEYS], axis=1).astype(np.int32)
    codes, of = np.unique(coded, axis=0, return_inverse=True)
    mask = (released.isna().to_numpy() * (1 << np.arange(7))).sum(axis=1)
    counts = np.bincount(of.reshape(-1))
    return Blanks(codes, counts, of.reshape(-1), mask, np.ones(len(of), np.int64)), int(released.isna().sum().sum())


@pytest.mark.parametrize("k", [2, 3, 5])
def test_what_sdcmicro_released_in_each_reading(shared: Path, k: int) -> None:
    """Its own reading holds; rows that fail ours are counted."""
    blanks, cells = sdcmicro(shared, k)
    source, released = blanks.agreeing()
    failing = int((blanks.sizes() < k).sum()), int((source < k).sum()), int(blanks.counts[released < k].sum())
    assert (cells, *failing) == SDCMICRO[k]
    assert blanks.matching() == k


# What is blanked instead: in the strict reading and in the (k, k) reading, with the bound beside it.
MOST = {2: (210, 205), 3: (400, 390), 5: (735, 725)}


@pytest.mark.published
@pytest.mark.parametrize("reading", ["strict", "agreeing"])
def test_the_cells_that_protect_testdata(reading: str, shared: Path) -> None:
    names = pd.read_csv(shared / "data/sdcmicro/testdata.csv", nrows=1).columns
    columns = {name: {"role": "quasi_identifier" if name in KEYS else "drop"} for name in names}
    study = sf.Study(
        data={
            "path": str(shared / "data/sdcmicro/testdata.csv"),
            "unit": "row",
            "unit_reason": "sdcMicro counts every row as a person",
        },
        columns=columns,
        search={"system": "cells"},
        cells={"k": [2, 3, 5], "reading": reading, "effort": 20, "passes": 30},
    )
    front = sf.search(study)
    assert len(front.points) == 3
    for k, point in zip((2, 3, 5), front.points, strict=True):
        assert point.details["readings"]["k" if reading == "strict" else "matching_k"] >= k
        assert point.details["cells"] <= MOST[k][reading == "agreeing"]
        assert point.details["ratio"] < (1.35 if reading == "strict" else 1.6)


def test_a_search_after_recodings_that_was_stopped_goes_on_to_the_same_front(tmp_path: Path) -> None:
    """It is made of several local searches; wherever it stops, those that had ended are not made again."""
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"age": rng.integers(20, 40, 80), "sex": rng.choice(["F", "M"], 80)})
    frame.to_csv(tmp_path / "p.csv", index=False)
    known = {"role": "quasi_identifier"}
    columns = {
        "age": known | {"hierarchy": {"build": "interval", "widths": [5, 10]}},
        "sex": known | {"hierarchy": {"build": "flat"}},
    }
    cells = {"k": [4, 8], "effort": 1, "passes": 1, "exact": 0, "after": "lattice", "bases": 2}
    study = sf.Study(data={"path": str(tmp_path / "p.csv")}, columns=columns, cells=cells, search={"system": "cells"})
    told: list[int] = []
    whole = sf.search(study, lambda done, _: bool(told.append(done)))
    assert {p.details.get("after") for p in whole.points} != {None}
    state = tmp_path / "state.npz"
    for moment in (len(told) // 3, 2 * len(told) // 3, len(told) - 1):
        left = iter(range(moment))
        sf.search(study, lambda _, __, left=left: next(left, None) is None, checkpoint=state)  # type: ignore[misc]
        assert state.exists()
        again: list[int] = []
        resumed = sf.search(study, lambda done, _, again=again: bool(again.append(done)), checkpoint=state, resume=True)  # type: ignore[misc]
        assert [point.saved() for point in resumed.points] == [point.saved() for point in whole.points]
        assert len(again) < len(told)
        assert not state.exists()
