"""Two releases held together: on random tables and recodings, the engine's counts are those of plain pandas."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import EXAMPLES
from tests.release.pairs import Pair

from sfumato.data.cells import cleaned
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.release.history import compare
from sfumato.release.history.compare import Joint, join_releases
from sfumato.release.history.description import Description, ShownColumn
from sfumato.release.history.people import HashedRows, hashed_rows
from sfumato.release.history.side_by_side import overlap

QUASI, OTHERS = ("p", "q"), ("s", "t")
KEY = "0" * 64


@st.composite
def tables(draw: Callable[..., Any]) -> pd.DataFrame:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(2, 60))
    spans = {name: draw(st.integers(3, 6)) for name in QUASI}
    spans |= {name: draw(st.sampled_from([1, 3, 10, 30])) for name in OTHERS}
    return pd.DataFrame({name: rng.integers(0, span, rows).astype(str) for name, span in spans.items()})


@st.composite
def descriptions(draw: Callable[..., Any]) -> Description:
    """A random release: each column recoded, kept or left out; classes suppressed by size and by diversity."""
    columns: dict[str, ShownColumn] = {}
    for name in QUASI:
        kind = draw(st.sampled_from(["recoded", "recoded", "recoded", "recoded", "kept", "absent"]))
        if kind == "recoded":
            known = [str(value) for value in range(draw(st.integers(4, 6)))]  # values above are not in the file
            groups = tuple(draw(st.integers(0, 3)) for _ in known)
            columns[name] = ShownColumn("recoded", tuple(known), groups, tuple(string.ascii_lowercase[:4]))
        elif kind == "kept":
            columns[name] = ShownColumn("kept")
    for name in OTHERS:
        if draw(st.sampled_from([True, True, False])):
            columns[name] = ShownColumn("kept")
    size, diversity = draw(st.sampled_from([0, 0, 2, 3, 4])), draw(st.sampled_from([0, 0, 2]))
    recoded = sum(column.kind == "recoded" for column in columns.values())
    classes = st.sets(st.tuples(*[st.integers(0, 3)] * recoded), max_size=6)
    listed = tuple(sorted(draw(classes))) if recoded and draw(st.sampled_from([False, False, True])) else None
    return Description("lattice", columns, size, diversity, listed, sensitive=("s",), complete=())


def shown_by(table: pd.DataFrame, description: Description) -> tuple[pd.DataFrame, pd.Series]:
    """What a release shows of everyone, and who is in it."""
    shown, there = pd.DataFrame(index=table.index), pd.Series(True, index=table.index)
    for name, column in description.columns.items():
        labels = dict(zip(column.values, column.groups, strict=True))
        shown[name] = table[name].map(labels).fillna(-1).astype(int) if column.kind == "recoded" else table[name]
        there &= shown[name] != -1
    return shown, there


def suppressed(table: pd.DataFrame, shown: pd.DataFrame, there: pd.Series, description: Description) -> pd.Series:
    keys = description.recoded
    if description.listed is not None:
        return there & ~shown[sorted(keys)].apply(tuple, axis=1).isin(description.listed)
    if not keys or (description.size < 2 and description.diversity < 2):
        return there
    inside = shown[there].assign(s_=table["s"])
    sizes = inside.groupby(keys)["s_"].transform("size").reindex(table.index).fillna(0)
    values = inside.groupby(keys)["s_"].transform("nunique").reindex(table.index).fillna(0)
    kept = there & (sizes >= description.size)
    return kept & (values >= description.diversity) if description.diversity > 1 else kept


def counted(
    folder: Path,
    table: pd.DataFrame,
    first: Description,
    second: Description,
    old: int | None = None,
    *,
    person: bool = False,
) -> tuple[Joint, pd.Series]:
    """The engine's counts; `old` rows of the table are those that the first release was made of.

    With `person`, the column w says whose the rows are.
    """
    path = folder / "t.csv"
    table.to_csv(path, index=False)
    source = open_source(DataSettings(path=str(path)))
    was_there = pd.Series(np.arange(len(table)) < (len(table) if old is None else old), index=table.index)
    with open_engine() as engine:
        known: HashedRows | None = None
        if old is not None:
            table[:old].to_csv(folder / "old.csv", index=False)
            engine.attach(open_source(DataSettings(path=str(folder / "old.csv"))), "raw")
            known = hashed_rows(engine, source, source.names, KEY)
        engine.attach(source, "raw")
        holder = cleaned(source, source.column("w")) if person else None
        joint = join_releases(engine, source, first, second, k=3, l=2, known=known, key=KEY, holder=holder)
        return joint, was_there


@settings(max_examples=EXAMPLES // 2)
@given(tables(), descriptions(), descriptions(), st.booleans(), st.booleans(), st.data())
def test_counts_are_those_of_plain_pandas(
    tmp_path_factory: pytest.TempPathFactory,
    table: pd.DataFrame,
    first: Description,
    second: Description,
    grown: bool,
    person: bool,
    data: st.DataObject,
) -> None:
    """The people of a table are its rows, or have several."""
    if person:
        most = data.draw(st.integers(1, len(table)))
        table = table.assign(w=np.random.default_rng(len(table)).integers(0, most, len(table)).astype(str))
    old = data.draw(st.integers(1, len(table))) if grown else None
    if old is not None:  # rows that are equal cannot be told apart, so that each new one is made unlike all others
        table = table.assign(u=np.where(np.arange(len(table)) < old, "", np.arange(len(table)).astype(str)))
    found, was_there = counted(tmp_path_factory.mktemp("joint"), table, first, second, old, person=person)
    sides = []
    for description, member in ((first, was_there), (second, pd.Series(True, index=table.index))):
        shown, there = shown_by(table, description)
        sides.append((shown, suppressed(table, shown, there & member, description)))
    whose = table["w"] if person else None
    pair = Pair(table, sides[0][0], sides[1][0], sides[0][1], sides[1][1], whose)
    recoded = [name for name in QUASI if name in first.recoded or name in second.recoded]
    people = pair.in_first | pair.in_second
    assert found.people == pair.number(people)
    assert found.both == pair.number(pair.in_first & pair.in_second)
    assert found.rows == (pair.in_first & pair.in_second).sum()
    assert found.single == pair.number(pair.in_first ^ pair.in_second)
    if not people.any():
        return
    assert found.smallest == pair.joint_sizes(recoded)["joint"].min()
    small = pair.small(recoded, 3)
    assert found.small == pair.number(small)
    assert found.unique == pair.number(pair.unique())
    assert found.alike.get("s", 0) == pair.number(pair.alike(recoded, "s", 2))
    both = [name for name in recoded if name in first.columns and name in second.columns]
    exact = pd.Series(False, index=table.index)
    for name in both:
        assert found.exact.get(name, 0) == pair.number(pair.exact(name))
        exact |= pair.exact(name)
    kept = [n for n in table if n not in recoded and n in first.columns and n in second.columns]
    linked = pair.linked(both, kept)
    assert found.counted
    assert found.linked == len(linked)
    affected = small.reindex(table.index, fill_value=False) | exact
    rows = set(affected[affected].index)
    assert (found.affected, found.linked_affected) == (pair.number(affected), len(rows & set(linked)))


@settings(max_examples=EXAMPLES // 4)
@given(tables(), descriptions(), descriptions())
def test_parts_alone_never_count_too_many_links(
    tmp_path_factory: pytest.TempPathFactory, table: pd.DataFrame, first: Description, second: Description
) -> None:
    """Where too many pairs of rows would be set side by side, what is said is a lower bound, and says so."""
    folder = tmp_path_factory.mktemp("parts")
    exact, _ = counted(folder, table, first, second)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "MANY_PAIRS", -1)
        rough, _ = counted(folder, table, first, second)
    assert rough.linked <= exact.linked
    assert rough.counted or rough.linked == exact.linked


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=12))
def test_labels_that_fit(groups: list[tuple[int, int]]) -> None:
    one, two = (np.array(side, dtype=np.int64) for side in zip(*groups, strict=True))
    result = overlap(one, two)
    pairs = {pair for pair in groups if -1 not in pair}
    assert {tuple(pair) for pair in result.fits.tolist()} == pairs
    for place, (a, b) in enumerate(groups):
        alone = [sum(x == a for x, _ in groups), sum(y == b for _, y in groups)]
        expected = -1 not in (a, b) and groups.count((a, b)) == 1 and min(alone) > 1
        assert bool(result.exact[place]) == expected
    reached: dict[tuple[str, int], int] = {}
    for number, (a, b) in zip(result.part.tolist(), groups, strict=True):  # labels that fit share a part
        for label in (("a", a), ("b", b)):
            if label[1] != -1:
                assert reached.setdefault(label, number) == number
    inside = {(a, b) for a, x in reached.items() for b, y in reached.items() if x == y and a[0] == "a" and b[0] == "b"}
    assert result.crossing == (len(inside) > len(pairs))
    assert result.first_follows == (len({b for _, b in pairs}) == len(pairs))


def test_the_same_release_adds_nothing(tmp_path: Path) -> None:
    table = pd.DataFrame({"p": list("001122"), "q": list("010101"), "s": list("abcabc"), "t": list("xxyyzz")})
    column = ShownColumn("recoded", ("0", "1", "2"), (0, 0, 1), ("low", "high"))
    fine = ShownColumn("recoded", ("0", "1", "2"), (0, 1, 2), ("0", "1", "2"))
    kept = ShownColumn("kept")
    one = Description("lattice", {"p": column, "s": kept})
    for other, adds in (
        (one, (False, False)),
        (Description("lattice", {"p": fine, "s": kept}), (False, True)),
        (Description("lattice", {"p": column, "s": kept, "t": kept}), (False, True)),
        (Description("lattice", {"p": column, "t": kept}), (True, True)),
        (Description("lattice", {"p": column, "s": kept}, size=3), (True, False)),
    ):
        found, _ = counted(tmp_path, table, one, other)
        assert (found.first_adds, found.second_adds) == adds


def test_values_that_one_file_alone_tells_are_not_laid_to_both(tmp_path: Path) -> None:
    """Only those with p = 1 are among two values of s in each file, and among one in both together."""
    table = pd.DataFrame({"p": list("001122"), "s": list("aabbaa")})
    values, kept = ("0", "1", "2"), ShownColumn("kept")
    files = [
        Description(
            "lattice", {"p": ShownColumn("recoded", values, groups, ("low", "high")), "s": kept}, sensitive=("s",)
        )
        for groups in ((0, 0, 1), (0, 1, 1))
    ]
    found, _ = counted(tmp_path, table, *files)
    assert found.alike == {"s": 2}


def test_files_in_the_order_of_their_source_link_row_by_row(tmp_path: Path) -> None:
    table = pd.DataFrame({"p": list("000000"), "s": list("ababab")})
    files = [Description("channel", {"s": ShownColumn("disguised")}, ordered=ordered) for ordered in (True, False)]
    linked = [counted(tmp_path, table, files[0], other)[0] for other in files]
    assert [joint.linked for joint in linked] == [6, 0]
    assert [bool(joint.linking) for joint in linked] == [True, False]
