"""Columns that give others away: planted dependences are found, harmless columns are not, and the counts are plain."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import EXAMPLES

from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.tables.dependence import Dependence, Dependences, Protected, dependences
from sfumato.tables.dependence.count import (
    Guess,
    Line,
    count_by_order,
    count_by_value,
    count_on_line,
    fit,
    guess_by_order,
    guess_by_value,
    guess_on_line,
    joined,
    tolerances,
)
from sfumato.tables.dependence.find import score_pairs
from sfumato.tables.dependence.rows import Cells, look_at

seeds = st.integers(0, 10_000)
BORN = datetime.date(2020, 6, 1)


def search(
    folder: Path,
    columns: Mapping[str, Sequence[Any]],
    kept: Sequence[str],
    protected: Sequence[Protected],
    beside: Sequence[str] = (),
    **options: Any,
) -> Dependences:
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), folder / "t.parquet")
    source = open_source(DataSettings(path=str(folder / "t.parquet")))
    with open_engine() as engine:
        engine.attach(source, "raw")
        return dependences(engine, source, kept, protected, beside, **options)


def banded(width: int, values: range = range(100)) -> dict[str, str]:
    return {str(v): f"from {v // width * width}" for v in values}


@pytest.fixture(scope="module")
def people() -> dict[str, Any]:
    """1,500 people with a place, an age, two incomes; every other column is made from these, or from nothing."""
    rng = np.random.default_rng(11)
    n = 1_500
    place, age = rng.integers(0, 40, n), rng.integers(0, 100, n)
    codes = rng.permutation(40) + 700
    wage, rent = np.round(rng.lognormal(9, 1, n)), np.round(rng.lognormal(8, 1, n))
    noise = rng.random(n) < 0.01
    days = (age * 365.25 + rng.random(n) * 364).astype(int)
    own = np.where(rng.random(n) < 0.07, np.round(rng.lognormal(8, 1, n)), 0)
    one, two = rng.integers(0, 4, n), rng.integers(0, 5, n)
    return {
        "place": place,
        "age": age,
        "wage": wage,
        "code": codes[place],
        "county": place // 4,
        "region": place // 10,
        "half": place // 20,
        "noisy": np.where(noise, rng.permutation(codes[place]), codes[place]),
        "born": [(BORN - datetime.timedelta(int(d))).isoformat() for d in days],
        "born_text": [(BORN - datetime.timedelta(int(d))).strftime("%d/%m/%Y") for d in days],
        "born_day": [BORN - datetime.timedelta(int(d)) for d in days],
        "years": age // 7,
        "total": wage + rent,
        "total_typed": np.where(noise, (wage + rent) * 10, wage + rent),
        "rent": rent,
        "thousands": np.round(wage, -2),
        "bracket": np.digitize(wage, np.quantile(wage, [0.1, 0.3, 0.5, 0.7, 0.9])),
        "one": one,
        "two": two,
        "mixed": (3 * one + 7 * two) % 11,
        "own": own,
        "earned": wage + own,
        "rare": (rng.random(n) < 0.03).astype(int),
        "noise": rng.integers(0, 40, n),
        "many": rng.integers(0, 600, n),
        "number": np.arange(n),
    }


PLACE = Protected("place", "generalized", ({str(p): str(p // 10) for p in range(40)},))
AGE = Protected("age", "generalized", (banded(5), banded(20)))
BANDS = Protected("age", "generalized", (banded(20),))
PLANTED: dict[str, tuple[list[str], Protected, str, str]] = {
    "one-to-one code": (["code"], PLACE, "tells", "one_to_one"),
    "a copy with 1 % noise": (["noisy"], PLACE, "tells", "nearly"),
    "a coarser copy that is finer than the label": (["county"], PLACE, "follows", "many_to_one"),
    "a coarser copy of a number": (["years"], BANDS, "follows", "many_to_one"),
    "a date and its age": (["born"], AGE, "tells", "nearly"),
    "a date written with slashes": (["born_text"], AGE, "tells", "nearly"),
    "a date of the file's own type": (["born_day"], AGE, "tells", "nearly"),
    "a sum of two columns": (["total", "rent"], Protected("wage", "sensitive"), "computes", "many_to_one"),
    "a sum with 1 % typos": (["total_typed", "rent"], Protected("wage", "sensitive"), "computes", "nearly"),
    "a sum with a part that is mostly nothing": (
        ["earned", "own"],
        Protected("wage", "sensitive"),
        "computes",
        "many_to_one",
    ),
    "a rounded copy": (["thousands"], Protected("wage", "sensitive"), "computes", "nearly"),
    "a bracket of a number": (["bracket"], Protected("wage", "generalized", ({},)), "follows", "many_to_one"),
    "two codes together": (["one", "two"], Protected("mixed", "withheld"), "tells", "many_to_one"),
    "a code beside a sensitive column": (["code"], Protected("place", "sensitive"), "tells", "one_to_one"),
}


def hidden(protected: Protected, people: Mapping[str, Any]) -> Protected:
    """A generalized column without labels is one that is hidden altogether."""
    if protected.steps != ({},):
        return protected
    return Protected(protected.name, "generalized", ({str(int(v)): "*" for v in people[protected.name]},))


@pytest.mark.parametrize("case", PLANTED)
def test_planted_dependences_are_found(people: dict[str, Any], tmp_path: Path, case: str) -> None:
    """Among columns that tell nothing."""
    kept, protected, way, kind = PLANTED[case]
    found = search(tmp_path, people, [*kept, "noise", "many", "rare"], [hidden(protected, people)]).dependences
    assert [(set(d.kept), d.protected, d.way, d.kind) for d in found] == [(set(kept), protected.name, way, kind)]
    assert found[0].right >= 0.95
    assert found[0].base < 0.7


HARMLESS: dict[str, tuple[list[str], Protected]] = {
    "a copy as coarse as the label": (["region"], PLACE),
    "a copy coarser than the label": (["half"], PLACE),
    "columns without relation": (["noise", "many", "rare", "one", "two"], PLACE),
    "a number of each row": (["number"], PLACE),
    "a value that nearly all have": (["noise", "many", "code", "age"], Protected("rare", "sensitive")),
    "an age beside a date that is withheld": (["age"], Protected("born", "withheld")),
    "one part of a sum": (["total"], Protected("rent", "sensitive")),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_harmless_columns_are_not_reported(people: dict[str, Any], tmp_path: Path, case: str) -> None:
    kept, protected = HARMLESS[case]
    assert search(tmp_path, people, kept, [protected]).dependences == ()


def test_what_is_finer_depends_on_the_release(people: dict[str, Any], tmp_path: Path) -> None:
    """A region beside a released region tells nothing; beside a hidden place it does."""
    everything = Protected("place", "generalized", (PLACE.steps[0], {str(p): "*" for p in range(40)}))
    (found,) = search(tmp_path, people, ["region"], [everything]).dependences
    assert (found.way, found.step, found.right) == ("tells", 1, 1.0)
    assert found.base == pytest.approx(Counter((people["place"] // 10).tolist()).most_common(1)[0][1] / 1_500)


def test_the_shares_are_those_of_a_plain_count(people: dict[str, Any], tmp_path: Path) -> None:
    (found,) = search(tmp_path, people, ["noisy"], [PLACE]).dependences
    rows = list(zip(people["noisy"].tolist(), (people["place"] // 10).tolist(), people["place"].tolist(), strict=True))
    assert (found.right, found.base, found.rows) == plain_guess(rows)


def test_identifying_columns_are_named_apart(people: dict[str, Any], tmp_path: Path) -> None:
    found = search(tmp_path, people, ["number", "many", "total"], [PLACE])
    shares = {one.column: one.share for one in found.identifying}
    once = sum(count == 1 for count in Counter(people["total"].tolist()).values())
    assert shares == {"number": 1.0, "total": pytest.approx(once / 1_500)}
    assert found.dependences == ()


def test_missing_cells_are_no_values(tmp_path: Path) -> None:
    """A column that says only who was not asked tells nothing of what was answered."""
    rng = np.random.default_rng(2)
    asked = rng.random(900) < 0.5
    answer = [str(a) if there else None for a, there in zip(rng.integers(0, 3, 900), asked, strict=True)]
    columns = {"answer": answer, "asked": [str(there) for there in asked]}
    assert search(tmp_path, columns, ["asked"], [Protected("answer", "sensitive")]).dependences == ()


def test_only_the_rows_that_are_released_count(people: dict[str, Any], tmp_path: Path) -> None:
    """A code that holds for those over 50 is found once the others are dropped."""
    columns = {"place": people["place"], "age": people["age"]}
    columns["code"] = np.where(people["age"] > 50, people["code"], people["noise"])
    assert search(tmp_path, columns, ["code"], [PLACE]).dependences == ()
    (found,) = search(tmp_path, columns, ["code"], [PLACE], rows="c1 > 50").dependences
    assert (found.kind, found.rows) == ("one_to_one", int((people["age"] > 50).sum()))


def test_quasi_identifiers_beside(people: dict[str, Any], tmp_path: Path) -> None:
    """Alone they are asked about generalized columns only; with a kept one, about all."""
    wage = Protected("wage", "sensitive")
    assert search(tmp_path, people, ["noise"], [wage], ["rent", "total"]).dependences == ()
    (found,) = search(tmp_path, people, ["total"], [wage], ["rent"]).dependences
    assert found.kept == ("total", "rent")
    (found,) = search(tmp_path, people, [], [PLACE], ["code"]).dependences
    assert found.kept == ("code",)
    assert search(tmp_path, people, [], [Protected("place", "sensitive")], ["code"]).dependences == ()


def test_sensitive_columns_are_not_asked_about_each_other(people: dict[str, Any], tmp_path: Path) -> None:
    both = [Protected("place", "sensitive"), Protected("code", "sensitive")]
    assert search(tmp_path, people, ["place", "code"], both).dependences == ()
    (found,) = search(tmp_path, people, ["place", "code"], [both[0], AGE]).dependences
    assert (found.kept, found.protected) == (("code",), "place")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """120,000 rows of which a sixth is looked at, and codes with 30,000 values of about four rows each."""
    rng = np.random.default_rng(4)
    parcel = rng.integers(0, 30_000, 120_000)
    codes = rng.permutation(30_000) + 100_000
    noise = rng.random(120_000) < 0.01
    columns = {
        "parcel": parcel,
        "code": codes[parcel],
        "noisy": np.where(noise, rng.permutation(codes[parcel]), codes[parcel]),
        "district": parcel // 60,
        "shuffled": rng.permutation(parcel),
    }
    return tmp_path_factory.mktemp("large"), columns


def test_columns_with_more_values_than_a_sample_has_rows(large: tuple[Path, dict[str, Any]]) -> None:
    folder, columns = large
    steps = ({str(p): str(p // 600) for p in range(30_000)},)
    found = search(
        folder, columns, ["code", "noisy", "district", "shuffled"], [Protected("parcel", "generalized", steps)]
    )
    ways = {d.kept[0]: (d.way, d.kind) for d in found.dependences}
    assert ways == {
        "code": ("tells", "one_to_one"),
        "noisy": ("tells", "nearly"),
        "district": ("follows", "many_to_one"),
    }
    assert found.identifying == ()
    right = {d.kept[0]: d.right for d in found.dependences}
    labels = columns["parcel"] // 600
    rows = list(zip(columns["noisy"].tolist(), labels.tolist(), columns["parcel"].tolist(), strict=True))
    assert right["noisy"] == pytest.approx(plain_guess(rows)[0])
    assert right["code"] == 1.0


def test_rows_are_drawn_by_value_where_a_sample_would_hold_none_twice(large: tuple[Path, dict[str, Any]]) -> None:
    folder, columns = large
    pq.write_table(pa.table(columns), folder / "t.parquet")
    source = open_source(DataSettings(path=str(folder / "t.parquet")))
    with open_engine() as engine:
        engine.attach(source, "raw")
        looks = look_at(engine, Cells(source, source.names))
    assert looks.total == 120_000
    assert 15_000 < looks.sample.rows < 25_000
    assert set(looks.by_value) == {"parcel", "code", "noisy", "shuffled", "district"} - {"district"}
    drawn = looks.by_value["parcel"]
    hashes = drawn.hashes["parcel"]
    assert drawn.rows == sum(Counter(columns["parcel"].tolist()).values()) * drawn.rows // 120_000
    assert drawn.rows / len(hashes) == pytest.approx(4, rel=0.1)  # all rows of some values


def test_a_column_that_nearly_tells_alone_still_tells_with_another(tmp_path: Path) -> None:
    """On a sample 93 % is near enough to be counted, and on all rows it is not enough: the pair is looked at then."""
    rng = np.random.default_rng(12)
    n = 60_000
    wage = np.round(rng.lognormal(9, 1, n))
    own = np.where(rng.random(n) < 0.07, np.round(rng.lognormal(8, 1, n)), 0)
    kind, moved = rng.integers(0, 5, n), (rng.random(n) < 0.07).astype(int)
    columns = {"wage": wage, "own": own, "earned": wage + own, "kind": kind, "moved": moved, "now": (kind + moved) % 5}
    protected = [Protected("earned", "sensitive"), Protected("now", "sensitive")]
    found = search(tmp_path, columns, ["wage", "own", "kind", "moved"], protected).dependences
    assert {(frozenset(d.kept), d.protected) for d in found} == {
        (frozenset({"wage", "own"}), "earned"),
        (frozenset({"kind", "moved"}), "now"),
    }


def plain_guess(rows: Sequence[tuple[Any, Any, Any]]) -> tuple[float, float, int]:
    """Rows of (given, label, target): the definition, row by row."""
    given = Counter(r[0] for r in rows)
    cells = Counter(rows)
    several = [r for r in rows if given[r[0]] >= 2]
    by_cell: dict[tuple[Any, Any], Counter[Any]] = {}
    for (value, label, target), count in cells.items():
        by_cell.setdefault((value, label), Counter())[target] = count
    right = 0
    for value, label, target in several:
        others = by_cell[value, label].copy()
        others[target] -= 1
        mine = others.pop(target)
        right += mine > max(others.values(), default=0)
    base = Counter((r[1], r[2]) for r in several)
    most: dict[Any, int] = {}
    for (label, _), count in base.items():
        most[label] = max(most.get(label, 0), count)
    count = len(several)
    return (right / count if count else 0.0, sum(most.values()) / count if count else 0.0, count)


@given(seeds, st.integers(1, 12), st.integers(1, 6), st.integers(1, 4), st.integers(1, 60))
def test_guesses_by_value_are_the_definition(seed: int, values: int, targets: int, labels: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, rows).astype(np.int32) for size in (values, targets, labels)]
    found = guess_by_value(*codes)
    expected = plain_guess(list(zip(codes[0].tolist(), codes[2].tolist(), codes[1].tolist(), strict=True)))
    assert (found.share, found.base_share, found.rows) == pytest.approx(expected)
    # whether the table of counts is filled in full or not
    wide = codes[1] * 100_003
    assert guess_by_value(codes[0], wide, codes[2]) == found


@given(seeds)
@settings(max_examples=EXAMPLES // 2)
def test_the_engine_counts_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 80))
    codes = [rng.integers(0, size, rows).astype(np.int32) for size in rng.integers(1, 9, 4)]
    x = rng.permutation(rows).astype(np.float64) / 7
    line = Line("y", ("x",), 0.3, (float(rng.normal()),))
    y = np.round(rng.normal(size=rows), 2)
    with open_engine() as engine:
        columns = {"k": codes[0], "k2": codes[3], "v": codes[1], "g": codes[2], "x": x, "y": y, "r": np.arange(rows)}
        engine.upload("t", columns)
        table = "SELECT * FROM t"
        assert count_by_value(engine, table, ["k"], "v", "g") == guess_by_value(codes[0], codes[1], codes[2])
        both = joined(codes[0], codes[3])
        assert count_by_value(engine, table, ["k", "k2"], "v", "g") == guess_by_value(both, codes[1], codes[2])
        assert count_by_order(engine, table, "x", "v", "g") == guess_by_order(x, codes[1], codes[2])
        assert count_on_line(engine, table, line, ["x"], "y", 0.4) == guess_on_line(line, [x], y, codes[2], 0.4)


@given(seeds, st.floats(0.06, 0.5), st.floats(0, 0.02))
def test_a_line_is_found_whatever_share_of_a_part_is_nothing(seed: int, share: float, typos: float) -> None:
    rng = np.random.default_rng(seed)
    one = np.round(rng.lognormal(9, 1, 1_000))
    two = np.where(rng.random(1_000) < share, np.round(rng.lognormal(8, 1, 1_000)), 0)
    total = np.where(rng.random(1_000) < typos, 10 * one, one + two)
    line = fit(("one", "two"), "total", [one, two], total, rng)
    assert line.slopes == pytest.approx((1, 1), abs=1e-6)
    assert line.start == pytest.approx(0, abs=1e-2)


@given(seeds)
def test_pairs_are_scored_as_they_are_counted(seed: int) -> None:
    """The quick count leaves out rows that are alone in their label, so it is never below the share that counts."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(5, 80))
    codes = rng.integers(0, 4, (3, rows)).astype(np.int32)
    target, label = rng.integers(-1, 3, rows).astype(np.int32), rng.integers(0, 2, rows).astype(np.int32)
    firsts, seconds = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32)
    tried, right = score_pairs(codes, np.full(3, 4, np.int64), firsts, seconds, target, 3, label, 2)
    there = target >= 0
    for place, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        counted = guess_by_value(joined(codes[i][there], codes[j][there]), target[there], label[there])
        assert right[place] == counted.right
        assert tried[place] <= counted.rows


