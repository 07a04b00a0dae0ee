"""Boxes of a release on another table: by a plain oracle, by hand, and on German credit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.release.fronts import ANYTHING, write_csv

import sfumato as sf
from sfumato.measures.registry import measure
from sfumato.methods.local import apply
from sfumato.methods.local.apply import assign_to_boxes, cheapest_first
from sfumato.tables.frequency import FrequencyTable

LIMIT = [(measure("distinct_l"), 2.0)]
NAMES = tuple(f"column{position}" for position in range(1, 22))


def table_of(folder: Path, rows: list[tuple[int, int, str]]) -> FrequencyTable:
    write_csv(folder / "t.csv", [["a", "b", "ill"], *rows])
    columns = {name: {"role": "quasi_identifier"} for name in "ab"}
    study = sf.Study(data={"path": str(folder / "t.csv")}, columns={**columns, "ill": {"role": "sensitive"}})
    return study.table()


def plain(codes: Any, counts: Any, low: Any, high: Any, k: int) -> list[int]:
    """One box after another, dissolved or kept: each record is in the cheapest box left that holds it."""
    live = list(range(len(low)))
    while True:
        owner = [
            next((i for i in live if all(low[i] <= codes[:, t]) and all(codes[:, t] < high[i])), -1)
            for t in range(codes.shape[1])
        ]
        rows = {i: sum(int(counts[t]) for t, o in enumerate(owner) if o == i) for i in live}
        small = [i for i in live if rows[i] < k]
        if not small:
            return owner
        live.remove(small[0])


Cell = st.tuples(st.integers(0, 4), st.integers(0, 4))
Box = st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(0, 4), st.integers(1, 5))


@given(st.lists(st.tuples(Cell, st.integers(1, 3)), min_size=1, max_size=14), st.lists(Box, max_size=8))
def test_the_cheapest_first_is_one_box_dissolved_after_another(cells: Any, boxes: Any) -> None:
    cells.sort()
    codes = np.array([cell for cell, _ in cells], np.int32).T
    counts = np.array([count for _, count in cells])
    low = np.array([(a, b) for a, _, b, _ in boxes], np.int64).reshape(-1, 2)
    high = np.array([(a, b) for _, a, _, b in boxes], np.int64).reshape(-1, 2)
    sort, first, last = apply._spans(codes, low, high)
    keys, nothing = np.arange(1, len(counts) + 1, dtype=np.uint64) << 4, np.zeros(len(low), np.uint64)
    owner, _ = cheapest_first(
        np.ascontiguousarray(codes[:, sort]), counts[sort], low, high, first, last, 3, keys, nothing
    )
    assert owner.tolist() == np.array(plain(codes, counts, low, high, 3))[sort].tolist()


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_classes_hold_what_was_promised(tmp_path: Path, seed: int, limited: bool) -> None:
    """k, the criterion, every record once and inside its box, and never fewer records than without the second part."""
    rng = np.random.default_rng(seed)
    rows = [(int(a), int(b), "xyz"[i]) for a, b, i in zip(*rng.integers(0, [[5], [5], [3]], (3, 40)), strict=True)]
    table = table_of(tmp_path, rows)
    codes = np.stack(table.codes).astype(np.int32)
    low = rng.integers(0, 4, (12, 2))
    high = np.minimum(low + rng.integers(1, 4, (12, 2)), [len(d.labels) for d in table.domains])
    costs = (high - low).sum(axis=1) / 10
    limits = LIMIT if limited else []
    of, box, count = assign_to_boxes(codes, table, low, high, costs, 4, limits)
    assert np.bincount(of, weights=count).tolist() == table.counts.tolist()
    kept = box >= 0
    inside = codes[:, of[kept]].T
    assert np.all((low[box[kept]] <= inside) & (inside < high[box[kept]]))
    sizes = np.bincount(box[kept], weights=count[kept])
    assert np.all((sizes == 0) | (sizes >= 4))
    if limited:
        assert len(np.unique(of)) == len(of)
        where = dict(zip(of.tolist(), box.tolist(), strict=True))
        ill: dict[int, set[str]] = {}
        tuples = {(table.domains[0].labels[a], table.domains[1].labels[b]): t for t, (a, b) in enumerate(codes.T)}
        for a, b, value in rows:
            ill.setdefault(where[tuples[str(a), str(b)]], set()).add(value)
        assert all(len(values) >= 2 for i, values in ill.items() if i >= 0)
    again = assign_to_boxes(codes, table, low, high, costs, 4, limits)
    assert all(np.array_equal(one, other) for one, other in zip((of, box, count), again, strict=True))
    order = np.lexsort((np.arange(12), costs))
    first = np.array(plain(codes, table.counts, low[order], high[order], 4))
    if not limited:
        assert count[~kept].sum() <= table.counts[first < 0].sum()


def entries(*fitted: Any) -> list[tuple[int, ...]]:
    return sorted(zip(*(part.tolist() for part in fitted), strict=True))


def test_a_box_that_was_dissolved_is_filled_by_what_others_spare(tmp_path: Path) -> None:
    """The box of 1 and 2 takes both, so that 0 is alone in that of 0 and 1: it gets one of the two records of 1."""
    table = table_of(tmp_path, [(0, 0, "x")] * 2 + [(1, 0, "x"), (1, 0, "y")] + [(2, 0, "y")] * 3 + [(4, 0, "x")])
    codes = np.stack(table.codes).astype(np.int32)
    low, high, costs = np.array([[1, 0], [0, 0]]), np.array([[3, 1], [2, 1]]), np.array([0.1, 0.2])
    expected = [(0, 1, 2), (1, 0, 1), (1, 1, 1), (2, 0, 3), (3, -1, 1)]
    assert entries(*assign_to_boxes(codes, table, low, high, costs, 3, [])) == expected
    whole = [(0, -1, 2), (1, 0, 2), (2, 0, 3), (3, -1, 1)]  # 2 alone would have one value of ill
    assert entries(*assign_to_boxes(codes, table, low, high, costs, 3, LIMIT)) == whole


def test_a_box_lends_what_a_third_gives_it_back(tmp_path: Path) -> None:
    """0 needs one of 1, whose box has no more than k; that gets 2 from the box of 2 and 3, which has one too many."""
    table = table_of(tmp_path, [(0, 0, "x"), (1, 0, "x"), (1, 0, "y"), (2, 0, "x"), (3, 0, "y"), (3, 0, "x")])
    codes = np.stack(table.codes).astype(np.int32)
    low, high = np.array([[2, 0], [1, 0], [0, 0]]), np.array([[4, 1], [3, 1], [2, 1]])
    fitted = assign_to_boxes(codes, table, low, high, np.array([0.1, 0.2, 0.3]), 2, [])
    assert entries(*fitted) == [(0, 2, 1), (1, 1, 1), (1, 2, 1), (2, 1, 1), (3, 0, 2)]


def test_no_box_at_all(tmp_path: Path) -> None:
    table = table_of(tmp_path, [(0, 0, "x"), (1, 0, "y")])
    codes = np.stack(table.codes).astype(np.int32)
    none = np.empty((0, 2), dtype=np.int64)
    assert entries(*assign_to_boxes(codes, table, none, none, np.empty(0), 2, LIMIT)) == [(0, -1, 1), (1, -1, 1)]


@pytest.mark.long
@pytest.mark.parametrize("constraints", [{}, {"distinct_l": 2}])
def test_german_credit(shared: Path, tmp_path: Path, constraints: dict[str, float]) -> None:
    keys = [f"column{position}" for position in (9, 11, 13, 15, 17, 20)]
    columns = {name: {"role": "quasi_identifier" if name in keys else "other"} for name in NAMES}
    columns |= {"column5": {"role": "drop"}, "column4": {"role": "sensitive"}}
    source = shared / "data" / "german-credit" / "german.data"
    study = sf.Study(
        data={"path": str(source), "names": NAMES, "header": False},
        columns=columns,
        search={"system": "local", "constraints": constraints},
        local={"k": [5], "passes": 0},
        policy=ANYTHING,
    )
    release = sf.publish(sf.pick(sf.search(study), point=0), tmp_path / "release", state=tmp_path / "s")
    same = sf.apply_plan(release.folder, source, tmp_path / "same", state=tmp_path / "s2")
    assert same.manifest["suppressed"] <= release.manifest["suppressed"]
    (tmp_path / "part.data").write_text("\n".join(source.read_text().splitlines()[:600]) + "\n")
    part = sf.apply_plan(release.folder, tmp_path / "part.data", tmp_path / "part", state=tmp_path / "s3")
    assert part.manifest["released"] >= 250
    assert part.manifest["figures"]["k"]["value"] >= 5
    assert part.manifest["figures"]["distinct_l"]["value"] >= constraints.get("distinct_l", 1)
    assert sf.verify(part.folder, tmp_path / "part.data")
