"""Classes, suppression and the batch kernel against plain numpy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measures.plain_classes import class_sizes, node_figures
from tests.strategies import levels, tables

from sfumato.auditing.audit import contributions
from sfumato.errors import HierarchyError, MeasureError, StudyError
from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.oracle import six_records, six_rows
from sfumato.measures.privacy.risk import expected_risk
from sfumato.measures.registry import measure
from sfumato.measures.suppression import budget, suppress_below, suppress_within
from sfumato.measures.thresholds import suppress_failing
from sfumato.plans.recodings import at_level, at_levels
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import Population, from_codes


def test_six_rows_by_hand() -> None:
    classes = six_rows()
    assert sorted(classes.rows.tolist()) == [1, 2, 3]
    assert classes.covers.tolist() == [[2, 2, 2], [2, 1, 1]]
    values = classes.values("disease")
    assert values.counts.tolist() == [1, 2, 1, 1, 1]  # cancer, flu | flu | cancer, ulcer


@given(data=st.data())
def test_class_sizes_equal_numpy(data: st.DataObject) -> None:
    table = data.draw(tables(most_rows=40))
    recoding = at_levels(table, data.draw(levels(table)))
    assert np.sort(classify(table, recoding).rows).tolist() == class_sizes(table.codes, table.counts, recoding).tolist()


def test_keys_wider_than_one_integer_are_numbered_in_between() -> None:
    rng = np.random.default_rng(1)
    columns = [domain_of(f"c{j}", {str(v): 1 for v in range(1000)}) for j in range(9)]  # 90 bits of key
    records = rng.integers(0, 1000, (9, 300)).astype(np.int32)
    table = from_codes(columns, np.concatenate([records, records[:, :100]], axis=1))
    rows = classify(table).rows
    assert sorted(rows.tolist()) == [1] * 200 + [2] * 100


def test_people_who_differ_in_one_of_many_columns_are_never_one_class() -> None:
    """17 columns of 16 values are 68 bits of key, of which a word of 64 would lose those of one column altogether."""
    columns = [domain_of(f"c{j}", {f"{v:02}": 1 for v in range(16)}) for j in range(17)]
    records = np.zeros((17, 18), dtype=np.int32)
    records[np.arange(17), np.arange(17)] = 1  # each differs from the last in a column of its own
    assert classify(from_codes(columns, records)).rows.tolist() == [1] * 18


def test_dense_and_sparse_value_counts_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = classify(six_records()).values("disease")
    monkeypatch.setattr("sfumato.measures.classes.DENSE_CELLS", 0)
    sparse = classify(six_records()).values("disease")
    for name in ("start", "values", "counts"):
        assert getattr(dense, name).tolist() == getattr(sparse, name).tolist()


@given(data=st.data())
def test_classes_and_suppression_are_those_of_plain_numpy(data: st.DataObject) -> None:
    table = data.draw(tables(most_rows=40))
    most = data.draw(st.integers(0, table.rows - 1))
    recoding = at_levels(table, data.draw(levels(table)))
    leaves = [max(domain.leaves - 1, 1) for domain in table.domains]
    losses = [(part.covers[part.groups] - 1) / leaf for part, leaf in zip(recoding, leaves, strict=True)]
    least, gone, loss = node_figures(table.codes, table.counts, recoding, losses, most, float(len(leaves)))
    classes = suppress_within(classify(table, recoding), most)
    assert measure("k").value(classes) == least
    assert classes.suppressed_rows == gone
    assert measure("general_loss").value(classes) == pytest.approx(loss)


def test_budget_reads_the_share_as_a_decimal() -> None:
    assert budget(0.29, 100) == 29
    assert budget(0.01, 30162) == 301
    with pytest.raises(StudyError, match="suppression limit"):
        budget(1.0, 10)


@given(data=st.data())
def test_suppression_takes_whole_sizes_within_the_budget(data: st.DataObject) -> None:
    table = data.draw(tables())
    most = data.draw(st.integers(0, table.rows - 1))
    classes = suppress_within(classify(table), most)
    assert classes.suppressed_rows <= most
    assert classes.kept.any()
    gone, left = set(classes.size[classes.suppressed].tolist()), set(classes.size[classes.kept].tolist())
    assert not gone & left
    smallest = min(left)
    if len(left) > 1:  # the next size would not have fitted
        assert classes.suppressed_rows + classes.rows[classes.size == smallest].sum() > most


def wild() -> ClassTable:
    """Three records: (a, x), (a, ?), (b, x), where ? matches anything."""
    first = domain_of("p", {"a": 2, "b": 1})
    second = domain_of("q", {"x": 2, "": 1}, missing="wildcard")
    secret = domain_of("s", {"flu": 2, "ulcer": 1})
    records = np.array([[0, 0, 1], [0, 1, 0]], dtype=np.int32)
    return classify(from_codes([first, second], records, {"s": (secret, np.array([0, 1, 0], dtype=np.int32))}))


def test_missing_that_matches_anything_by_hand() -> None:
    classes = wild()
    assert classes.size.tolist() == [2, 2, 1]  # (a, x) and (a, ?) hide each other
    assert classes.rows.tolist() == [1, 1, 1]
    assert measure("distinct_l").property(classes).records().tolist() == [2.0, 2.0, 1.0]
    assert measure("sum_l").property(classes).records().tolist() == [1.0, 1.0, 1.0]


def test_removed_records_count_as_suppressed() -> None:
    classes = classify(replace(six_records(), removed=4))
    assert classes.records == 10
    assert classes.suppressed_rows == 4
    assert measure("general_loss").value(classes) == 8.0  # two cells each
    assert measure("prosecutor_risk").property(classes).mean() == pytest.approx(0.6)
    assert measure("non_uniform_entropy").available(classes)


def test_a_population_that_lacks_people_is_no_population() -> None:
    table = six_records()
    classes = classify(replace(table, population=Population(table.codes[:, :2], table.counts[:2])))
    assert classes.population is None
    assert (
        measure("journalist_risk").available(classes)
        == "cannot be computed: the population table lacks people of 4 classes"
    )
    assert measure("k").value(classes) == 1


def test_population_of_a_generalized_file() -> None:
    """Released labels are looked up by the leaves they stand for; starred rows are nobody's class."""
    raw = six_records()
    age = domain_of("age", {"20-39": 4, "40-59": 2, "*": 1}, raw.domains[0].hierarchy)
    zip_code = domain_of("zip", {"476**": 3, "479**": 3, "*": 1}, raw.domains[1].hierarchy)
    code = {label: number for number, label in enumerate(age.labels)} | {
        f"z{label}": n for n, label in enumerate(zip_code.labels)
    }
    rows = [("20-39", "476**")] * 3 + [("20-39", "479**")] + [("40-59", "479**")] * 2 + [("*", "*")]
    records = np.array([[code[a] for a, _ in rows], [code["z" + z] for _, z in rows]], dtype=np.int32)
    people = Population(raw.codes, raw.counts * 10)
    classes = classify(replace(from_codes([age, zip_code], records), population=people))
    assert measure("journalist_risk").value(classes) == pytest.approx(1 / 10)
    assert sorted(classes.population[classes.kept].tolist()) == [10, 20, 30]


