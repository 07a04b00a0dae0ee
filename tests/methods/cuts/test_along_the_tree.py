"""A column with a hierarchy is cut along it: codes in any row order, groups that are nodes, named as the tree names."""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.release.fronts import ANYTHING

import sfumato as sf
from sfumato.hierarchies import Hierarchy, save
from sfumato.methods.cuts.space import CutSpace
from sfumato.plans.recodings import CutPlan, labels_of
from sfumato.plans.segments import segment_of
from sfumato.tables.domain import Domain, domain_of
from sfumato.tables.frequency import from_codes

MARITAL = {
    "1": "married",
    "2": "married",
    "3": "formerly",
    "4": "formerly",
    "5": "formerly",
    "6": "never",
    "N": "child",
}


def tree_of(name: str, groups: Mapping[str, str], rows: Sequence[str] | None = None) -> Hierarchy:
    """A tree of codes under words; `rows` is the order of its rows."""
    return Hierarchy.from_paths(name, [(code, groups[code], "*") for code in rows or groups])


def domain(groups: Mapping[str, str], rows: Sequence[str] | None = None, along: bool | None = None) -> Domain:
    return domain_of("code", dict.fromkeys(groups, 1), tree_of("code", groups, rows), along_tree=along)


def members(space: CutSpace, bits: np.ndarray) -> list[set[str]]:
    """The values of each group of the only column."""
    groups, _ = space.plan(bits).grouped(space.segments[0].domain)
    leaves = np.array(space.segments[0].domain.hierarchy.leaves)
    return [set(leaves[groups == group].tolist()) for group in range(int(groups.max()) + 1)]


def test_codes_follow_their_tree_by_hand() -> None:
    """By value the codes 1, 2, 3, 10 would tear odd from odd; the tree keeps them together."""
    mixed = {"1": "odd", "2": "even", "3": "odd", "10": "even"}
    segment = segment_of(domain(mixed, ["10", "3", "2", "1"]))
    assert segment.constrained
    assert segment.starts == ("1", "3", "2", "10")  # groups by their first code, codes by value
    assert segment.size == 5  # 1 + 2 · 2
    free = segment_of(domain(mixed, along=False))
    assert not free.constrained
    assert free.starts == ("1", "2", "3", "10")
    assert free.size == 8


def test_words_and_codes_of_one_level_are_not_mixed() -> None:
    """`never` has one code, and its name beside `married` is not that code."""
    column = domain(MARITAL)
    leaves = list(column.hierarchy.leaves)

    def labels(*groups: str) -> list[str]:
        return labels_of(column, [[leaves.index(code) for code in group] for group in groups])

    assert labels("12", "345", "6", "N") == ["married", "formerly", "never", "child"]
    assert labels("1", "2", "345", "6", "N") == ["1", "2", "formerly", "never", "child"]
    assert labels("1", "2", "3", "4", "5", "6", "N") == list(MARITAL)
    assert labels("123456N") == ["*"]


def test_free_cuts_of_codes_are_named_by_codes() -> None:
    column = domain(MARITAL, along=False)
    assert labels_of(column, [[0, 1], [2, 3, 4, 5, 6]]) == ["{1 | 2}", "{3 | 4 | 5 | 6 | N}"]


def test_names_that_two_nodes_share_become_values() -> None:
    """`other` is a value of one group and the name of another: read alone it would be either."""
    column = domain({"a": "known", "other": "known", "b": "other", "c": "other"})
    assert labels_of(column, [[0], [1], [2, 3]]) == ["a", "other", "{b | c}"]
    assert labels_of(column, [[0, 1], [2, 3]]) == ["known", "{b | c}"]


def test_an_order_that_tears_the_tree_is_refused() -> None:
    torn = {"1": "odd", "2": "even", "3": "odd"}
    column = domain_of("code", dict.fromkeys(torn, 1), tree_of("code", torn), order=["1", "2", "3"])
    with pytest.raises(sf.HierarchyError, match="constrained by its hierarchy") as raised:
        segment_of(column)
    assert "constrained = false" in raised.value.remedy


