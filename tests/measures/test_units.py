"""Classes in units: the smallest examples by hand, and every measure against its oracle on random units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import domains, levels, recount

from sfumato.measures.classes import classify
from sfumato.measures.measure import Measure
from sfumato.measures.oracle import Records
from sfumato.measures.registry import known_measures, measure
from sfumato.measures.suppression import suppress_within
from sfumato.measures.units import texts_of
from sfumato.plans.recodings import at_levels
from sfumato.tables.domain import Domain, domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes
from sfumato.tables.units import Kind, Units, units_from

PRIVACY = [result for result in known_measures().values() if result.kind == "privacy"]


def in_units(
    domains: Sequence[Domain],
    records: np.ndarray,
    sensitive: dict[str, tuple[Domain, np.ndarray]],
    units: np.ndarray,
    households: np.ndarray | None = None,
) -> FrequencyTable:
    """A table whose records belong to units, and perhaps units to households, numbered from 0."""
    table = from_codes(domains, records, sensitive)
    order = np.lexsort(records[::-1])
    tuple_of = np.repeat(np.arange(table.tuples), table.counts)
    secrets = {name: codes[order] for name, (_, codes) in sensitive.items()}

    def grouped(kind: Kind, numbers: np.ndarray) -> Units:
        return units_from(kind, table.tuples, tuple_of, numbers[order].astype(np.int32), np.ones_like(order), secrets)

    table = replace(table, units=grouped("unit", units))
    if households is None:
        return table
    household_of = np.zeros(int(units.max()) + 1, dtype=np.int32)
    household_of[units] = households
    return replace(table, households=grouped("household", households), household_of=household_of)


def small(
    tuples: list[int], units: list[int], values: list[int], households: list[int] | None = None
) -> FrequencyTable:
    """A table of one key with two values below a root, and one sensitive column."""
    key = domain_of("q", {"x": 1, "y": 1})
    secret = domain_of("s", {"a": 1, "b": 1, "c": 1})
    return in_units(
        [recount(key, np.array(tuples))],
        np.array([tuples], dtype=np.int32),
        {"s": (secret, np.array(values, dtype=np.int32))},
        units=np.array(units, dtype=np.int32),
        households=None if households is None else np.array(households, dtype=np.int32),
    )


def joined(table: FrequencyTable) -> FrequencyTable:
    """The same records, all in one class."""
    return replace(table, codes=np.zeros_like(table.codes))


def test_the_union_of_two_diverse_classes_may_hold_one_value_of_everybody() -> None:
    """SPEC 8: {u1: a, u2: b} and {u1: b, u2: a} have ℓ 2; their union has ℓ 1."""
    apart = small([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0])
    assert measure("distinct_l").value(classify(apart)) == 2
    assert measure("frequency_l").value(classify(apart)) == 2
    union = small([0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 1, 0])
    assert measure("distinct_l").value(classify(union)) == 1
    assert measure("frequency_l").value(classify(union)) == 1
    assert measure("k").value(classify(apart)) == measure("k").value(classify(union)) == 2
    assert measure("distinct_l").for_table(apart).bound is None
    assert measure("k").for_table(apart).bound == "own_budget"


def test_a_patient_with_five_visits_is_one_person() -> None:
    table = small([0] * 5 + [1] * 4, [0] * 5 + [1, 2, 1, 2], [0, 1, 2, 0, 1, 0, 1, 1, 1])
    classes = classify(table)
    assert sorted(classes.rows.tolist()) == [4, 5]
    assert sorted(classes.size.tolist()) == [1, 2]
    assert measure("k").value(classes) == 1
    assert measure("uniques").value(classes) == pytest.approx(1 / 3)  # of three persons
    assert measure("distinct_l").value(classes) == 1  # one person: all three diagnoses are that person's
    assert measure("prosecutor_risk").value(classes) == 1.0


def test_t_compares_the_mean_shares_of_units() -> None:
    """Unit 0 has a, a, b; unit 1 has b: w(a) = 2/3, w(b) = 1/3 + 1, n = 2. The reference is over all three units."""
    table = small([0, 0, 0, 0, 1], [0, 0, 0, 1, 2], [0, 0, 1, 1, 2])
    classes = classify(table)
    whole = np.array([2 / 3, 4 / 3, 1.0]) / 3
    expected = 0.5 * abs(np.array([1 / 3, 2 / 3, 0.0]) - whole).sum()
    found = measure("t_closeness").property(classes, "s").values
    assert found[0] == pytest.approx(expected)
    assert measure("alpha_k").value(classes) == 1.0  # unit 2 alone
    assert measure("entropy_l").property(classes).values.max() == pytest.approx(
        np.exp(-(1 / 3 * np.log(1 / 3) + 2 / 3 * np.log(2 / 3)))
    )


def test_a_unit_counts_as_suppressed_if_any_of_its_records_is() -> None:
    table = small([0, 0, 1, 1, 1], [0, 0, 0, 1, 2], [0, 1, 0, 1, 2])
    classes = classify(table)
    gone = classes.with_suppressed(classes.size == 1)
    assert gone.suppressed_rows == 2
    assert gone.suppressed_units == 1
    assert measure("k").value(gone) == 3
    assert measure("weighted_k").value(gone) == pytest.approx((0 + 3 + 3) / 3)
    assert suppress_within(classes, 0).kept.all()
    assert suppress_within(classes, 1).suppressed_rows == 2


def test_a_class_of_one_family_is_one_household() -> None:
    table = small([0, 0, 0, 1, 1], [0, 1, 2, 3, 4], [0, 0, 0, 1, 2], households=[0, 0, 0, 1, 2])
    table = replace(table, units=None, household_of=None)
    classes = classify(table)
    assert measure("k").value(classes) == 2
    assert measure("households").value(classes) == 1
    assert measure("household_uniques").value(classes) == pytest.approx(1 / 3)
    risk = [1 - (1 - 1 / 3) ** 3, 1 / 2, 1 / 2]
    assert measure("household_risk").value(classes) == pytest.approx(np.mean(risk))


def test_a_value_constant_within_households_is_counted_in_households() -> None:
    """The family's income: three persons, one household, so frequency ℓ is that of one holder."""
    table = small([0, 0, 0, 0], [0, 1, 2, 3], [0, 0, 0, 1], households=[0, 0, 0, 1])
    table = replace(table, units=None, household_of=None)
    assert measure("frequency_l").value(classify(table)) == 2  # one of two households, not three of four records
    other = replace(small([0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 0, 1], households=[0, 0, 0, 1]), units=None)
    assert measure("frequency_l").value(classify(other)) == 2  # not constant: two of four persons