@given(seeds, st.integers(2, 30), st.floats(0, 0.03))
@settings(max_examples=EXAMPLES)
def test_a_copy_is_told_whatever_its_values_are_called(seed: int, values: int, noise: float) -> None:
    """Renaming changes nothing, and a copy with little noise is a dependence for any number of values."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, values, 2_000).astype(np.int32)
    other = rng.permutation(values).astype(np.int32)[target]
    other = np.where(rng.random(2_000) < noise, rng.integers(0, values, 2_000), other).astype(np.int32)
    label = np.zeros(2_000, dtype=np.int32)
    found = guess_by_value(other, target, label)
    assert found.tells()
    assert guess_by_value(rng.permutation(values).astype(np.int32)[other], target, label) == found
    assert not guess_by_value(other, target, target).tells()  # a label as fine as the value leaves nothing to tell


@given(seeds, st.integers(2, 1_000))
@settings(max_examples=EXAMPLES)
def test_chance_is_no_dependence(seed: int, values: int) -> None:
    """A column drawn at random tells nothing, however many values it has, and whatever share one value has."""
    rng = np.random.default_rng(seed)
    share = rng.random()
    target = (rng.random(1_000) < share).astype(np.int32)
    label = rng.integers(0, 3, 1_000).astype(np.int32)
    assert not guess_by_value(rng.integers(0, values, 1_000).astype(np.int32), target, label).tells()
    assert not guess_by_order(rng.random(1_000), target, label).tells()


def test_ties_in_an_order_are_not_told_by_the_order_of_the_file(tmp_path: Path) -> None:
    """A file sorted by region has neighbours of the same age in the same region."""
    rng = np.random.default_rng(8)
    region = np.repeat(np.arange(6), 500)
    columns = {"region": region, "age": rng.integers(0, 120, 3_000)}
    assert search(tmp_path, columns, ["age"], [Protected("region", "withheld")]).dependences == ()


def test_half_of_a_few_errors_is_no_dependence_and_a_rare_value_that_is_told_is_one() -> None:
    """Where the released label is right for 99 %, what is left is a handful of records: chance removes half of them."""
    assert not Guess(4_000, 3_984, 3_968).tells()
    assert Guess(4_000, 4_000, 3_980).tells()
    assert Guess(4_000, 3_970, 3_920).tells()


def test_a_record_says_what_it_is() -> None:
    assert Guess(200, 196, 180).removed == pytest.approx(0.8)
    one = Dependence(("a",), "b", "withheld", "tells", "nearly", 0.97123, 0.5, 100)
    assert one.as_dict()["right"] == 0.9712


def test_a_column_that_finds_half_of_a_group_is_found_though_it_is_often_wrong(tmp_path: Path) -> None:
    """One row in fifty is of the group: with three right of five, no error is gone that matters to the 95 %."""
    rng = np.random.default_rng(3)
    n = 4_000
    member = rng.random(n) < 0.02
    places = np.flatnonzero(member)
    branch = rng.integers(0, 30, n)
    branch[places[: len(places) * 2 // 3]] = 99
    branch[rng.choice(np.flatnonzero(~member), len(places) * 4 // 9, replace=False)] = 99
    columns = {"branch": branch, "noise": rng.integers(0, 30, n), "number": np.arange(n), "group": member.astype(int)}
    kept = ["branch", "noise", "number"]
    assert search(tmp_path, columns, kept, [Protected("group", "withheld")]).dependences == ()
    (found,) = search(tmp_path, columns, kept, [Protected("group", "withheld", rare="1")]).dependences
    assert (found.kept, found.way, found.kind, found.rows) == (("branch",), "finds", "nearly", len(places))
    assert found.right == (len(places) * 2 // 3) / len(places)
    few = {**columns, "branch": np.where(rng.random(n) < 0.5, branch, 0)}  # a third of the group, and as often right
    assert search(tmp_path, few, kept, [Protected("group", "withheld", rare="1")]).dependences == ()


def test_tolerances_depend_on_the_range_and_not_on_the_place() -> None:
    values = np.linspace(0.25, 10.5, 200)
    for moved in (-5_000.0, 5_000.0):
        assert tolerances(values + moved) == pytest.approx(tolerances(values), rel=1e-6)
    assert tolerances(np.array([0.5, 100.5])) == pytest.approx((1e-6 * 90, 0.02 * 90), rel=1e-9)
