"""The evolutionary loop: selection against plain definitions, an archive that forgets nothing, no candidate twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.points import dominates

from sfumato.algorithms import memetic
from sfumato.algorithms.dominance import ranks
from sfumato.algorithms.evaluation import Seen
from sfumato.algorithms.memetic import Archive, crowding, survivors, tournament

GRIDS = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(2, 3)), elements=st.integers(0, 4).map(float))


@given(values=GRIDS)
def test_ranks_peel_the_fronts(values: np.ndarray) -> None:
    left, expected, rank = set(range(len(values))), np.zeros(len(values)), 0
    while left:
        front = {i for i in left if not any(dominates(values[j], values[i]) for j in left)}
        expected[list(front)] = rank
        left -= front
        rank += 1
    assert ranks(values).tolist() == expected.tolist()


def test_crowding_by_hand() -> None:
    """Front 0 has three points: the ends are infinitely far, the middle one 1 + 1; front 1 has one point."""
    values = np.array([[0.0, 4.0], [1.0, 1.0], [4.0, 0.0], [4.0, 4.0]])
    assert crowding(values, ranks(values)).tolist() == [np.inf, 2.0, np.inf, np.inf]
    best, rank, _ = survivors(values, 3)
    assert sorted(best.tolist()) == [0, 1, 2]
    assert rank.tolist() == [0, 0, 0]


def test_a_tournament_prefers_rank_then_room() -> None:
    rank, crowd = np.array([0, 1]), np.array([0.1, np.inf])
    won = tournament(rank, crowd, 1000, np.random.default_rng(1))
    assert 0.7 < np.mean(won == 0) < 0.8  # it loses only when it is not drawn
    rank, crowd = np.array([0, 0]), np.array([0.1, 5.0])
    assert np.mean(tournament(rank, crowd, 1000, np.random.default_rng(1)) == 1) > 0.7


@given(batches=st.lists(GRIDS.filter(lambda v: v.shape[1] == 2), min_size=1, max_size=5))
def test_the_archive_is_what_nothing_seen_dominates(batches: list[np.ndarray]) -> None:
    archive = Archive(np.zeros(2))
    for batch in batches:
        archive.add(batch, np.zeros(len(batch), dtype=np.int64))
    seen = np.vstack(batches)
    expected = {tuple(v) for v in seen.tolist() if not any(dominates(o, np.array(v)) for o in seen)}
    assert {tuple(v) for v in archive.values.tolist()} == expected
    assert len(archive) == len(expected)


def test_a_grid_keeps_one_point_a_step() -> None:
    archive = Archive(np.array([0.0, 0.5]))
    archive.add(np.array([[-3.0, 0.2], [-2.0, 0.1], [-4.0, 0.6], [-1.0, np.inf]]), np.arange(4))
    assert archive.members.tolist() == [0, 2]


@given(numbers=st.lists(st.integers(0, 2**64 - 1), max_size=300))
def test_seen_is_a_set(numbers: list[int]) -> None:
    seen, plain = Seen(), set()
    for number in numbers:
        assert bool(seen.new(np.array([number], dtype=np.uint64))[0]) == (number not in plain)
        plain.add(number)
    assert len(seen) == len(plain)
    assert len(Seen(seen.keys)) == len(plain)


class Ones:
    """Bits with two objectives: ones in the left half, zeros in the right half. The front is every (i, j) on a line."""

    objectives, width = 2, 12

    def __init__(self) -> None:
        self.grid = np.zeros(2)
        self.asked: list[bytes] = []
        self.aimed: list[float] = []

    def sampled(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return rng.integers(0, 2, (count, self.width), dtype=np.uint8)

    def offspring(self, parents: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return parents ^ (rng.random(parents.shape) < 0.1)

    def jolted(self, parents: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return parents ^ (rng.random(parents.shape) < 0.2)

    def mixed(self, parents: np.ndarray, mates: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random(parents.shape) < 0.5, parents, mates)

    def rebuilt(
        self, parents: np.ndarray, disturbed: np.ndarray, targets: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, int]:
        """As many ones as the target has, the first bit last: the best that a candidate can be."""
        self.aimed.extend(targets[:, 0].tolist())
        ones = np.arange(self.width)[::-1] < targets[:, :1]
        return ones.astype(np.uint8), 5 * len(parents)

    def hashes(self, bits: np.ndarray) -> np.ndarray:
        return (bits @ (1 << np.arange(self.width)) + 1).astype(np.uint64)

    def values(self, bits: np.ndarray) -> np.ndarray:
        self.asked.extend(row.tobytes() for row in bits)
        return self._values(bits)

    def _values(self, bits: np.ndarray) -> np.ndarray:
        left = bits.sum(axis=1)
        return np.stack([left, (self.width - left) + bits[:, 0]], axis=1)[:, None, :].astype(np.float64)

    def fitness(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0]

    def neighbours(self, parents: np.ndarray, seen: Seen) -> list:
        found = []
        for row in parents:
            near = row ^ np.eye(self.width, dtype=np.uint8)
            near = near[seen.new(self.hashes(near))]
            found.append((Near(near), self._values(near)))
        return found


class Near:
    def __init__(self, bits: np.ndarray) -> None:
        self.bits = bits

    def __len__(self) -> int:
        return len(self.bits)

    def made(self, chosen: np.ndarray) -> np.ndarray:
        return self.bits[chosen]


def test_the_loop_finds_a_front_and_asks_for_no_candidate_twice() -> None:
    problem = Ones()
    settings = memetic.Settings(population=8, generations=30, sweeps=2)
    state = memetic.start(problem, settings, np.zeros((1, 12), dtype=np.uint8), np.random.default_rng(3))
    memetic.run(problem, settings, state)
    assert {tuple(v) for v in state.archive.values.tolist()} == {(float(i), 12.0 - i) for i in range(12)}
    assert len(problem.asked) == len(set(problem.asked))


def test_members_are_rebuilt_for_small_values_more_often() -> None:
    """Seven tenths of the draws aim at the lower half of the logarithm, though most members are above it."""
    problem = Ones()
    settings = memetic.Settings(population=8, generations=40, sweeps=2, rebuilds=5)
    state = memetic.start(problem, settings, np.zeros((1, 12), dtype=np.uint8), np.random.default_rng(3))
    memetic.run(problem, settings, state)
    assert {tuple(v) for v in state.archive.values.tolist()} == {(float(i), 12.0 - i) for i in range(12)}
    assert len(problem.asked) == len(set(problem.asked))
    assert len(problem.aimed) == 200
    low = sum(value <= 2.5 for value in problem.aimed)  # log1p(2.5) is half of log1p(11)
    assert 110 <= low <= 170


def test_plain_nsga2_has_no_local_search() -> None:
    problem = Ones()
    settings = memetic.Settings(population=8, generations=5, sweeps=0)
    state = memetic.start(problem, settings, np.zeros((1, 12), dtype=np.uint8), np.random.default_rng(3))
    memetic.run(problem, settings, state)
    assert state.evaluations == len(problem.asked) == len(state.seen)
    assert not state.walkers
