"""Laws that every registered measure keeps. A new measure is picked up by itself."""

from __future__ import annotations

import doctest
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import levels, tables

from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.fast_paths import FAST, NodeFigures
from sfumato.measures.measure import Measure, Scale, Unit, catalogue
from sfumato.measures.oracle import Records, six_records
from sfumato.measures.property import Property
from sfumato.measures.registry import known_measures, modules
from sfumato.measures.suppression import suppress_within
from sfumato.plans.recodings import at_levels
from sfumato.tables.frequency import FrequencyTable, Population

LOWEST = {"average_class_size": 1.0}  # all others begin at 0
EVERY = pytest.mark.parametrize("measure", known_measures().values(), ids=known_measures())

# Losses whose definition has no weights of columns, and why. A loss that reads no single cell needs no entry.
WITHOUT_COLUMN_WEIGHTS = {
    "arx_loss": "it is compared with a project of ARX in which all columns have the same weight",
    "table_error": "it is a mean over pairs of columns, and its source defines no weight of a pair",
}
LOSSES = [measure for measure in known_measures().values() if measure.kind == "loss"]
WEIGHED = pytest.mark.parametrize(
    "measure", [each for each in LOSSES if each.name not in WITHOUT_COLUMN_WEIGHTS], ids=lambda measure: measure.name
)


def with_population(table: FrequencyTable) -> FrequencyTable:
    """The table drawn from a population that holds each of its tuples one to three times more."""
    extra = 1 + np.arange(table.tuples) % 3
    return replace(table, population=Population(table.codes, table.counts + extra))


@st.composite
def class_tables(draw: st.DrawFn, wildcards: bool = False, removed: bool = True) -> ClassTable:
    table = draw(tables(wildcards=wildcards, removed=removed))
    classes = classify(with_population(table), at_levels(table, draw(levels(table))))
    if wildcards:
        return classes
    return suppress_within(classes, draw(st.integers(0, table.rows - 1)) + table.removed)


def answered(measure: Measure, classes: ClassTable) -> bool:
    return measure.available(classes) is None


@EVERY
def test_description_is_complete(measure: Measure) -> None:
    assert measure.about.sentence.endswith(".")
    assert measure.about.citation
    assert measure.about.title
    assert measure.kind in ("privacy", "loss")
    assert measure.direction in ("max", "min")
    assert measure.about.scale in get_args(Scale)
    assert measure.about.unit in get_args(Unit)


def test_catalogue_and_fast_paths_are_of_known_measures() -> None:
    """An entry under another name would be of no use: its measure would have no texts, or be computed slowly."""
    assert set(catalogue()) | set(FAST) <= set(known_measures())


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_docstring_has_the_six_row_example(module: object) -> None:
    assert "six_rows" in (module.__doc__ or "")
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0


@EVERY
@given(data=st.data())
def test_one_entry_per_record(measure: Measure, data: st.DataObject) -> None:
    classes = data.draw(class_tables())
    if answered(measure, classes):
        assert len(measure.property(classes).records()) == classes.records


@EVERY
@given(data=st.data())
def test_value_is_in_its_range(measure: Measure, data: st.DataObject) -> None:
    classes = data.draw(class_tables())
    if answered(measure, classes):
        assert LOWEST.get(measure.name, 0.0) <= measure.value(classes) <= measure.highest(classes) * (1 + 1e-12)


@EVERY
@given(data=st.data())
def test_equals_the_oracle_record_by_record(measure: Measure, data: st.DataObject) -> None:
    classes = data.draw(class_tables(wildcards=data.draw(st.booleans())))
    if not answered(measure, classes):
        return
    kept = np.repeat(classes.kept[classes.index], classes.table.counts)
    records = Records(classes.table, classes.recoding, kept)
    column = measure.columns(classes)[0]
    found = measure.property(classes).records()[: len(kept)]
    expected = records.each(measure, column)
    if measure.ties:  # among equals, which one is taken is open; their sum is not
        assert found.sum() == pytest.approx(np.where(kept, expected, 1.0).sum())
        return
    np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-9, atol=1e-12)


@EVERY
@given(data=st.data())
def test_suppressed_records_stay_and_earn_nothing(measure: Measure, data: st.DataObject) -> None:
    classes = data.draw(class_tables())
    if not answered(measure, classes):
        return
    values = measure.property(classes).records()
    hidden = np.append(
        np.repeat(classes.suppressed[classes.index], classes.table.counts), np.ones(classes.table.removed, bool)
    )
    if measure.kind == "privacy" or measure.direction == "max" or measure.suppressed == "nothing":
        assert np.all(values[hidden] == 0.0)
    elif measure.suppressed == "own":
        assert np.all(values[hidden] >= 0.0)
    else:
        assert np.all(values[hidden] >= np.max(values, initial=0.0) - 1e-9)