@given(data=st.data())
def test_every_group_is_a_node_in_any_row_order(data: st.DataObject) -> None:
    """Codes and words as leaves, three levels, rows shuffled: same space, and groups are whole sets of siblings."""
    codes = data.draw(st.lists(st.sampled_from([*map(str, range(-3, 15)), "N", "X9"]), min_size=2, unique=True))
    small = {code: data.draw(st.integers(0, 4)) for code in codes}
    large = {group: data.draw(st.integers(0, 1)) for group in set(small.values())}
    paths = [(code, f"g{small[code]}", f"r{large[small[code]]}", "*") for code in codes]
    rows = data.draw(st.permutations(paths))
    spaces = []
    for order in (paths, rows):
        column = domain_of("code", dict.fromkeys(codes, 1), Hierarchy.from_paths("code", order))
        spaces.append(CutSpace.of(from_codes([column], np.zeros((1, 2), dtype=np.int32))))
    nodes: dict[frozenset[str], set[str]] = {}
    for path in paths:
        for level in range(4):
            held = frozenset(other[0] for other in paths if other[level] == path[level])
            nodes.setdefault(held, set()).add(path[level])
    numeric = "N" not in codes and "X9" not in codes
    if numeric:  # other words stand in the order of the file
        assert spaces[0].segments[0].starts == spaces[1].segments[0].starts
    for space in spaces:
        column = space.segments[0].domain
        for bits in space.sampled(np.random.default_rng(data.draw(st.integers(0, 99))), 3):
            plan = CutPlan(space.plan(bits).cuts)
            tree, level = plan.tree(column)
            for group in members(space, bits):
                assert frozenset(group) in nodes
                label = dict(zip(tree.leaves, (tree.levels[level][g] for g in tree.maps[level]), strict=True))
                assert {label[value] for value in group} <= nodes[frozenset(group)]


TESTDATA = {
    "urbrur": {"1": "urban", "2": "rural"},
    "roof": {"2": "solid", "4": "solid", "5": "light", "6": "light", "9": "light"},
    "walls": {"2": "built", "3": "built", "9": "other"},
    "water": {**dict.fromkeys("1234", "piped"), **dict.fromkeys("56789", "carried")},
    "relat": {"1": "couple", "2": "couple", "3": "child", **dict.fromkeys("456789", "other kin")},
}
ACS = {
    "MAR": {"1": "married", "2": "formerly", "3": "formerly", "4": "formerly", "5": "never"},
    "RAC1P": {"1": "White", "6": "Asian or Pacific", "7": "Asian or Pacific", **dict.fromkeys("234589", "other")},
    "CIT": {"1": "born a citizen", "2": "born a citizen", "3": "born a citizen", "4": "naturalized", "5": "no citizen"},
    "RELP": {"00": "head", "01": "spouse", **{f"{n:02}": "child" for n in (2, 3, 4, 7)}}
    | {f"{n:02}": "other kin" for n in (5, 6, 8, 9, 10)}
    | {f"{n:02}": "not related" for n in range(11, 18)},
}


def released(folder: Path, source: Path, trees: Mapping[str, Mapping[str, str]]) -> Path:
    """Some columns of a table, cut along trees whose rows are shuffled, and released."""
    rng = random.Random(7)
    columns = {}
    for name, groups in trees.items():
        save(tree_of(name, groups, rng.sample(list(groups), len(groups))), folder / f"{name}.csv")
        columns[name] = {"role": "quasi_identifier", "hierarchy": f"{name}.csv"}
    opened = gzip.open if source.suffix == ".gz" else open
    with opened(source, "rt", encoding="utf-8", newline="") as file, (folder / "t.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(trees)
        writer.writerows([row[name] for name in trees] for row in csv.DictReader(file))
    search = {"system": "cuts", "generations": 15, "max_suppression": 0.05}
    study = sf.Study(data={"path": "t.csv"}, columns=columns, search=search, policy=ANYTHING)
    study._folder = folder
    front = sf.search(study)
    table = study.table()
    for point in front.points:
        for column in table.domains:
            groups, _ = point.plan.grouped(column)
            nodes = {frozenset(np.flatnonzero(m == g).tolist()) for m in column.hierarchy.maps for g in set(m.tolist())}
            assert {frozenset(np.flatnonzero(groups == g).tolist()) for g in set(groups.tolist())} <= nodes
    front.save(folder / "front")
    middle = sf.pick(front, min_k=10)
    sf.publish(middle, folder / "out")
    return folder / "out"


def check(out: Path, trees: Mapping[str, Mapping[str, str]]) -> None:
    """Cells are codes, names of the tree or *; a code stands beside no name of its own group, and the dictionary says
    how values were joined."""
    sf.verify(out).raise_if_failed()
    (path,) = (out / "public").glob("*.csv*")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    entries = {
        entry["name"]: entry for entry in json.loads((out / "public" / "dictionary.json").read_text())["columns"]
    }
    named = 0
    for name, groups in trees.items():
        cells = {row[name] for row in rows}
        assert cells <= {*groups, *groups.values(), "*"}, name
        assert not any(groups[cell] in cells for cell in cells & set(groups)), name
        if cells & set(groups.values()):
            named += 1
            assert "of its hierarchy" in entries[name]["words"]
    assert named


def test_testdata_is_cut_along_trees_of_codes(tmp_path: Path, shared: Path) -> None:
    source = shared / "data" / "sdcmicro" / "testdata.csv"
    check(released(tmp_path, source, TESTDATA), TESTDATA)


@pytest.mark.long
def test_acs_is_cut_along_trees_of_codes(tmp_path: Path, shared: Path) -> None:
    source = shared / "data" / "acs-pums" / "psam_p15_2018.csv.gz"
    check(released(tmp_path, source, ACS), ACS)