def test_people_that_two_released_labels_could_stand_for_are_not_counted() -> None:
    """Whoever is 1 may be released as 1 or as low, so nobody knows how many people look like either."""
    tree = Hierarchy.from_paths("age", [("1", "low", "*"), ("2", "low", "*"), ("3", "high", "*")])
    people = Population(np.array([[0, 1, 2]], dtype=np.int32), np.array([5, 5, 5]))

    def found(first: str, second: str) -> ClassTable:
        age = domain_of("age", {first: 1, second: 1}, tree)
        records = np.array([[age.labels.index(first), age.labels.index(second)]], dtype=np.int32)
        return classify(replace(from_codes([age], records), population=people))

    for leaf in ("1", "2"):
        assert found(leaf, "low").population is None
        assert found(leaf, "low").population_reason == "cannot be computed: the labels of age overlap"
    assert sorted((found("3", "low").population).tolist()) == [5, 10]


def test_stars_hide_even_a_single_value() -> None:
    one = domain_of("sex", {"M": 10, "*": 2})
    two = domain_of("city", {"x": 5, "y": 5, "*": 2})
    records = np.array([[0] * 10 + [1] * 2, [0] * 5 + [1] * 5 + [2] * 2], dtype=np.int32)
    classes = classify(from_codes([one, two], records))
    assert (measure("k").value(classes), classes.suppressed_rows) == (5, 2)
    only = classify(from_codes([domain_of("sex", {"*": 3})], np.full((1, 3), 1, dtype=np.int32)))
    assert measure("general_loss").value(only) == 3.0


