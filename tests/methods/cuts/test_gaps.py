"""The space of cuts: every way to make or vary a candidate keeps it valid, and a plan says the same as its bits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.cuts.spaces import bits_of, valid

from sfumato.errors import HierarchyError, StudyError
from sfumato.hierarchies.hierarchy import Hierarchy, flat
from sfumato.methods.cuts.space import CutSpace, Layout, jolted, offspring
from sfumato.plans.recodings import labels_of
from sfumato.plans.segments import segment_of
from sfumato.tables.domain import Domain, domain_of
from sfumato.tables.frequency import from_codes

TREE = Hierarchy.from_paths(
    "marital",
    [
        ("never", "never", "unmarried", "*"),
        ("divorced", "once", "unmarried", "*"),
        ("widowed", "once", "unmarried", "*"),
        ("civil", "present", "married", "*"),
        ("forces", "present", "married", "*"),
    ],
)


def counted(name: str, labels: list[str], tree: Hierarchy | None = None, **given: object) -> Domain:
    return domain_of(name, dict.fromkeys(labels, 1), tree, **given)  # type: ignore[arg-type]


def space(missing: bool = False) -> CutSpace:
    """An ordered column of numbers, a free one of words, and one constrained by its tree."""
    ages = ["17", "20", "31", "40"] + ([""] if missing else [])
    age = counted("age", ages, missing="category" if missing else "drop")
    colour = counted("colour", ["blue", "green", "red"])
    marital = counted("marital", list(TREE.leaves) + ([""] if missing else []), TREE, missing="category")
    codes = np.zeros((3, 2), dtype=np.int32)
    return CutSpace.of(from_codes([age, colour, marital], codes))


@pytest.mark.parametrize("missing", [False, True])
def test_every_partition_is_counted(missing: bool) -> None:
    """Small enough to list: the size of a segment is the number of its valid bit strings."""
    for segment in space(missing).segments:
        strings = itertools.product((0, 1), repeat=segment.gaps)
        assert segment.size == sum(segment.valid(np.array(bits, dtype=np.uint8)) for bits in strings)


def test_cuts_of_a_tree_by_hand() -> None:
    """once: 2 ways; unmarried: 1 + 1·2 = 3; present: 2; married has present as its only child, so 2; root: 1 + 3·2."""
    segment = space().segments[2]
    assert segment.constrained
    assert segment.size == 7


@given(seed=st.integers(0, 2**32 - 1), missing=st.booleans())
def test_everything_that_varies_stays_valid(seed: int, missing: bool) -> None:
    found, rng = space(missing), np.random.default_rng(seed)
    layout = Layout.of(found)
    parents = found.sampled(rng, 8)
    children = offspring(layout, parents, rng)
    jolts = jolted(layout, parents, rng)
    for bits in (*parents, *children, *jolts, *found.ends()):
        assert valid(found, bits)
    for bits in parents:
        moves = layout.moves(bits)
        made = moves.made(np.arange(len(moves)))
        assert all(valid(found, row) for row in made)
        assert layout.hashes(made).tolist() == moves.hashes.tolist()
        assert not any(np.array_equal(row, bits) for row in made)


@given(seed=st.integers(0, 2**32 - 1))
def test_a_constrained_segment_is_crossed_only_where_both_part(seed: int) -> None:
    """Without a common boundary the children keep their parents' segments; mutation never touches it."""
    found, rng = space(), np.random.default_rng(seed)
    parents = np.vstack([found.ends(), found.ends()])
    children = offspring(Layout.of(found), parents, rng)
    own = slice(int(found.first[2]), int(found.first[3]))
    assert {tuple(row[own]) for row in children.tolist()} <= {tuple(row[own]) for row in parents.tolist()}


@given(seed=st.integers(0, 2**32 - 1), missing=st.booleans())
def test_a_plan_says_what_its_bits_say(seed: int, missing: bool) -> None:
    found = space(missing)
    table = from_codes([s.domain for s in found.segments], np.zeros((3, 2), dtype=np.int32))
    bits = found.sampled(np.random.default_rng(seed), 1)[0]
    plan = found.plan(bits)
    assert np.array_equal(bits_of(found, plan), bits)
    for told, direct in zip(plan.recoding(table), found.recoding(bits), strict=True):
        pairs = set(zip(told.groups.tolist(), direct.groups.tolist(), strict=True))
        assert len(pairs) == len(told.covers) == len(direct.covers)
        assert all(told.covers[a] == direct.covers[b] for a, b in pairs)
        assert told.depths.tolist() == pytest.approx(direct.depths.tolist())


def test_levels_are_cuts_and_torn_groups_are_parted() -> None:
    """College is not a run in the order of schooling: as a cut it becomes its runs."""
    tree = Hierarchy.from_paths(
        "education",
        [("some", "college", "*"), ("vocational", "other", "*"), ("bachelor", "college", "*")],
    )
    domain = counted("education", list(tree.leaves), tree, along_tree=False)
    found = CutSpace((segment_of(domain),))
    assert found.at_levels([1]).tolist() == [1, 1]
    assert found.at_levels([2]).tolist() == [0, 0]
    with pytest.raises(HierarchyError, match="'college'"):
        segment_of(domain, True)
    along = counted("education", list(tree.leaves), tree)
    assert CutSpace((segment_of(along),)).at_levels([1]).tolist() == [0, 1]


def test_a_given_order() -> None:
    domain = counted("size", ["large", "medium", "small"], order=["small", "medium", "large"])
    found = CutSpace((segment_of(domain),))
    plan = found.plan(np.array([0, 1], dtype=np.uint8))
    assert plan.cuts == {"size": ("small", "large")}
    table = from_codes([domain], np.array([[0, 1, 2]], dtype=np.int32))
    groups = plan.recoding(table)[0].groups.tolist()
    assert groups[1] == groups[2] != groups[0]
    with pytest.raises(HierarchyError, match="does not name each"):
        counted("size", ["large", "small"], order=["small"])


def test_breaks_say_where_numbers_may_be_parted() -> None:
    domain = counted("income", ["10", "15", "22", "30", "48"])
    found = segment_of(domain, None, [20, 40])
    assert found.leaves.tolist() == [2, 2, 1]
    assert found.starts == ("10", "22", "48")
    with pytest.raises(StudyError, match="are not ascending"):
        segment_of(domain, None, [40, 20])
    with pytest.raises(StudyError, match="breaks for"):
        segment_of(counted("colour", ["red", "blue"]), None, [1])


def test_labels_are_readable() -> None:
    age = counted("age", ["-1", "0", "1", "2"])
    assert labels_of(age, [[0, 1], [2, 3]]) == ["[-1 .. 0]", "[1 .. 2]"]
    marital = counted("marital", list(TREE.leaves), TREE)
    assert labels_of(marital, [[0, 1, 2], [3, 4]]) == ["unmarried", "married"]
    assert labels_of(marital, [[0], [1, 2, 3], [4]]) == ["never", "{once | civil}", "forces"]
    assert labels_of(marital, [[0, 1, 2, 3, 4]]) == ["*"]


def test_wildcards_and_generalized_labels_are_refused() -> None:
    wild = domain_of("age", {"1": 1, "2": 1, "": 1}, flat("age", ["1", "2"]), missing="wildcard")
    with pytest.raises(StudyError, match="match anything"):
        segment_of(wild)
    with pytest.raises(HierarchyError, match="already generalized"):
        segment_of(domain_of("sex", {"M": 1, "F": 1, "*": 1}))