@st.composite
def unit_tables(draw: st.DrawFn, wildcards: bool = False) -> FrequencyTable:
    """A random table whose records belong to units, and perhaps units to households."""
    columns = [draw(domains(f"q{j}", wildcards and draw(st.booleans()))) for j in range(draw(st.integers(1, 2)))]
    rows = draw(st.integers(2, 16))

    def numbers(most: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(0, most), min_size=rows, max_size=rows)), dtype=np.int32)

    secret = domain_of("s", {str(v): 1 for v in range(4)}, distance=draw(st.sampled_from(["equal", "ordered"])))
    records = np.stack([numbers(len(domain.labels) - 1) for domain in columns])
    counted = [recount(domain, column) for domain, column in zip(columns, records, strict=True)]
    units = np.unique(numbers(draw(st.integers(0, 8))), return_inverse=True)[1].astype(np.int32)
    if draw(st.booleans()):  # quasi-identifiers that are constant within units
        first = np.array([np.flatnonzero(units == unit)[0] for unit in units])
        records = np.ascontiguousarray(records[:, first])
    of_unit = np.array(draw(st.lists(st.integers(0, 3), min_size=len(set(units)), max_size=len(set(units)))))
    households = np.unique(of_unit[units], return_inverse=True)[1].astype(np.int32) if draw(st.booleans()) else None
    table = in_units(counted, records, {"s": (secret, numbers(3))}, units=units, households=households)
    return replace(table, weights=table.counts * 3.0)