@EVERY
@given(data=st.data())
def test_row_order_and_labels_do_not_matter(measure: Measure, data: st.DataObject) -> None:
    """Renumbering the codes of the quasi-identifiers reorders the tuples; no figure may move."""
    table = data.draw(tables())
    classes = classify(with_population(table))
    order = np.array(data.draw(st.permutations(range(table.tuples))), dtype=np.int64)

    def reordered(values: object) -> object:
        counts = [slice(values.start[t], values.start[t + 1]) for t in order]  # type: ignore[attr-defined]
        lengths = np.array([part.stop - part.start for part in counts])
        entries = np.concatenate([np.arange(part.start, part.stop) for part in counts])
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return replace(values, start=start, values=values.values[entries], counts=values.counts[entries])  # type: ignore

    shuffled = replace(
        table,
        codes=np.ascontiguousarray(table.codes[:, order]),
        counts=table.counts[order],
        weights=table.weights[order],
        sensitive={"s": reordered(table.sensitive["s"])},
        label=reordered(table.label),
    )
    if answered(measure, classes):
        other = classify(replace(shuffled, population=classes.table.population))
        assert measure.value(other) == pytest.approx(measure.value(classes), rel=1e-9, abs=1e-12)


@EVERY
@given(data=st.data())
def test_moves_as_declared_when_generalized(measure: Measure, data: st.DataObject) -> None:
    table = with_population(data.draw(tables()))
    fine = data.draw(levels(table))
    coarse = tuple(
        data.draw(st.integers(level, domain.hierarchy.height))
        for level, domain in zip(fine, table.domains, strict=True)
    )
    low, high = (classify(table, at_levels(table, node)) for node in (fine, coarse))
    if measure.monotone is None or not answered(measure, low):
        return
    before, after = measure.value(low), measure.value(high)
    slack = 1e-9 * max(1.0, abs(before)) if np.isfinite(before) else 0.0
    assert after >= before - slack if measure.monotone == "rises" else after <= before + slack


def with_weights(classes: ClassTable, weights: tuple[float, ...]) -> ClassTable:
    return replace(classes, weights=weights)


def without_column(classes: ClassTable, column: int) -> ClassTable:
    """Return the same classes of records, with the cells of one column taken out of the table."""
    rest = [j for j in range(len(classes.recoding)) if j != column]
    table = replace(
        classes.table, domains=tuple(classes.table.domains[j] for j in rest), codes=classes.table.codes[rest]
    )
    weights = classes.attribute_weights[rest]
    return replace(classes, table=table, recoding=tuple(classes.recoding[j] for j in rest), weights=tuple(weights))


def assert_weight_0_is_absence(measure: Measure, classes: ClassTable, column: int) -> None:
    """Compare a weight of 0 for a column with the same classes without the column, for the value and each record."""
    weights = classes.attribute_weights
    weights[column] = 0.0
    ignored, absent = with_weights(classes, tuple(weights)), without_column(classes, column)
    assert measure.value(ignored) == pytest.approx(measure.value(absent), rel=1e-9, abs=1e-12)
    if not measure.ties:
        found, expected = (measure.property(each, measure.columns(each)[0]).records() for each in (ignored, absent))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def drawn_weights(data: st.DataObject, classes: ClassTable) -> tuple[float, ...]:
    each = st.floats(0.125, 8.0, allow_nan=False)
    return tuple(data.draw(st.lists(each, min_size=len(classes.recoding), max_size=len(classes.recoding))))


@WEIGHED
@given(data=st.data())
def test_column_with_weight_0_counts_as_absent(measure: Measure, data: st.DataObject) -> None:
    classes = data.draw(class_tables())
    classes = with_weights(classes, drawn_weights(data, classes))
    if len(classes.recoding) > 1 and answered(measure, classes):
        assert_weight_0_is_absence(measure, classes, data.draw(st.integers(0, len(classes.recoding) - 1)))


@pytest.mark.parametrize("name", [each.name for each in LOSSES if each.reads in ("cells", "originals")])
def test_law_of_weights_finds_a_loss_that_ignores_them(name: str) -> None:
    """Every loss of cells, made wrong by ignoring the weights, breaks the law on six rows; so do the exceptions."""
    measure, classes = known_measures()[name], classify(six_records(), at_levels(six_records(), (2, 1)))

    def unweighted(classes: ClassTable) -> Property:
        return measure.function(with_weights(classes, ()))

    wrong = replace(measure, function=unweighted)
    for column in range(2):
        with pytest.raises(AssertionError):
            assert_weight_0_is_absence(wrong, classes, column)


@pytest.mark.parametrize("name", WITHOUT_COLUMN_WEIGHTS)
@given(data=st.data())
def test_losses_without_column_weights_ignore_them(name: str, data: st.DataObject) -> None:
    """The entry of a loss that has weights after all is refused: it would hide a loss that is wrong."""
    measure, classes = known_measures()[name], data.draw(class_tables())
    if answered(measure, classes):
        assert measure.value(with_weights(classes, drawn_weights(data, classes))) == measure.value(classes)


@pytest.mark.parametrize("measure", [each for each in LOSSES if each.fast.margins], ids=lambda measure: measure.name)
@given(data=st.data())
def test_value_from_margins_has_the_same_weights(measure: Measure, data: st.DataObject) -> None:
    table = data.draw(tables())
    node = data.draw(levels(table))
    classes = classify(table, at_levels(table, node))
    classes = with_weights(classes, drawn_weights(data, classes))
    covered = classes.covers @ classes.rows
    figures = NodeFigures(table, classes.attribute_weights, np.array([node]), np.array([table.rows]), covered[None, :])
    assert measure.fast.walk is not None
    assert float(measure.fast.walk(figures)[0]) == pytest.approx(measure.value(classes), rel=1e-9, abs=1e-12)
