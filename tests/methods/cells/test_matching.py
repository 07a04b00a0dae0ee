"""Matching k of blanked cells: what assignments allow, against every assignment of small tables and by hand."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.auditing.uniqueness import Uniqueness, WholeFile
from sfumato.methods.cells import matching
from sfumato.methods.cells.matching import possible, release_support, source_support, without_needless
from sfumato.methods.cells.patterns import Blanks
from sfumato.release.manifest import MANIFEST
from sfumato.release.policy import Evidence, PolicyError, policy_findings
from sfumato.study.sections import PolicySettings

Row = tuple[int, ...]
Pattern = tuple[int | None, ...]


def blanks_of(rows: list[Row], masks: list[int | None]) -> Blanks:
    """One tuple for each different row; each record with its own mask, or suppressed (None)."""
    codes = sorted(set(rows))
    counts = np.array([rows.count(row) for row in codes])
    kept = [(codes.index(row), mask) for row, mask in zip(rows, masks, strict=True) if mask is not None]
    of, mask = (np.array([each[i] for each in kept], dtype=np.int64) for i in (0, 1))
    return Blanks(np.array(codes, np.int32), counts, of, mask, np.ones(len(kept), np.int64)).merged()


def patterns_of(rows: list[Row], masks: list[int | None]) -> list[Pattern]:
    return [
        tuple(None if mask >> j & 1 else value for j, value in enumerate(row))
        for row, mask in zip(rows, masks, strict=True)
        if mask is not None
    ]


def agrees(pattern: Pattern, row: Row) -> bool:
    return all(a is None or a == b for a, b in zip(pattern, row, strict=True))


def by_every_assignment(rows: list[Row], released: list[Pattern]) -> tuple[list[int], list[int]]:
    """For each person the released records it has in some assignment, for each released record the people."""
    pairs = {
        (person, number)
        for people in permutations(range(len(rows)), len(released))
        if all(agrees(pattern, rows[person]) for pattern, person in zip(released, people, strict=True))
        for number, person in enumerate(people)
    }
    of_people, of_rows = Counter(person for person, _ in pairs), Counter(number for _, number in pairs)
    return [of_people[person] for person in range(len(rows))], [of_rows[n] for n in range(len(released))]


def test_it_is_what_every_assignment_allows_on_300_tables() -> None:
    rng = np.random.default_rng(27)
    smaller, suppressed, alone = 0, 0, 0
    for _ in range(300):
        size, width = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        rows = [tuple(map(int, row)) for row in rng.integers(0, int(rng.integers(2, 4)), (size, width))]
        masks = [None if rng.random() < 0.15 else int(rng.integers(0, 1 << width)) for _ in rows]
        if all(mask is None for mask in masks):
            masks[0] = 0
        released = patterns_of(rows, masks)
        of_people, of_rows = by_every_assignment(rows, released)
        blanks = blanks_of(rows, masks)
        found = possible(blanks)
        assert found is not None
        at = [sorted(set(rows)).index(row) for row in rows]
        assert [int(found.rows[t]) for t in at] == of_people, (rows, masks)
        assert (found.matching_k, found.matching_people) == (min(of_people), min(of_rows)), (rows, masks)
        pairwise = min(sum(agrees(pattern, row) for pattern in released) for row in rows)
        smaller += min(of_people) < pairwise
        suppressed += len(released) < len(rows)
        alone += min(of_people) == 1
    assert min(smaller, suppressed, alone) > 20  # the tables have what is to be tested


def test_pairs_that_agree_may_be_ruled_out_by_others() -> None:
    """a* and ab agree with the first person, but the second can only have ab: the first has exactly a*."""
    rows = [(0, 0), (0, 1)]
    found = possible(blanks_of(rows, [2, 0]))
    assert found is not None
    assert found.rows.tolist() == [1, 1]
    _, released = blanks_of(rows, [2, 0]).agreeing()
    assert released.tolist() == [1, 2]


@pytest.mark.parametrize("copies", [1, 3, 1000])
def test_equal_records_are_counted_not_listed(copies: int) -> None:
    """A cycle of two tuples, each with some copies, all blank in the column where they differ."""
    rows = [(0, 0)] * copies + [(0, 1)] * copies
    found = possible(blanks_of(rows, [2] * (2 * copies)))
    assert found is not None
    assert found.rows.tolist() == [2 * copies] * 2
    assert found.matching_people == 2 * copies


def test_a_suppressed_record_makes_the_rows_it_agrees_with_uncertain() -> None:
    """Both people agree with the one row that is left, so it may be either's; the third has none."""
    found = possible(blanks_of([(0, 0), (0, 0), (1, 1)], [0, None, None]))
    assert found is not None
    assert found.rows.tolist() == [1, 0]
    assert found.matching_people == 2


@pytest.mark.long
def test_adult_with_nine_columns_takes_at_most_a_minute_and_two_gigabytes() -> None:
    """Rows that agree with five records pair by pair, and five with them, of which one may be all that is possible."""
    table = sf.read(sf.sample("adult").with_name("cuts.toml")).table()
    codes, allowed, weights = table.codes.T.copy(), np.ones(9, dtype=np.bool_), np.ones(9)
    assert (codes.shape[1], int(table.counts.sum())) == (9, 32_561)
    first = source_support(codes, table.counts, 5, weights, allowed)
    assert first is not None
    pairwise = release_support(first, 5, weights, allowed, 60)
    assert pairwise is not None
    assert min(int(side.min()) for side in pairwise.agreeing()) >= 5
    tracemalloc.start()
    began = time.process_time()
    found = possible(pairwise)
    spent, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is not None
    assert (found.matching_k, found.matching_people) == (1, 1)
    assert spent <= 60
    assert peak <= 2e9


