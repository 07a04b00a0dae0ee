"""Figures of cuts: by hand, against class tables, and every small change against evaluating it in full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.cuts.spaces import bits_of, valid
from tests.strategies import tables

from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.measures.classes import classify
from sfumato.measures.registry import measure
from sfumato.measures.suppression import suppress_below, suppress_within
from sfumato.methods.cuts import kernels
from sfumato.methods.cuts.kernels import RULES
from sfumato.methods.cuts.problem import CutProblem
from sfumato.methods.cuts.space import CutSpace
from sfumato.plans.recodings import CutPlan
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes

MARITAL = Hierarchy.from_paths(
    "marital", [("never", "unmarried", "*"), ("civil", "married", "*"), ("forces", "married", "*")]
)


def worked_example() -> FrequencyTable:
    """Table 1 of the paper: seven records of age and marital status."""
    age = domain_of("age", {"15": 1, "17": 1, "20": 1, "26": 1, "28": 1, "30": 2})
    marital = domain_of("marital", {"never": 2, "civil": 2, "forces": 3}, MARITAL)
    ages = [age.labels.index(a) for a in ["15", "17", "20", "26", "28", "30", "30"]]
    statuses = [marital.labels.index(m) for m in ["never", "never", "civil", "forces", "forces", "civil", "forces"]]
    return from_codes([age, marital], np.array([ages, statuses], dtype=np.int32))


def test_the_worked_example() -> None:
    """Weighted k of T1 is 29/7 and of T2 17/7, by the compiled figures and by the measure."""
    table = worked_example()
    space = CutSpace.of(table)
    problem = CutProblem(table, space, "none")
    unmarried = ("never", "civil")
    for ages, expected in ((("15", "20"), 29 / 7), (("15", "20", "30"), 17 / 7)):
        plan = CutPlan({"age": ages, "marital": unmarried})
        bits = bits_of(space, plan)
        assert valid(space, bits)
        figures = problem.figures(bits[None, :])[0, 0]
        assert figures[kernels.PROPERTY_SUM] / 7 == expected
        assert figures[kernels.LEAST_SIZE] == 2
        assert measure("weighted_k").value(classify(table, plan.recoding(table))) == pytest.approx(expected)


def test_the_printed_rule_of_problem_four_breaks_its_promise() -> None:
    """Classes (size, diversity): a (2, 1), b (3, 2), c (4, 1); two records may go.

    In the printed order, by size and then diversity, a goes and the next class is b: the table is called (3, 2)-safe.
    But c stays, with one value. The safe rule would have to suppress a and c for ℓ = 2, which is six records.
    """
    group = domain_of("group", {"a": 2, "b": 3, "c": 4})
    secret = domain_of("secret", {"x": 1, "y": 1})
    records = np.array([[0, 0, 1, 1, 1, 2, 2, 2, 2]], dtype=np.int32)
    values = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1], dtype=np.int32)
    table = from_codes([group], records, {"secret": (secret, values)})
    space = CutSpace.of(table)
    apart = space.ends()[1][None, :]
    printed = CutProblem(table, space, "printed_l", 2).figures(apart)[0, 0]
    assert (printed[kernels.LEAST_SIZE], printed[kernels.LEAST_DIVERSITY], printed[kernels.SUPPRESSED]) == (
        3,
        1,
        2,
    )  # what it really achieves
    few, many = (CutProblem(table, space, "safe", most).figures(apart)[0] for most in (2, 6))
    promised = {
        int(v[kernels.LEAST_DIVERSITY]): (int(v[kernels.LEAST_SIZE]), int(v[kernels.SUPPRESSED]))
        for v in few
        if v[kernels.LEAST_SIZE] >= 0
    }
    assert promised[1] == (3, 2)
    assert 2 not in promised
    assert (many[2, kernels.LEAST_SIZE], many[2, kernels.LEAST_DIVERSITY], many[2, kernels.SUPPRESSED]) == (
        3,
        2,
        6,
    )


@given(data=st.data(), rule=st.sampled_from(sorted(RULES)), diverse=st.booleans())
def test_figures_are_those_of_the_class_table(data: st.DataObject, rule: str, diverse: bool) -> None:
    table = data.draw(tables())
    diverse = diverse and rule in ("none", "within", "below_mean")
    space = CutSpace.of(table)
    bits = space.sampled(np.random.default_rng(data.draw(st.integers(0, 99))), 3)
    most = data.draw(st.integers(0, table.records - 1))
    problem = CutProblem(table, space, rule, most, by_diversity=diverse, threads=1)
    for row, figures in zip(bits, problem.figures(bits), strict=True):
        classes = classify(table, space.recoding(row))
        size, held = classes.size, np.diff(classes.values("s").start)
        shown = held if diverse else size
        assert figures[0, kernels.PROPERTY_SUM] == (
            classes.rows @ shown if rule not in ("safe",) else figures[0, kernels.PROPERTY_SUM]
        )
        for variant, found in enumerate(figures):
            if rule.startswith("printed"):
                continue
            if rule == "safe":
                expected = best_k(size, held, variant, most)
                assert (found[kernels.LEAST_SIZE] if found[kernels.LEAST_SIZE] >= 0 else None) == expected
                if expected is None:
                    continue
                kept = suppress_below(classes, expected, variant)
            elif rule == "none":
                kept = classes
            elif rule == "within" and not diverse:
                kept = suppress_within(classes, most)
            else:
                kept = suppress_below(
                    classes,
                    *((0, int(found[kernels.LEAST_DIVERSITY])) if diverse else (int(found[kernels.LEAST_SIZE]), 0)),
                )
            assert found[kernels.SUPPRESSED] == kept.suppressed_rows
            if rule in ("within", "safe"):
                assert kept.suppressed_rows <= most
            if rule == "below_mean":
                mean = classes.rows @ shown / table.records
                assert kept.suppressed_rows == classes.rows[shown < mean].sum()
            general, gone = problem.losses(figures)
            assert general[variant] + gone[variant] == pytest.approx(measure("general_loss").value(kept) / problem.full)
            assert general[variant] == pytest.approx(measure("generalization_loss").value(kept), abs=1e-12)
            assert gone[variant] == pytest.approx(measure("suppression_loss").value(kept))
            if not diverse:
                assert found[kernels.LEAST_SIZE] == measure("k").value(kept)


def best_k(size: np.ndarray, held: np.ndarray, least: int, most: int) -> int | None:
    """The largest k such that suppressing every class smaller than k or less diverse than `least` stays within."""
    fitting = [k for k in [*sorted(set(size.tolist()))] if size[(size < k) | (held < least)].sum() <= most]
    fitting = [k for k in fitting if np.any((size >= k) & (held >= least))]
    found = max(fitting, default=None)
    kept = size[(size >= (found or 0)) & (held >= least)]
    return int(kept.min()) if found is not None and len(kept) else None


@given(data=st.data(), rule=st.sampled_from(sorted(RULES)), diverse=st.booleans())
def test_every_small_change_is_as_if_evaluated_in_full(data: st.DataObject, rule: str, diverse: bool) -> None:
    table = data.draw(tables())
    space = CutSpace.of(table)
    diverse = diverse and rule in ("none", "within", "below_mean")
    most = data.draw(st.integers(0, table.records - 1))
    problem = CutProblem(table, space, rule, most, by_diversity=diverse, threads=1)
    bits = space.sampled(np.random.default_rng(data.draw(st.integers(0, 99))), 2)
    parents = [problem.layout.moves(row) for row in bits]
    for moves, figures in zip(parents, problem.sweeps(parents), strict=True):
        if len(moves):
            assert np.array_equal(figures, problem.figures(moves.made(np.arange(len(moves)))))


def test_threads_and_weights(adult: FrequencyTable) -> None:
    """Any number of threads gives the same figures; a weight of 0 takes a column out of the loss."""
    space = CutSpace.of(adult)
    bits = space.sampled(np.random.default_rng(1), 32)
    one = CutProblem(adult, space, "safe", 3016, threads=1)
    two = CutProblem(adult, space, "safe", 3016, threads=2)
    assert np.array_equal(one.figures(bits), two.figures(bits))
    light = CutProblem(adult, space, "within", 301, given_weights={"age": 0.0, "sex": 2.0})
    classes = suppress_within(classify(adult, space.recoding(bits[0]), tuple(light.weights.tolist())), 301)
    general, gone = light.losses(light.figures(bits[:1]))
    assert general[0, 0] + gone[0, 0] == pytest.approx(measure("general_loss").value(classes) / light.full)