@pytest.mark.parametrize("measured", PRIVACY, ids=lambda result: result.name)
@given(data=st.data())
def test_every_measure_in_units_equals_its_oracle(measured: Measure, data: st.DataObject) -> None:
    table = data.draw(unit_tables(wildcards=data.draw(st.booleans())))
    classes = classify(table, at_levels(table, data.draw(levels(table))))
    if data.draw(st.booleans()) and classes.pairs is None:
        classes = suppress_within(classes, data.draw(st.integers(0, table.persons)))
    reason = measured.available(classes)
    if reason is not None:
        assert reason in ("needs a household column", "needs a population table"), reason
        return
    kept = np.repeat(classes.kept[classes.index], table.counts)
    records = Records(table, classes.recoding, kept)
    column = measured.columns(classes)[0]
    found = measured.property(classes, column)
    expected = records.each(measured, column)
    np.testing.assert_allclose(found.records()[kept], expected[kept], rtol=1e-9, atol=1e-12)
    if measured.reads == "household":
        return
    # Means are over units, each with the worst of its records; a suppressed record has 0.
    owners = records.units
    if column is not None:
        entries = table.units.values[column]
        order = np.lexsort((entries.unit, entries.values, entries.tuple_of))
        owners = np.repeat(entries.unit[order], entries.rows[order])
    each = np.where(kept, expected, 0.0)
    fold = min if measured.direction == "max" else max
    per_unit = [fold(each[owners == unit]) for unit in sorted(set(owners.tolist()))]
    assert found.mean() == pytest.approx(np.mean(per_unit), rel=1e-9, abs=1e-12)


@given(data=st.data())
def test_one_record_per_unit_is_the_usual_measure(data: st.DataObject) -> None:
    table = data.draw(unit_tables())
    rows = np.arange(table.rows, dtype=np.int32)
    plain = replace(table, units=None, households=None, household_of=None)
    tuple_of = np.repeat(np.arange(table.tuples), table.counts)
    secret = plain.sensitive["s"]
    alone = in_units(
        table.domains,
        np.ascontiguousarray(table.codes[:, tuple_of]),
        {"s": (secret.domain, np.repeat(secret.values, secret.counts))},
        units=rows,
    )
    alone = replace(alone, weights=plain.weights)
    node = at_levels(table, data.draw(levels(table)))
    one, two = classify(plain, node), classify(alone, node)
    for measured in PRIVACY:
        if measured.available(one) is None:
            assert measured.value(one) == pytest.approx(measured.value(two), rel=1e-9, abs=1e-12), measured.name


@pytest.mark.parametrize("name", [result.name for result in PRIVACY if result.monotone])
@given(data=st.data())
def test_bounds_that_are_kept_hold_in_units(name: str, data: st.DataObject) -> None:
    table = data.draw(unit_tables())
    measured = measure(name).for_table(table)
    fine = data.draw(levels(table))
    coarse = tuple(data.draw(st.integers(a, d.hierarchy.height)) for a, d in zip(fine, table.domains, strict=True))
    low, high = (classify(table, at_levels(table, node)) for node in (fine, coarse))
    if measured.monotone is None or measured.available(low):
        return
    before, after = measured.value(low), measured.value(high)
    slack = 1e-9 * max(1.0, abs(before)) if np.isfinite(before) else 0.0
    assert after >= before - slack if measured.monotone == "rises" else after <= before + slack


@pytest.mark.parametrize(
    "name", ["general_loss", "table_error", "average_class_size", "individual_risk", "journalist_risk"]
)
def test_figures_that_count_records_are_not_stated_in_persons(name: str) -> None:
    assert texts_of(measure(name), persons=True).sentence == measure(name).about.sentence
    assert texts_of(measure("k"), persons=True).sentence != measure("k").about.sentence