@pytest.mark.parametrize(("limit", "most"), [("MOST_EDGES", 40), ("MOST_WORK", 40)])
def test_too_many_pairs_are_not_computed(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(i, i % 3) for i in range(40)]
    monkeypatch.setattr(matching, limit, most - 1)
    assert possible(blanks_of(rows, [3] * 40)) is None
    monkeypatch.setattr(matching, limit, most)
    assert possible(blanks_of(rows, [3] * 40)) is not None


def figures(k: int, **matched: float | None) -> dict[str, dict[str, float | None]]:
    return {"k": {"value": k}} | {name: {"value": value} for name, value in matched.items()}


UNIQUE = Uniqueness(columns=2, records=10, classes=5, unique=0, smallest=2)
WHOLE = WholeFile(UNIQUE, UNIQUE, ())


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (figures(1, matching_k=3, matching_people=3), None),
        (figures(5, matching_k=1, matching_people=4), "1 released record is possible for a source record: matching k"),
        (figures(5, matching_k=4, matching_people=2), "2 source records are possible for a released record"),
        (figures(5, matching_k=None, matching_people=None), "Matching k was not computed"),
        (figures(2), "k is 2, below 3"),
    ],
)
def test_the_rule_on_k_is_about_matching_k_where_blanks_stand_for_any_value(
    found: dict[str, dict[str, float | None]], says: str | None
) -> None:
    broken = policy_findings(PolicySettings(), Evidence(found, 10, 0, raw=False, whole=WHOLE))
    assert [finding.rule for finding in broken] == ([] if says is None else ["k"])
    assert says is None or says in broken[0].what


def visitors(folder: Path) -> sf.Study:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 60), "b": rng.integers(0, 3, 60), "c": rng.integers(0, 2, 60)})
    frame.to_csv(folder / "p.csv", index=False)
    columns = {name: {"role": "quasi_identifier"} for name in frame.columns}
    cells = {"k": [3], "reading": "agreeing", "effort": 1, "exact": 0}
    return sf.Study(data={"path": str(folder / "p.csv")}, columns=columns, cells=cells, search={"system": "cells"})


def test_where_it_was_not_computed_the_rule_is_not_met_without_an_acceptance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "MOST_EDGES", 5)
    study = visitors(tmp_path)
    front = sf.search(study)
    assert front.objectives[0].name == "agreeing"
    assert front.points[0].details["readings"]["matching_k"] is None
    chosen = sf.pick(front, point=0)
    with pytest.raises(PolicyError, match="Matching k was not computed"):
        sf.publish(chosen, tmp_path / "refused", state=tmp_path / "state")
    accept = dict.fromkeys(("k", "uniques"), "a small table made for a test")
    release = sf.publish(chosen, tmp_path / "out", accept=accept, state=tmp_path / "state")
    assert release.manifest["figures"]["matching_k"]["value"] is None
    public = (release.public / "external.html").read_text("utf-8")
    assert "<b>not computed</b>" in public
    assert "How many remain was not computed" in public
    assert sf.verify(release.folder, study.data.path)
    monkeypatch.undo()
    again = sf.verify(release.folder, study.data.path)
    assert not again
    assert any("its matching_k is not the “not computed” of the manifest" in str(one) for one in again.differences)


@pytest.mark.parametrize("name", ["matching_k", "matching_people", "agreeing"])
def test_a_forged_figure_is_a_difference(name: str, tmp_path: Path) -> None:
    study = visitors(tmp_path)
    release = sf.publish(sf.pick(sf.search(study), point=0), tmp_path / "out", state=tmp_path / "state")
    assert release.manifest["figures"]["matching_k"]["value"] >= 3
    assert sf.verify(release.folder, study.data.path)
    path = release.folder / MANIFEST
    manifest = json.loads(path.read_text("utf-8"))
    manifest["figures"][name]["value"] += 40
    path.write_text(json.dumps(manifest), "utf-8")
    assert any(f"its {name} is not the" in str(one) for one in sf.verify(release.folder).differences)


def test_a_search_strengthens_what_agrees_only_pair_by_pair(tmp_path: Path) -> None:
    """The pairwise start of this table leaves some person one row; the front has no such point."""
    study = visitors(tmp_path)
    table = study.table()
    codes, allowed, weights = table.codes.T.copy(), np.ones(3, dtype=np.bool_), np.ones(3)
    first = source_support(codes, table.counts, 3, weights, allowed)
    assert first is not None
    pairwise = release_support(first, 3, weights, allowed, 60)
    assert pairwise is not None
    pairwise = without_needless(pairwise, 3, weights)
    before = possible(pairwise)
    assert before is not None
    assert not before.reaches(3)
    assert min(int(side.min()) for side in pairwise.agreeing()) >= 3
    point = sf.search(study).points[0]
    assert point.values["matching_k"] >= 3
