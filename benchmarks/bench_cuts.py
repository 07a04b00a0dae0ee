"""Cuts: evaluations per CPU second, the loop's own cost, and hypervolume over CPU time against pymoo's NSGA-II."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.timing import cpu_seconds, show
from sfumato.algorithms import memetic
from sfumato.algorithms.dominance import hypervolume, non_dominated
from sfumato.algorithms.memetic import State
from sfumato.methods.cuts.search import CutSearch
from sfumato.methods.lattice.search import search_lattice
from sfumato.methods.run import Run
from sfumato.methods.search import search as find_front
from sfumato.papers.cuts import paper_setting

MARKS = (2, 5, 10, 20, 40)  # CPU seconds at which fronts are compared
SIZES = (5, 10, 14, 20, 50)  # k at which losses are compared


def main() -> None:
    _rates()
    _overhead()
    _over_time()
    _losses()


def _rates() -> None:
    """Candidates of a converged population (near the front) and random ones, in full and by small changes."""
    rows = []
    for problem in (2, 1, 4):
        ready = CutSearch(paper_setting(problem).with_search(threads=1))
        rng = np.random.default_rng(1)
        random = ready.space.sampled(rng, 64)
        near = _converged(ready)
        for name, bits in (("random", random), ("near the front", near)):
            full, _ = cpu_seconds(lambda r=ready, b=bits: r.problem.figures(b))
            moves = [ready.problem.layout.moves(row) for row in bits[:16]]
            small, _ = cpu_seconds(lambda r=ready, m=moves: r.problem.sweeps(m))
            plain, _ = cpu_seconds(lambda r=ready, b=bits: [_plain(r, row) for row in b[:4]])
            rates = len(bits) / full, sum(map(len, moves)) / small, 4 / plain
            rows.append(
                [
                    str(problem),
                    name,
                    f"{rates[0]:,.0f}",
                    f"{rates[1]:,.0f}",
                    f"{rates[1] / rates[0]:.1f}×",
                    f"{rates[2]:,.0f}",
                    f"{rates[0] / rates[2]:.0f}×",
                ]
            )
    heads = [
        "problem",
        "candidates",
        "full /CPU s",
        "small changes /CPU s",
        "gain",
        "plain numpy /CPU s",
        "full to plain",
    ]
    show("Evaluations, one thread, Adult with nine attributes", heads, rows)


def _converged(ready: CutSearch) -> np.ndarray:
    settings = memetic.Settings(population=64, generations=40)
    state = memetic.start(ready, settings, ready.space.ends(), np.random.default_rng(1))
    return memetic.run(ready, settings, state).population


def _plain(ready: CutSearch, bits: np.ndarray) -> tuple[int, int]:
    """k and suppressed records by numpy alone."""
    groups = np.stack(
        [
            np.concatenate([[0], np.cumsum(part)])[codes]
            for part, codes in zip(ready.space.parts(bits), ready.problem.units.codes, strict=True)
        ]
    )
    _, index = np.unique(groups, axis=1, return_inverse=True)
    sizes = np.bincount(index.ravel(), weights=ready.problem.units.counts).astype(np.int64)
    values, rows = np.unique(sizes, return_counts=True)
    gone = np.cumsum(values * rows)
    place = int(np.searchsorted(gone, ready.problem.budget, side="right"))
    return int(values[place]), int(gone[place - 1]) if place else 0


def _overhead() -> None:
    """A generation of 200 when evaluating costs nothing: breed, hash, archive, rank, select."""
    ready = CutSearch(paper_setting(2).with_search(algorithm="nsga2", threads=1))
    settings = memetic.Settings(population=200, generations=1, sweeps=0)
    state = memetic.start(ready, settings, ready.space.ends(), np.random.default_rng(1))
    known = ready.values(ready.space.sampled(np.random.default_rng(2), 400))
    ready.values = lambda bits: known[: len(bits)]  # type: ignore[method-assign]
    seconds, _ = cpu_seconds(lambda: memetic.step(ready, settings, state))
    show("A generation of 200 without evaluation", ["CPU ms"], [[f"{seconds * 1000:.2f}"]])


def _over_time() -> None:
    """Hypervolume of problem 2 (log k against loss, as a share of the box) after so many CPU seconds, one thread."""
    study = paper_setting(2).with_search(threads=1)
    runs: dict[str, Callable[[], dict[int, float]]] = {
        "nsga2, the paper's setting": lambda: _ours(study, "nsga2", 200),
        "memetic, the default": lambda: _ours(study, "memetic", 100),
        "pymoo's NSGA-II, same evaluator": lambda: _pymoo(study),
    }
    rows = []
    for name, run in runs.items():
        found = run()
        rows.append([name, *(f"{found[mark]:.4f}" if mark in found else "–" for mark in MARKS)])
    show("Hypervolume over CPU time, problem 2, seed 1", ["search", *(f"{mark} s" for mark in MARKS)], rows)


def _losses() -> None:
    """The least loss at each k of problem 2, by seed; one thread."""
    study = paper_setting(2).with_search(threads=1)
    table = study.table()
    find_front(study.with_search(generations=1), table=table)  # compiled before it is timed
    rows = []
    for seed in range(1, 6):
        began = time.process_time()
        front = find_front(study.with_search(seed=seed), table=table)
        seconds = time.process_time() - began
        losses = [min(point.loss for point in front.points if point.values["k"] >= k) for k in SIZES]
        rows.append([str(seed), *(f"{loss:.4f}" for loss in losses), f"{seconds:.0f}"])
    show("Least loss of problem 2 by seed", ["seed", *(f"k {k}" for k in SIZES), "CPU s"], rows)


def _volume(values: np.ndarray, records: int, full: float) -> float:
    finite = values[np.isfinite(values).all(axis=1)]
    scaled = np.column_stack([1 - np.log(-finite[:, 0]) / np.log(records), finite[:, 1] / full])
    return hypervolume(scaled[non_dominated(scaled)], np.ones(2))


def _ours(study: Any, method: str, population: int) -> dict[int, float]:
    began = time.process_time()
    ready = CutSearch(study.with_search(algorithm=method, population=population, generations=10**6))
    settings = ready.loop
    state = memetic.start(ready, settings, ready.seeds(Run(), search_lattice), np.random.default_rng(1))
    found: dict[int, float] = {}

    def tell(now: State) -> bool:
        return _marked(found, began, lambda: _volume(now.archive.values, ready.problem.records, ready.problem.full))

    memetic.run(ready, settings, state, tell)
    return found


def _marked(found: dict[int, float], began: float, volume: Callable[[], float]) -> bool:
    spent = time.process_time() - began
    for mark in MARKS:
        if spent >= mark and mark not in found:
            found[mark] = volume()
    return spent >= MARKS[-1]


def _pymoo(study: Any) -> dict[int, float]:
    """Their loop with our operators' rates on plain bits, repaired to valid ones, and our evaluator."""
    try:
        from pymoo.algorithms.moo.nsga2 import NSGA2
        from pymoo.core.callback import Callback
        from pymoo.core.problem import Problem
        from pymoo.core.sampling import Sampling
    except ImportError:
        print("pymoo is not installed: pip install 'sfumato[bench]'\n")
        return {}
    from pymoo.core.crossover import Crossover
    from pymoo.core.mutation import Mutation
    from pymoo.core.termination import NoTermination
    from pymoo.optimize import minimize

    from sfumato.methods.cuts.space import offspring

    began = time.process_time()
    ready = CutSearch(study)
    rng = np.random.default_rng(1)
    found: dict[int, float] = {}
    best: list[np.ndarray] = [np.empty((0, 2))]

    class Cuts(Problem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=ready.space.gaps, n_obj=2, xl=0, xu=1, vtype=bool)

        def _evaluate(self, x: np.ndarray, out: dict[str, Any], *_: Any, **__: Any) -> None:
            values = ready.values(x.astype(np.uint8))[:, 0]
            both = np.vstack([best[0], values])
            best[0] = both[non_dominated(both)]
            out["F"] = values / [1.0, ready.problem.full]

    class Sample(Sampling):  # type: ignore[misc]
        def _do(self, _problem: Any, n_samples: int, *_: Any, **__: Any) -> np.ndarray:
            return ready.space.sampled(rng, n_samples).astype(bool)

    class Cross(Crossover):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(2, 2)

        def _do(self, _problem: Any, x: np.ndarray, *_: Any, **__: Any) -> np.ndarray:
            parents = np.ascontiguousarray(x.transpose(1, 0, 2).reshape(-1, x.shape[2]).astype(np.uint8))
            children = offspring(ready.problem.layout, parents, rng)
            return children.reshape(-1, 2, x.shape[2]).transpose(1, 0, 2).astype(bool)

    class Keep(Mutation):  # type: ignore[misc]
        def _do(self, _problem: Any, x: np.ndarray, *_: Any, **__: Any) -> np.ndarray:
            return x  # the children are mutated already

    class Mark(Callback):  # type: ignore[misc]
        def notify(self, algorithm: Any) -> None:
            over = _marked(found, began, lambda: _volume(best[0], ready.problem.records, ready.problem.full))
            algorithm.termination.force_termination = over

    method = NSGA2(pop_size=200, sampling=Sample(), crossover=Cross(), mutation=Keep(), eliminate_duplicates=True)
    minimize(Cuts(), method, NoTermination(), seed=1, callback=Mark(), verbose=False)
    return found
