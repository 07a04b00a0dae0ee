"""Class histograms answer any suppression as classifying and suppressing does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import levels, tables

import sfumato as sf
from sfumato.measures.classes import classify
from sfumato.measures.histograms import Histograms, histograms_of
from sfumato.measures.registry import measure
from sfumato.measures.suppression import suppress_below
from sfumato.plans.recodings import LevelPlan


@given(st.data())
def test_every_option_is_what_classifying_and_suppressing_gives(data: st.DataObject) -> None:
    table = data.draw(tables())
    node = data.draw(levels(table))
    weights = {name: data.draw(st.sampled_from([1.0, 0.5, 3.0])) for name in table.columns}
    plan = LevelPlan(dict(zip(table.columns, node, strict=True)))
    histogram = histograms_of(table, [plan], weights).of(0)
    most = data.draw(st.integers(0, table.records))
    options = histogram.options(most)
    whole = classify(table, plan.recoding(table), tuple(weights.values()))
    seen = set()
    for i in range(len(options.k)):
        kept = suppress_below(whole, int(options.suppress_below[i]), int(options.diversity_below[i]))
        assert kept.suppressed_rows == options.suppressed[i] <= most
        assert measure("k").value(kept) == options.k[i]
        assert measure("distinct_l").value(kept) == options.l[i]
        assert measure("weighted_k").value(kept) == pytest.approx(options.weighted_k[i])
        assert measure("weighted_l").value(kept) == pytest.approx(options.weighted_l[i])
        full = sum(weights.values()) * table.records
        assert measure("general_loss").value(kept) / full == pytest.approx(options.loss[i], abs=1e-11)
        seen.add((int(options.k[i]), int(options.l[i])))
    assert len(seen) == len(options.k)
    # Nothing is left out: whatever two thresholds give within the limit is among the options.
    k, l = data.draw(st.integers(0, 24)), data.draw(st.integers(0, 5))
    reached = histogram.achieved(k, l)
    if reached[0] and reached[2] <= most:
        assert reached[:2] in seen


def test_a_table_without_sensitive_columns_has_no_diversity(adult: sf.FrequencyTable) -> None:
    from dataclasses import replace

    plain = replace(adult, sensitive={})
    found = histograms_of(plain, [LevelPlan(dict.fromkeys(adult.columns, 1))])
    assert not found.diverse
    assert set(found.diversity.tolist()) == {0}


def test_they_survive_their_file(adult: sf.FrequencyTable, tmp_path: Path) -> None:
    plans = [LevelPlan(dict.fromkeys(adult.columns, level)) for level in (0, 1)]
    found = histograms_of(adult, plans)
    found.write(tmp_path / "classes.parquet")
    again = Histograms.read(tmp_path / "classes.parquet")
    assert len(again) == 2
    assert (again.scale, again.full, again.rows, again.diverse) == (found.scale, found.full, 30162, True)
    for name in ("start", "size", "diversity", "records", "cost"):
        assert np.array_equal(getattr(again, name), getattr(found, name))
    assert again.of(0).records.sum() == 30162
