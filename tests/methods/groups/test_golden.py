"""The golden numbers of the groups paper, and the laws behind them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.base.arrays import Floats
from sfumato.errors import StudyError
from sfumato.methods.groups.attack.outliers import (
    Adequacy,
    Outliers,
    beyond_counting_noise,
    find_outliers,
    hinges,
    log_evidence,
    log_factorials,
    ranks,
    spearman,
    spread,
    tau,
)
from sfumato.methods.groups.attack.rules import Term
from sfumato.papers.groups import by_state


def both_sides(found: Outliers) -> list[int]:
    return sorted((*found.high, *found.low))


signals = st.lists(st.integers(0, 40), min_size=1, max_size=20).map(lambda v: np.array(v, dtype=np.float64))


@pytest.mark.parametrize(
    ("counts", "figures"),
    [((60, 38, 4, 785), (0.953, 0.891, 0.607, 98.047)), ((42, 39, 8, 564), (0.928, 0.775, 0.505, 55.067))],
)
def test_adequacy_of_both_tables(counts: tuple[int, int, int, int], figures: tuple[float, ...]) -> None:
    found = Adequacy(*counts)
    ours = (found.accuracy, found.printed_j, found.youden_j, found.bayes)
    assert tuple(round(x or 0.0, 3) for x in ours) == figures


@given(st.tuples(*[st.integers(0, 9)] * 4).filter(lambda c: sum(c) > 0))
def test_the_least_evidence_is_that_of_the_whole_grid(counts: tuple[int, int, int, int]) -> None:
    found = Adequacy(*counts)
    n1, n2 = counts[0] + counts[1], counts[2] + counts[3]
    logs = log_factorials(2 * (n1 + n2) + 2)
    every = min(log_evidence(found, a, b, logs) for a in range(n1 + 1) for b in range(n2 + 1))
    assert found.bayes == pytest.approx(every, abs=1e-9)


def test_adequacy_is_undefined_where_there_is_nothing_to_compare() -> None:
    found = Adequacy.of([], [], 5)
    assert (found.printed_j, found.youden_j, found.accuracy) == (None, None, 1.0)
    both = Adequacy.of([1, 2], [2, 3], 5)
    assert (both.disclosed, both.undisclosed, both.false, both.quiet) == (1, 1, 1, 2)


@pytest.mark.parametrize(("m", "value"), [(10, 2.176068), (38, 2.477843), (61, 2.515381)])
def test_tau(m: int, value: float) -> None:
    assert round(tau(m, 0.01), 6) == value


def test_a_signal_by_hand() -> None:
    # Sorted 1 2 2 3 3 4 5 30: the median is 3, the halves' medians 2 and 4.5, so the scale is 2.5/1.349 = 1.853;
    # τ(8) = 2.0649 (t = 3.7074 with 6 degrees), the limit 3.827; only 30 lies beyond. Without it the median is 3,
    # the hinges 2 and 3.5, the limit τ(7)·1.5/1.349 = 2.205: nothing lies beyond.
    signal = np.array([3.0, 30, 2, 5, 1, 4, 2, 3])
    assert hinges(sorted(signal.tolist())) == (2.0, 4.5)
    assert round(tau(8, 0.01), 4) == 2.0649
    assert both_sides(find_outliers(signal)) == [1]
    assert find_outliers(signal).high == (1,)


def test_hinges_are_not_percentiles() -> None:
    odd = np.array([1.0, 2, 3, 4, 100])
    assert hinges(odd) == (2.0, 4.0)  # the middle value is in both halves
    even = np.array([1.0, 2, 3, 10])
    assert hinges(even) == (1.5, 6.5)
    assert float(np.percentile(even, 75)) == 4.75


def test_a_scale_of_nothing_falls_back() -> None:
    assert spread(np.array([2.0, 2, 2, 2, 2, 2, 9]), "hinges")[1] == "mean deviation"
    assert spread(np.array([2.0, 2, 2]), "hinges") == (0.0, "none")
    assert both_sides(find_outliers(np.array([2.0, 2, 2, 2]))) == []
    assert both_sides(find_outliers(np.array([2.0, 9]))) == []  # two values have no outliers
    assert find_outliers(np.array([2.0, 2, 2, 2, 2, 2, 9])).high == (6,)


@given(signals, st.sampled_from(["hinges", "mad"]))
def test_outliers_do_not_depend_on_order_unit_or_sign(signal: Floats, scale: str) -> None:
    found = find_outliers(signal, 0.01, scale)  # type: ignore[arg-type]
    turned = find_outliers(signal[::-1], 0.01, scale)  # type: ignore[arg-type]
    assert both_sides(turned) == sorted(len(signal) - 1 - i for i in both_sides(found))
    assert both_sides(find_outliers(4 * signal + 8, 0.01, scale)) == both_sides(found)  # type: ignore[arg-type]
    assert find_outliers(-signal, 0.01, scale).low == found.high  # type: ignore[arg-type]


def test_ranks_and_correlation() -> None:
    assert ranks(np.array([5.0, 9, 5, 1])) == [2, 1, 2, 4]
    assert spearman(np.array([1.0, 1, 1]), np.array([1.0, 2, 3])) is None
    assert spearman(np.array([1.0, 2, 3, 4]), np.array([4.0, 3, 2, 1])) == -1.0


HAND = [
    (Term("g", "gaussian", (2.0, 27.5)), {27.5: 1.0, 25.5: 0.606530659713, 31.5: 0.135335283237}),
    (Term("t", "trapezoid", (1, 1, 8, 10)), {1: 1.0, 8: 1.0, 9: 0.5, 10: 0.0, 0: 0.0}),
    (Term("t", "trapezoid", (5, 6, 6, 6)), {5: 0.0, 6: 1.0, 7: 0.0}),  # 50–52 weeks are normal: the plateau wins
    (Term("p", "pi", (7.05, 15.40, 22.50, 27.18)), {7.05: 0.0, 11.225: 0.5, 15.4: 1.0, 22.5: 1.0, 24.84: 0.5, 28: 0.0}),
    (Term("p", "pi", (0.0, 0.0, 29.9, 40.3)), {0: 1.0, 29.9: 1.0, 32.5: 0.875, 37.7: 0.125}),
    (Term("s", "s", (2, 12)), {2: 0.0, 4.5: 0.125, 7: 0.5, 9.5: 0.875, 12: 1.0, 99: 1.0}),
    (Term("z", "z", (2, 12)), {-5: 1.0, 2: 1.0, 4.5: 0.875, 7: 0.5, 9.5: 0.125, 12: 0.0}),
    (Term("c", "crisp", (1, 9)), {0: 0.0, 1: 1.0, 9: 1.0, 9.5: 0.0}),
]


@pytest.mark.parametrize("case", HAND, ids=lambda case: f"{case[0].kind}{case[0].numbers}")
def test_membership_functions_by_hand(case: tuple[Term, dict[float, float]]) -> None:
    term, values = case
    assert term(list(values)).tolist() == pytest.approx(list(values.values()), abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "numbers", "says"),
    [
        ("pie", (1, 2, 3, 4), "unknown"),
        ("pi", (1, 2), "2 numbers"),
        ("s", (3, 1), "numbers"),
        ("gaussian", (0, 1), "term"),
    ],
)
def test_terms_that_mean_nothing(kind: str, numbers: tuple[float, ...], says: str) -> None:
    with pytest.raises(StudyError, match=says):
        Term("x", kind, numbers)


def test_counting_noise_is_what_chance_makes_of_sizes() -> None:
    """In a world where nobody gathers, few states have any area beyond noise; who gathers is beyond it."""
    rng = np.random.default_rng(8)
    false = missed = spurious = 0
    for _ in range(300):
        sizes = np.exp(rng.normal(6, 0.35, 24))
        signal = rng.poisson(sizes * rng.choice([0.002, 0.02, 0.1])).astype(np.float64)
        false += bool(beyond_counting_noise(signal, sizes).any())
        gathered = signal.copy()
        gathered[:2] += 10 * np.sqrt(signal.mean() + 1) + 5
        found = beyond_counting_noise(gathered, sizes)
        missed += int(2 - found[:2].sum())
        spurious += int(found[2:].any())
    assert false <= 6  # three are expected at a significance of 0.01
    assert missed <= 3
    assert spurious <= 6


def test_counting_noise_of_nothing() -> None:
    assert not beyond_counting_noise(np.zeros(5), np.ones(5)).any()
    assert beyond_counting_noise(np.array([0.0, 0, 0, 0, 9]), np.full(5, 100.0)).tolist() == [False] * 4 + [True]


def test_a_census_is_judged_state_by_state() -> None:
    """Planted areas are the truth even if they do not stand out; what is found in a state without one is false."""
    labels = [f"{state:02d}-{area:05d}" for state in (1, 2) for area in range(12)]
    truth = np.array([40.0, 3, *[2.0] * 10, *[9.0] * 12])
    quiet = np.array([3.0, 4, 5, 6, 7, 4, 5, 6, 3, 7, 5, 5])
    signal = np.concatenate([quiet, quiet])
    signal[0], signal[15], signal[20] = 60.0, 12.0, 40.0
    planted, sizes = [0, 1], np.full(24, 100.0)
    plain, revised = by_state(labels, truth, signal, planted), by_state(labels, truth, signal, planted, sizes)
    assert (plain.disclosed, plain.undisclosed, plain.false) == (1, 1, 2)
    assert (revised.disclosed, revised.undisclosed, revised.false) == (1, 1, 1)  # 12 of 5 is within counting noise
    sizes[20] = 900.0
    assert by_state(labels, truth, signal, planted, sizes).false == 0  # a large area shows more
