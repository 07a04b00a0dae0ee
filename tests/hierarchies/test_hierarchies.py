"""Hierarchies: reading, building, checking, drawing."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import hierarchies

from sfumato.errors import HierarchyError
from sfumato.hierarchies import Hierarchy, build, load, save
from sfumato.hierarchies.hierarchy import draw
from sfumato.hierarchies.labels import interval
from sfumato.hierarchies.recipes import builder, recipe
from sfumato.samples.samples import sample
from sfumato.tables.domain import domain_of

Write = Callable[[str, str], Path]


def test_bundled_hierarchies_have_the_lengths_of_the_paper() -> None:
    folder = sample("adult-complete").parent / "hierarchies"
    lengths = {path.stem: load(path).height for path in folder.glob("*.csv")}
    assert lengths == {
        "age": 6,
        "workclass": 3,
        "education": 3,
        "marital-status": 3,
        "race": 1,
        "sex": 1,
        "native-country": 4,
        "occupation": 3,
        "salary-class": 1,
    }


@pytest.mark.parametrize(
    ("pattern", "files", "leaves"),
    [
        ("data/arx/adult/adult_hierarchy_*.csv", 9, {"sex": 2, "age": 100}),
        ("data/adult-uci/hierarchies-anjana/*.csv", 9, {"age": 73, "country": 42, "workclass": 9}),
        ("data/adult-uci/hierarchies-mondrian/*.txt", 7, {"adult_workclass": 8}),
        ("data/adult-uci/hierarchies-arx-full/*hierarchy_[!a]*.csv*", 13, {"adult_full_hierarchy_fnlwgt": 21648}),
    ],
)
def test_every_style_is_read(shared: Path, pattern: str, files: int, leaves: dict[str, int]) -> None:
    found = {path.name.split(".")[0]: load(path) for path in shared.glob(pattern)}
    assert len(found) == files
    for name, count in leaves.items():
        tree = next(tree for file, tree in found.items() if file.endswith(name))
        assert len(tree.leaves) == count


def test_a_real_file_with_rows_twice_is_refused(shared: Path) -> None:
    """17 ages are listed twice in this file; which row counts would be a guess."""
    with pytest.raises(HierarchyError, match="17 duplicate leaves: 72, 73, 74"):
        load(shared / "data/adult-uci/hierarchies-arx-full/adult_full_hierarchy_age.csv")


def test_short_paths_keep_their_leaf(shared: Path) -> None:
    tree = load(shared / "data/adult-uci/hierarchies-mondrian/adult_workclass.txt")
    assert tree.paths[0] == ("Private", "Private", "*")
    assert tree.paths[1] == ("Self-emp-not-inc", "Self-employ", "*")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a;x;*\na;y;*\n", "1 duplicate leaf: a"),
        ("a;x;p;*\nb;x;q;*\n", "not nested"),
        ("a;x\nb;y\n", "2 roots"),
        ("a\nb\n", "only the values themselves"),
        ("", "no rows"),
        ("level0,level1\n", "no rows"),
    ],
)
def test_malformed_files_are_refused(write: Write, text: str, says: str) -> None:
    with pytest.raises(HierarchyError, match=says) as caught:
        load(write("h.csv", text))
    assert caught.value.expected


def test_missing_file_folder_and_other_encodings(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(HierarchyError, match="hierarchy file"):
            load(path)
    (tmp_path / "latin.csv").write_bytes("Zoë;*\n".encode("latin-1"))
    with pytest.raises(HierarchyError, match="not UTF-8"):
        load(tmp_path / "latin.csv")


@given(tree=hierarchies())
def test_levels_are_nested_and_survive_a_file(tree: Hierarchy, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("h") / "h.csv"
    save(tree, path)
    again = load(path)
    assert again.paths == tree.paths
    for level in range(tree.height):
        assert np.array_equal(tree.parents[level][tree.maps[level]], tree.maps[level + 1])
        assert tree.sizes[level].sum() == len(tree.leaves)


RECIPES = [
    ("interval", {}),
    ("interval", {"widths": [3, 6, 12], "origin": 1}),
    ("quantile", {"bins": 6}),
    ("breaks", {"levels": [[5, 10, 20], [10]]}),
    ("prefix", {}),
    ("frequency", {}),
    ("flat", {}),
]


@pytest.mark.parametrize(("kind", "options"), RECIPES, ids=[f"{k}{i}" for i, (k, _) in enumerate(RECIPES)])
@given(values=st.dictionaries(st.integers(-50, 500).map(str), st.integers(1, 90), min_size=1, max_size=30))
def test_built_hierarchies_cover_their_values(kind: str, options: dict[str, object], values: dict[str, int]) -> None:
    tree = builder("x", recipe(kind, options))(list(values), list(values.values()))
    assert sorted(tree.leaves) == sorted(values)
    assert tree.root == "*"


@given(st.lists(st.integers(0, 99), min_size=2, max_size=30, unique=True))
def test_interval_labels_hold_their_values(values: list[int]) -> None:
    tree = build.equal_width("x", [str(v) for v in values], [5, 10, 50])
    for path in tree.paths:
        for label in path[1:-1]:
            found = interval(label)
            assert found is not None
            assert found.holds(float(path[0]))


def test_builders_say_what_is_wrong() -> None:
    with pytest.raises(HierarchyError, match="1 value of age cannot be read as a number"):
        build.equal_width("age", ["1", "x"])
    with pytest.raises(HierarchyError, match="do not nest"):
        build.equal_width("age", ["1", "9"], [5, 12])
    with pytest.raises(HierarchyError, match="do not nest"):
        build.breaks("age", ["1", "9"], [[5], [6]])
    with pytest.raises(HierarchyError, match="cannot be read as a date"):
        build.dates("day", ["2020-01-01", "soon"])
    with pytest.raises(HierarchyError, match="unknown kind"):
        recipe("intervals", {})
    with pytest.raises(HierarchyError, match="no option bins"):
        recipe("flat", {"bins": 3})


def test_decimal_comma_and_fractions() -> None:
    tree = build.equal_width("x", ["1,5", "2,25"], [0.5, 1.0], decimal=",")
    assert tree.paths[0] == ("1,5", "[1.5, 2)", "[1, 2)", "*")


def test_tree_shows_counts_and_cuts_long_lists() -> None:
    tree = build.equal_width("age", [str(v) for v in range(40)], [10])
    text = draw(tree, {"3": 2, "11": 5}, children=3)
    assert text.splitlines()[0] == "*  7 records"
    assert "├── 0-9  2" in text
    assert "… 7 more" in text


def test_generalized_labels_stand_for_their_leaves() -> None:
    tree = build.equal_width("age", [str(v) for v in range(20, 40)], [5, 10])
    domain = domain_of("age", {"20-24": 3, "30-39": 1, "33": 1, "22-27": 1, "*": 2}, tree)
    covers = dict(zip(domain.labels, domain.covers.tolist(), strict=True))
    assert (covers["20-24"], covers["30-39"], covers["33"], covers["22-27"], covers["*"]) == (5, 10, 1, 6, 20)
    assert domain.generalized
    depth = dict(zip(domain.labels, domain.depths.tolist(), strict=True))
    assert depth["20-24"] == pytest.approx(1 / 3)
    with pytest.raises(HierarchyError, match=r"lacks 2 values of the data: '50-59', 'old'"):
        domain_of("age", {"20": 1, "old": 1, "50-59": 1}, tree)


def test_missing_joins_as_its_own_branch_or_at_its_leaf() -> None:
    tree = Hierarchy.from_paths("w", [("a", "x", "*"), ("?", "x", "*")])
    placed = domain_of("w", {"a": 1, "": 2}, tree, missing="category", na=["?"])
    assert placed.labels[placed.missing or 0] == "?"
    assert placed.counts.tolist() == [1, 2]
    alone = domain_of("w", {"a": 1, "": 2}, tree, missing="wildcard", na=["?"])
    assert alone.labels == ("a", "?", "")
    assert alone.hierarchy.paths[-1] == ("", "", "*")


@given(st.lists(st.decimals(0, 5000, places=2), min_size=2, max_size=20, unique=True))
def test_fractions_fall_into_the_interval_that_holds_them(values: list[Decimal]) -> None:
    tree = build.equal_width("x", [str(v) for v in values], [0.1, 0.5, 10])
    for path in tree.paths:
        for label in path[1:-1]:
            low, high = (Decimal(end) for end in label.strip("[)").split(","))
            assert low <= Decimal(path[0]) < high


def test_headers_and_separators_are_found(write: Write) -> None:
    assert load(write("a.csv", "age,decade,all\n21,20s,*\n33,30s,*\n")).leaves == ("21", "33")
    assert load(write("b.csv", "21,[20;30[,*\n33,[30;40[,*\n")).levels[1] == ("[20;30[", "[30;40[")