def test_ordered_distance_goes_by_number_however_the_leaves_stand() -> None:
    tree = Hierarchy.from_paths("s", [("30", "*"), ("10", "*"), ("20", "*")])
    values = []
    for hierarchy in (tree, None):
        secret = domain_of("s", {"10": 2, "20": 1, "30": 1}, hierarchy)
        code = {label: number for number, label in enumerate(secret.labels)}
        column = np.array([code[v] for v in ("10", "10", "20", "30")], dtype=np.int32)
        table = from_codes(
            [domain_of("q", {"a": 2, "b": 2})], np.array([[0, 0, 1, 1]], dtype=np.int32), {"s": (secret, column)}
        )
        values.append(measure("t_closeness").value(classify(table)))
    assert values[0] == values[1]


def test_distances_of_generalized_values_are_refused() -> None:
    tree = Hierarchy.from_paths("s", [("1", "low", "*"), ("2", "low", "*"), ("3", "high", "*")])
    secret = domain_of("s", {"low": 1, "3": 1}, tree, distance="hierarchical")
    table = from_codes(
        [domain_of("q", {"a": 2})], np.zeros((1, 2), dtype=np.int32), {"s": (secret, np.array([3, 2], dtype=np.int32))}
    )
    assert "generalized" in (measure("t_closeness").available(classify(table)) or "")
    assert measure("distinct_l").value(classify(table)) == 2


def test_expected_risk_is_the_mean_of_one_over_f() -> None:
    """Against the definition: Σ over h ≥ f of 1/h · C(h − 1, f − 1) p^f (1 − p)^(h − f)."""
    for f, p in ((1, 0.1), (1, 0.7), (2, 0.2), (3, 0.3), (3, 0.05)):
        total = sum(math.comb(h - 1, f - 1) * p**f * (1 - p) ** (h - f) / h for h in range(f, 900))
        assert expected_risk(np.array([float(f)]), np.array([p]))[0] == pytest.approx(total, rel=1e-6)


def test_contributions_leave_suppressed_records_out() -> None:
    a, b = domain_of("a", {"x": 2, "*": 2}), domain_of("b", {"1": 2, "2": 1, "*": 1})
    records = np.array([[0, 0, 1, 1], [0, 1, 0, 2]], dtype=np.int32)
    found = {c.column: c for c in contributions(classify(from_codes([a, b], records)))}
    assert found["b"].k_without == 1


def test_parameters_are_checked() -> None:
    for name, wrong in (
        ("delta_disclosure", {"absent": "ignore"}),
        ("recursive_c", {"l": 0}),
        ("recursive_c", {"l": 2.5}),
        ("recursive_l", {"c": "x"}),
        ("recursive_l", {"c": -1}),
    ):
        with pytest.raises(MeasureError, match=name):
            measure(name).with_parameters(wrong)


def test_suppression_with_wildcards_leaves_crowds_among_what_is_left() -> None:
    assert suppress_below(wild(), 2).suppressed.tolist() == [False, False, True]  # (b, x) hides among nobody
    assert suppress_below(wild(), 3).suppressed.all()
    alone = wild().with_suppressed(np.array([False, True, False]))
    assert alone.size.tolist() == [1, 1, 1]  # nobody hides among a record that is not released
    with pytest.raises(StudyError, match="match anything"):
        suppress_within(wild(), 1)


