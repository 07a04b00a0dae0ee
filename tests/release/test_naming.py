"""Names of groups: true of every released value, different from each other, and the same whoever is suppressed."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.hierarchies import Hierarchy
from sfumato.hierarchies.build import frequency, quantile
from sfumato.hierarchies.labels import interval, number
from sfumato.plans.recodings import CutPlan
from sfumato.release.columns import Naming, naming_from
from sfumato.study import ColumnSettings
from sfumato.tables.domain import domain_of

PLAIN = ColumnSettings(role="quasi_identifier")
WHOLE = st.integers(-30, 300).map(str)
CODES = st.integers(0, 999).map("{:04}".format)
FRACTIONS = st.decimals(-40, 40, places=2).map(str)
COMMAS = FRACTIONS.map(lambda text: text.replace(".", ","))
WORDS = st.text(string.ascii_lowercase[:4], min_size=1, max_size=3)


def cut_of(values: list[str], starts: set[str], decimal: str = ".", tree: Hierarchy | None = None) -> Naming:
    """The naming of a cut when all its values are released."""
    domain = domain_of("x", dict.fromkeys(values, 1), tree, decimal=decimal)
    order = [domain.hierarchy.leaves[leaf] for leaf in domain.order]
    plan = CutPlan({"x": tuple(value for value in order if value in starts or value == order[0])})
    found, _ = plan.tree(domain)
    return Naming(found, 1, domain.hierarchy, frozenset(values), PLAIN, decimal, cut=True)


def released(naming: Naming, values: set[str]) -> Naming:
    return Naming(naming.tree, 1, naming.nodes, frozenset(values), PLAIN, naming.decimal, cut=naming.cut)


def names(naming: Naming) -> dict[str, str]:
    """The label of each released value."""
    groups = naming.tree.maps[1].tolist()
    return {
        leaf: naming.labels[group]
        for leaf, group in zip(naming.tree.leaves, groups, strict=True)
        if leaf in naming.values
    }


@pytest.mark.parametrize(
    "kind", [WHOLE, CODES, FRACTIONS, COMMAS, WORDS], ids=["whole", "codes", "fractions", ",", "words"]
)
@given(data=st.data())
def test_cuts(kind: st.SearchStrategy[str], data: st.DataObject) -> None:
    values = data.draw(st.lists(kind, min_size=2, max_size=14, unique=True))
    kept = set(data.draw(st.lists(st.sampled_from(values), min_size=1, unique=True)))
    starts = set(data.draw(st.lists(st.sampled_from(sorted(kept)), unique=True)))
    decimal = "," if kind is COMMAS else "."
    naming = released(cut_of(values, starts, decimal), kept)
    assert len(set(naming.labels)) == len(naming.labels)
    found = names(naming)
    ends = {label: interval(label, decimal) for label in found.values()}
    for value, label in found.items():
        if kind is WORDS:
            assert value in label.strip("{}").split(" | ")
        elif (span := ends[label]) is not None:
            assert span.holds(number(value, decimal) or 0.0), (value, label)
        else:
            assert label in (value, "any value")
    # As if nobody else had ever been in the table.
    assert found == names(cut_of(sorted(kept), starts, decimal)) if len(kept) > 1 else set(found.values()) == kept


@given(
    values=st.dictionaries(WHOLE, st.integers(1, 9), min_size=3, max_size=20), bins=st.integers(2, 6), data=st.data()
)
def test_quantiles(values: dict[str, int], bins: int, data: st.DataObject) -> None:
    tree = quantile("x", list(values), list(values.values()), bins)
    if tree.height < 2:
        return
    kept = set(data.draw(st.lists(st.sampled_from(sorted(values)), min_size=1, unique=True)))
    naming = Naming(tree, 1, tree, frozenset(kept), PLAIN)
    assert len(set(naming.labels)) == len(naming.labels)
    for value, label in names(naming).items():
        span = interval(label)
        assert span.holds(float(value)) if span is not None else label in (value, "any value")
    gone = [value for value in values if value not in kept]
    smaller = Hierarchy.from_paths("x", [path for path in tree.paths if path[0] not in gone])
    assert names(naming) == names(Naming(smaller, 1, smaller, frozenset(kept), PLAIN))


@given(groups=st.dictionaries(WORDS, st.sampled_from("PQR"), min_size=3, max_size=12), data=st.data())
@example(groups={"a": "P", "b": "P", "c": "Q", "d": "Q"}, data=None)
def test_cuts_along_a_tree(groups: dict[str, str], data: st.DataObject | None) -> None:
    """A node is a name where all of it that is released is in the group."""
    values = sorted(groups)
    tree = Hierarchy.from_paths("x", [(value, groups[value], "*") for value in values])
    kept = (
        {"a", "b", "c"} if data is None else set(data.draw(st.lists(st.sampled_from(values), min_size=1, unique=True)))
    )
    starts = {"c"} if data is None else set(data.draw(st.lists(st.sampled_from(sorted(kept)), unique=True)))
    naming = released(cut_of(values, starts, tree=tree), kept)
    assert len(set(naming.labels)) == len(naming.labels)
    found = names(naming)
    for value, label in found.items():
        parts = label.strip("{}").split(" | ")
        assert value in parts or groups[value] in parts
        for node in set("PQR") & set(parts):
            assert all(found[other] == label for other in kept if groups[other] == node)
    if data is None:
        assert found == {"a": "P", "b": "P", "c": "c"}


def test_bounds_are_round_where_a_round_number_parts_the_groups() -> None:
    """Nobody's exact pay is a bound."""
    naming = cut_of(["1203.55", "1998.10", "2011.75", "2999.99", "3000.05", "4123.4"], {"2011.75", "3000.05"})
    assert naming.labels == ("<2000", "[2000 .. 3000)", ">=3000")
    assert cut_of(["-900", "-350", "-212", "0", "7", "8"], {"-212", "7"}).labels == ("<-300", "[-300 .. 4]", ">=5")
    assert cut_of(["0102", "0103", "0215", "0216"], {"0215"}).labels == ("<0200", ">=0200")
    assert cut_of(["1,5", "2,5", "3,25", "4,75", "9"], {"3,25", "9"}, ",").labels == ("<3", "[3 .. 5)", "9")


