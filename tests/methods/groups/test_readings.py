"""Two readings of what a finding is (docs/readings.md, 4.17): how often they err by chance, and what they hide."""

from __future__ import annotations

import numpy as np
import pytest
from tests.methods.groups.readings import bare

from sfumato.methods.groups.attack.outliers import (
    Sensitive,
    below_counting_noise,
    find_outliers,
    findings,
    strikingly_low,
)

AREAS, THREE, ALPHA = 10, (0, 1, 2), 0.01


def drawn(mean: float, per_record: float, factor: float, draws: int = 300) -> tuple[float, float, float, float]:
    """Ten areas with Poisson's law, three of them with so many times the others' mean: shares of the three that are
    found high by the bare outlier tests, and as read; and low by the bare tests, and as read."""
    rng = np.random.default_rng([int(10 * mean), int(100 * per_record), int(100 * factor)])
    means = np.full(AREAS, mean)
    means[list(THREE)] *= factor
    counts = np.zeros(4)
    for _ in range(draws):
        signal = rng.poisson(means / per_record) * per_record
        shown = findings(signal, Sensitive(THREE, (), {}), ALPHA, per_record=per_record)
        high, low = bare(shown, THREE, ALPHA)
        counts += (len(high), len({*shown.by_way["hinges"], *shown.by_way["mad"]}), len(low), len(shown.low))
    high_bare, high_read, low_bare, low_read = (counts / (3 * draws)).tolist()
    return high_bare, high_read, low_bare, low_read


def test_low_values_by_hand() -> None:
    """Eight areas show 20 and more, one 14. As a count that is chance: P(X ≤ 14 | 21) = 0.07. As a sum of tenths it is
    not: P(X ≤ 140 | 210) < 1e-6."""
    signal = np.array([20.0, 21, 22, 20, 21, 22, 21, 20, 14])
    low = [find_outliers(signal)]
    assert low[0].low == (8,)
    assert strikingly_low(signal, low, [8], ALPHA) == ()
    assert strikingly_low(signal, low, [8], ALPHA, per_record=0.1) == (8,)


def test_being_last_together_needs_no_other_test() -> None:
    """Three sensitive areas of ten show nothing and the others about 4: P(X ≤ 0 | 4) = 0.018 for each, but all three
    are last, which chance does once in 120."""
    signal = np.array([0.0, 0, 0, 4, 5, 3, 6, 4, 5, 4])
    assert not below_counting_noise(signal).any()
    assert findings(signal, Sensitive(THREE, (), {}), ALPHA).low == THREE


@pytest.mark.parametrize(("mean", "per_record"), [(5.0, 1.0), (20.0, 1.0), (5.0, 0.1)])
def test_exchangeable_areas_are_seldom_found_from_below(mean: float, per_record: float) -> None:
    high_bare, high, low_bare, low = drawn(mean, per_record, 1.0)
    assert high >= high_bare - 0.01  # the median as a limit spares next to nothing
    assert low_bare > 0.04
    assert low < 0.03


@pytest.mark.parametrize(("mean", "per_record", "factor"), [(20.0, 1.0, 0.5), (5.0, 0.1, 0.5), (2.0, 0.1, 0.5)])
def test_areas_with_half_as_much_are_found_as_by_the_bare_tests(mean: float, per_record: float, factor: float) -> None:
    """With Poisson's law for sums of tenths, as it was read first, none of the last two are found."""
    _, _, low_bare, low = drawn(mean, per_record, factor)
    assert low_bare > 0.6
    assert low >= 0.9 * low_bare


@pytest.mark.parametrize(("mean", "per_record"), [(5.0, 1.0), (5.0, 0.1)])
def test_areas_with_three_times_as_much_are_found_as_by_the_bare_tests(mean: float, per_record: float) -> None:
    high_bare, high, _, _ = drawn(mean, per_record, 3.0)
    assert high_bare > 0.6
    assert high == high_bare
