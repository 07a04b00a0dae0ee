"""Plans that are improved pair by pair: what is exposed is what findings say, and every step pays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.groups.test_signals import GRADES, attack_of

from sfumato.base.arrays import Counts64, Floats
from sfumato.errors import StoppedError
from sfumato.methods.groups.attack.exposure import FOUND, MARGINS, NEARLY, criteria_of, exposure, look, spare_of
from sfumato.methods.groups.attack.outliers import Sensitive, findings
from sfumato.methods.groups.improve import BATCH, EACH, PRICE, Edges, Weights, edges_of, improve
from sfumato.methods.groups.microfile import Microfile
from sfumato.methods.groups.signals import imagined

ALPHA = 0.01
seeds = st.integers(0, 100_000)


def drawn_signal(rng: np.random.Generator) -> tuple[Floats, list[int], float]:
    """A signal with ties and empty areas as often as without, some sensitive areas, and what a record adds."""
    areas = int(rng.integers(4, 30))
    signal = rng.gamma(rng.choice([0.3, 2.0, 30.0]), 1.0, areas) * rng.choice([0.2, 1.0, 20.0])
    if rng.random() < 0.5:
        signal = signal.round()
    signal[rng.random(areas) < rng.choice([0.0, 0.2, 0.7])] = 0.0
    sensitive = sorted(rng.choice(areas, int(rng.integers(1, 4)), replace=False).tolist())
    return signal, sensitive, float(rng.choice([0.1, 0.6, 1.0]))


def plain_findings(signal: Floats, sensitive: list[int], per_record: float) -> tuple[set[int], set[int]]:
    made = findings(signal, Sensitive(tuple(sensitive), (), {}), ALPHA, per_record=per_record)
    return set(made.high), set(made.low)


def on_the_edge(signal: Floats, sensitive: list[int], per_record: float) -> bool:
    """Whether an area is nearly as low as chance explains: there the table of the loop is a little off."""
    from scipy.special import gammaincc

    middle = float(np.median(signal))
    chance = gammaincc(signal[sensitive] / per_record + 1, middle / per_record)
    return bool((abs(chance - ALPHA) < 2e-4).any())


@given(seeds)
def test_the_loop_finds_what_findings_say(seed: int) -> None:
    signal, sensitive, per_record = drawn_signal(np.random.default_rng(seed))
    if on_the_edge(signal, sensitive, per_record):
        return
    criteria = criteria_of([sensitive], len(signal), ALPHA, float(signal.sum()) / per_record)
    spare = spare_of(len(signal), len(sensitive))
    look(signal, 0, per_record, criteria, spare)
    high, low = ({a for a, shown in zip(sensitive, some, strict=True) if shown} for some in (spare.high, spare.low))
    assert (high, low) == plain_findings(signal, sensitive, per_record)


def plain_exposure(signal: Floats, sensitive: list[int], per_record: float) -> float:
    high, low = plain_findings(signal, sensitive, per_record)
    ever = high | low
    total = FOUND * len(ever)
    for number, (margin, worth) in enumerate(zip(MARGINS, NEARLY, strict=True), 1):
        step = np.maximum(margin * signal[sensitive], number * per_record)
        for side in (1, -1):
            other = signal.copy()
            other[sensitive] = np.maximum(signal[sensitive] + side * step, 0.0)
            high, low = plain_findings(other, sensitive, per_record)
            ever |= high if side > 0 else low
            total += worth * len(low if side > 0 else high)
        total += worth * len(ever)
    return total


def test_exposure_by_hand() -> None:
    """Nine areas that show 5 and one that shows 50: it is found, with more of it and with less by every margin."""
    signal = np.array([50.0, *[5.0] * 9])
    criteria, spare = criteria_of([[0]], 10, ALPHA, 100.0), spare_of(10, 1)
    assert exposure(signal, 0, 1.0, criteria, spare) == FOUND + 2 * NEARLY.sum()
    assert exposure(np.array([10.0, 12, 9, 11, 10, 13, 8, 9.5, 7, 14]), 0, 1.0, criteria, spare) < FOUND


@given(seeds)
def test_exposure_is_what_findings_add_up_to(seed: int) -> None:
    signal, sensitive, per_record = drawn_signal(np.random.default_rng(seed))
    criteria = criteria_of([sensitive], len(signal), ALPHA, 4 * float(signal.sum()) / per_record + 9)
    spare = spare_of(len(signal), len(sensitive))
    sides = [signal]
    for number, margin in enumerate(MARGINS, 1):
        step = np.maximum(margin * signal[sensitive], number * per_record)
        for side in (1, -1):
            sides.append(signal.copy())
            sides[-1][sensitive] = np.maximum(signal[sensitive] + side * step, 0.0)
    if any(on_the_edge(one, sensitive, per_record) for one in sides):
        return
    assert exposure(signal, 0, per_record, criteria, spare) == plain_exposure(signal, sensitive, per_record)


def small(rng: np.random.Generator) -> tuple[Edges, Weights, Floats, Counts64, list[int]]:
    """Ten areas, the first two sensitive, in which suspected people gather; half of them are exchanged already."""
    givers, takers, areas = 24, 120, 10
    giver_area = np.repeat(np.array([0, 1], np.int32), givers // 2)
    taker_area = np.tile(np.arange(2, areas, dtype=np.int32), takers // (areas - 2))
    giver, taker = rng.random((givers, 3)), 0.1 * rng.random((takers, 3))
    held = np.stack(
        [
            np.bincount(giver_area, giver[:, a], minlength=areas)
            + np.bincount(taker_area, taker[:, a], minlength=areas)
            for a in range(3)
        ]
    )
    cost = rng.integers(1, 9, (givers, takers)).astype(np.float64)
    everyone = np.meshgrid(np.arange(givers), np.arange(takers), indexing="ij")
    edges = edges_of(cost, giver_area, taker_area, everyone[0].reshape(-1), everyone[1].reshape(-1))
    weights = Weights(giver, taker, np.zeros(3, np.int64), np.ones(3))
    used = np.full(givers, -1, np.int64)
    used[::2] = edges.start[:-1:2] + rng.permutation(takers)[: givers // 2]
    return edges, weights, after(edges, weights, held, used), used, [0, 1]


def after(edges: Edges, weights: Weights, held: Floats, used: Counts64, sign: float = 1.0) -> Floats:
    """What signals show when the pairs in use exchange places, added up anew; or change back."""
    shown = held.copy()
    for giver in np.flatnonzero(used >= 0):
        taker = edges.taker[used[giver]]
        amount = sign * (weights.giver[giver] - weights.taker[taker])
        shown[:, edges.giver_area[giver]] -= amount
        shown[:, edges.taker_area[taker]] += amount
    return shown


@given(st.integers(0, 500))
def test_what_is_improved_is_what_it_says_and_pays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges, weights, held, used, sensitive = small(rng)
    criteria = criteria_of([sensitive], held.shape[1], ALPHA, 1e3)
    made = improve(edges, weights, held, used, criteria, np.random.default_rng(seed))
    again = improve(edges, weights, held, used, criteria, np.random.default_rng(seed))
    assert made.used.tolist() == again.used.tolist()
    assert (used >= 0).sum() == len(used) // 2
    chosen = made.used[made.used >= 0]
    assert len(np.unique(edges.taker[chosen])) == len(chosen)
    givers = np.searchsorted(edges.start, chosen, side="right") - 1
    assert givers.tolist() == np.flatnonzero(made.used >= 0).tolist()
    spare = spare_of(held.shape[1], len(sensitive))
    alone = after(edges, weights, held, used, -1.0)
    shown = after(edges, weights, alone, made.used)
    exposed = sum(exposure(row.round(9), 0, 1.0, criteria, spare) for row in shown)
    assert made.after == pytest.approx(exposed, abs=2 * FOUND)  # rounding decides at the edge of a test
    saved = edges.cost[used[used >= 0]].sum() - edges.cost[chosen].sum()
    assert PRICE * (made.before - made.after) + saved >= 0


def test_a_plan_that_exposes_much_is_improved() -> None:
    edges, weights, held, used, sensitive = small(np.random.default_rng(3))
    criteria = criteria_of([sensitive], held.shape[1], ALPHA, 1e3)
    made = improve(edges, weights, held, used, criteria, np.random.default_rng(3))
    assert made.before >= 6 * FOUND  # both areas by all three signals
    assert made.after <= made.before / 2


def test_a_plan_that_exposes_nothing_only_becomes_cheaper() -> None:
    """Sensitive areas in the middle, and nobody adds anything: dropping every pair saves its cost."""
    rng = np.random.default_rng(1)
    edges, weights, held, used, sensitive = small(rng)
    weights = Weights(np.zeros_like(weights.giver), np.zeros_like(weights.taker), weights.group, weights.per_record)
    criteria = criteria_of([sensitive], held.shape[1], ALPHA, 1e3)
    still = np.tile([49.0, 51.0, 42, 44, 46, 48, 52, 54, 56, 58], (len(held), 1))
    made = improve(edges, weights, still, used, criteria, rng)
    assert (made.after, (made.used >= 0).sum()) == (made.before, 0)


def test_it_can_be_stopped() -> None:
    edges, weights, held, used, sensitive = small(np.random.default_rng(1))
    with pytest.raises(StoppedError, match="improved"):
        improve(
            edges, weights, held, used, criteria_of([sensitive], 10, ALPHA, 1e3), np.random.default_rng(1), lambda: True
        )


def test_steps_are_at_most_fifty_for_each_giver(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr("sfumato.methods.groups.improve._steps", lambda *given: drawn.append(len(given[-1])))
    edges, weights, held, used, sensitive = small(np.random.default_rng(1))
    criteria = criteria_of([sensitive], held.shape[1], ALPHA, 1e3)
    improve(edges, weights, held, used, criteria, np.random.default_rng(1))
    assert sum(drawn) == EACH * len(used)
    assert max(drawn) <= BATCH
    drawn.clear()
    monkeypatch.setattr("sfumato.methods.groups.improve.BATCH_WORK", 7 * held.size)
    improve(edges, weights, held, used, criteria, np.random.default_rng(1))
    assert (sum(drawn), max(drawn)) == (EACH * len(used), 7)


def test_who_is_imagined_from_known_attacks() -> None:
    """One forest: itself, half, 1.7 and three times as many flagged, all grades, roots; then what plans bound, and what
    attackers agree on, which is the forest again. Rules of two seeds: each, the mean, and those of one or both."""
    forest = attack_of(GRADES)
    file: Microfile = forest.target
    made = imagined(file, [], [forest])
    assert sum(signal.name == "forest" for signal in made) == 6
    assert [int((signal.weights > 0).sum()) for signal in made if signal.name == "forest"] == [2, 1, 3, 6, 8, 8]
    assert sum(signal.name == "agreed" for signal in made) == 5
    rules = [
        attack_of(grades, seed, attacker="exact", graded=False)
        for seed, grades in ((1, GRADES), (2, GRADES[::-1].copy()))
    ]
    flagged = [int((signal.weights > 0).sum()) for signal in imagined(file, [], rules)]
    assert flagged == [4, 2, 2, 4]