def test_planned_suppression_with_wildcards_goes_on_until_all_that_is_left_meets_both() -> None:
    """Crowds of 3 with 2 values, by hand: each class looks like the one before it and the one after it.

    (a, y) hides among itself and (a, ?), who all have the flu, and goes. That leaves (a, ?) and (?, x), a crowd of 2,
    around (a, ?), which goes too. Around what is left there are 3 people with both illnesses.
    """
    first = domain_of("p", {"a": 3, "b": 2, "": 1}, missing="wildcard")
    second = domain_of("q", {"x": 3, "y": 2, "": 1}, missing="wildcard")
    secret = domain_of("s", {"flu": 4, "ulcer": 2})
    assert (first.missing, second.missing) == (2, 2)
    records = np.array([[0, 0, 0, 2, 1, 1], [1, 1, 2, 0, 0, 0]], dtype=np.int32)
    table = from_codes([first, second], records, {"s": (secret, np.array([0, 0, 0, 1, 1, 0], dtype=np.int32))})
    classes = classify(table)
    places = [list(zip(*classes.groups.tolist(), strict=True)).index(each) for each in [(0, 1), (0, 2), (2, 0), (1, 0)]]
    assert classes.rows[places].tolist() == [2, 1, 1, 2]
    assert classes.size[places].tolist() == [3, 4, 4, 3]
    left = suppress_below(classes, 3, 2)
    assert left.suppressed[places].tolist() == [True, True, False, False]
    assert left.size[places].tolist()[2:] == [3, 3]


@pytest.mark.parametrize(
    ("name", "limit", "stays"),
    [
        ("k", 2, [3, 2]),
        ("prosecutor_risk", 1 / 2, [3, 2]),
        ("prosecutor_risk", 1 / 3, [3]),
        ("distinct_l", 2, [3, 2]),
        ("alpha_k", 2 / 3, [3, 2]),
        ("alpha_k", 1 / 2, [2]),
        ("entropy_l", 2, [2]),
        ("t_closeness", 1 / 6, [3]),
        ("t_closeness", 1 / 2, [3, 1, 2]),
    ],
)
def test_a_class_that_has_just_what_is_demanded_stays(name: str, limit: float, stays: list[int]) -> None:
    """Classes of 3, 1 and 2 records, with cancer, flu, flu; flu; cancer, ulcer."""
    left = suppress_failing(six_rows(), {name: limit}, {name: measure(name)})
    assert left.rows[left.kept].tolist() == stays


def test_levels_out_of_range_are_refused() -> None:
    table = six_records()
    with pytest.raises(StudyError, match="level 3 of age"):
        at_levels(table, (3, 0))
    with pytest.raises(StudyError, match="1 levels for 2"):
        at_levels(table, (0,))
    starred = domain_of("age", {"24": 1, "*": 1}, table.domains[0].hierarchy)
    with pytest.raises(HierarchyError, match="already generalized"):
        at_level(starred, 0)


def test_suppress_below_takes_every_small_class() -> None:
    classes = suppress_below(six_rows(), 3)
    assert classes.suppressed_rows == 3
    assert measure("k").value(classes) == 3


@given(data=st.data())
def test_spread_orders_tables_as_their_sums_do(data: st.DataObject) -> None:
    """docs/readings.md, 1.9: Σ max(p − q, 0) against Σ max(q − p, 0) decides exactly as Σ p against Σ q."""
    table = data.draw(tables())
    one, two = (
        measure("k").property(classify(table, at_levels(table, data.draw(levels(table))))).records() for _ in "ab"
    )
    spread, other = np.maximum(one - two, 0).sum(), np.maximum(two - one, 0).sum()
    assert np.sign(spread - other) == np.sign(one.sum() - two.sum())