def test_numbers_that_are_not_neighbours_are_listed() -> None:
    """Two spellings of a number in two groups."""
    assert cut_of(["6", "7", "7.0", "8"], {"7.0"}).labels == ("{6 | 7}", "{7.0 | 8}")


def test_labels_that_a_person_wrote_stay() -> None:
    paths = [("20", "young", "*"), ("30", "young", "*"), ("117", "old", "*"), ("40", "[20, 30)", "*")]
    tree = Hierarchy.from_paths("age", paths)
    assert Naming(tree, 1, tree, frozenset({"20", "30"}), PLAIN).labels == ("young", "old", "[20, 30)")
    assert Naming(tree, 1, tree, frozenset({"20", "40.5"}), PLAIN).labels == ("young", "old", "[20, 30)")


def test_a_label_called_like_a_suppressed_value() -> None:
    paths = [("Astronaut", "Astronaut", "*"), ("Clerk", "Astronaut", "*"), ("Cook", "Cook", "*")]
    tree = Hierarchy.from_paths("job", paths)
    assert Naming(tree, 1, tree, frozenset({"Clerk", "Cook"}), PLAIN).labels == ("Clerk", "Cook")
    assert Naming(tree, 1, tree, frozenset({"Astronaut", "Clerk"}), PLAIN).labels == ("Astronaut", "Cook")


def test_rare_values_keep_their_name() -> None:
    tree = frequency("job", ["clerk", "smith", "diver"], [90, 9, 1], [0.1])
    assert Naming(tree, 1, tree, frozenset({"clerk", "smith"}), PLAIN).labels == ("clerk", "other <10%")


def test_names_survive_a_manifest() -> None:
    """A release is applied with the names it had, and those that are true of what is released now."""
    naming = released(cut_of(["3", "20", "21", "30", "31", "99"], {"30"}), {"20", "21", "30", "31"})
    again = naming_from(naming.as_dict(), naming.named(), 1, PLAIN)
    assert again.labels == naming.labels == ("<30", ">=30")
    assert again.tree.levels == naming.tree.levels
    assert again.with_values({"99"}).labels == ("<30", ">=30")
    tree = Hierarchy.from_paths("x", [(value, "P" if value in "ab" else "Q", "*") for value in "abcde"])
    words = released(cut_of(list("abcde"), {"c"}, tree=tree), {"a", "b", "c", "d"})
    again = naming_from(words.as_dict(), words.named(), 1, PLAIN)
    assert again.labels == words.labels == ("P", "Q")
    assert again.with_values({"a"}).labels == ("P", "Q")
    assert again.with_values({"e"}).labels == ("P", "{c | d | e}")
