"""The tables of the lattice paper (Dewri, Ray, Ray, Whitley 2010, tables 1b and 2) and ours.

Every node of the lattice is evaluated once. The runs then look values up, and count their evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.algorithms.dominance import convergence_error, representation_ratio
from sfumato.algorithms.evaluation import Memory
from sfumato.algorithms.exact import front_of
from sfumato.algorithms.pbg_ea import pbg_ea
from sfumato.base.arrays import Floats
from sfumato.data.settings import Role
from sfumato.measures.loss.class_size import CLASSIFICATION_METRIC
from sfumato.measures.measure import Measure
from sfumato.measures.privacy.class_size import SUM_K
from sfumato.measures.privacy.diversity import SUM_L
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, K
from sfumato.methods.lattice.search import Search
from sfumato.samples.samples import sample
from sfumato.study import ColumnSettings, Study, read

S_K, CM = SUM_K, CLASSIFICATION_METRIC
S_L = {"name": SUM_L.name, "direction": "max"}  # the paper maximises it (docs/readings.md, 1.6)


@dataclass(frozen=True)
class Row:
    """A row of the paper: the objectives, its figures, and those of our reference run of its algorithm."""

    sought: tuple[Measure | dict[str, str], ...]
    epsilon: tuple[float, ...] | None = None
    paper_rr: float | None = None
    paper_evaluations: int | None = None
    reference_rr: float | None = None
    reference_evaluations: int | None = None

    @property
    def objectives(self) -> tuple[Any, ...]:
        """The objectives as a run file names them."""
        return tuple(sought.name if isinstance(sought, Measure) else sought for sought in self.sought)

    @property
    def name(self) -> str:
        names = ", ".join(o if isinstance(o, str) else f"{o['name']} ({o['direction']})" for o in self.objectives)
        return names if self.epsilon is None else f"{names} with ε = {', '.join(f'{e:g}' for e in self.epsilon)}"


ROWS = (
    Row((K, GENERAL_LOSS), None, 0.94, 916, 0.940, 828),
    Row((K, DISTINCT_L, GENERAL_LOSS), None, 0.93, 946, 0.929, 841),
    Row((S_K, GENERAL_LOSS), None, 0.84, 1136, 0.877, 970),
    Row((S_K, S_L, GENERAL_LOSS), None, 0.83, 1197, 0.873, 983),
    Row((K, GENERAL_LOSS, CM), None, None, 1073, 0.782, 1079),
    Row((K, GENERAL_LOSS), (5, 100), 0.95, None, 0.934),
    Row((K, GENERAL_LOSS), (10, 1000), 0.98),
    Row((K, GENERAL_LOSS), (50, 10000), 1.0, None, 0.996),
    Row((K, DISTINCT_L, GENERAL_LOSS), (5, 2, 100), 0.92),
    Row((K, DISTINCT_L, GENERAL_LOSS), (10, 4, 1000), 0.92),
    Row((K, DISTINCT_L, GENERAL_LOSS), (50, 6, 10000), 0.88, None, 0.997),
)


@dataclass(frozen=True)
class Runs:
    """Means over the runs of one algorithm, and the spread of its representation ratio."""

    rr: float
    rr_deviation: float
    ce: float
    ce_mean: float
    evaluations: float


@dataclass(frozen=True)
class Reproduced:
    """A row with our runs of the paper's algorithm and of ours."""

    row: Row
    front: int
    space: int
    paper_setting: Runs
    default: Runs

    def as_dict(self) -> dict[str, object]:
        row = self.row
        return {
            "objectives": row.name,
            "paper": {"rr": row.paper_rr, "evaluations": row.paper_evaluations},
            "reference": {"rr": row.reference_rr, "evaluations": row.reference_evaluations},
            "front": self.front,
            "space": self.space,
            "paper_setting": asdict(self.paper_setting),
            "default": asdict(self.default),
        }


def reproduce_lattice(
    seeds: int = 20, rows: tuple[Row, ...] = ROWS, progress: Callable[[int, int], None] | None = None
) -> list[Reproduced]:
    """Run every row with the given number of seeds, in the paper's setting and in our default."""
    base = read(sample("adult-complete"))
    tables = {False: base.table(), True: _with_label(base).table()}
    reproduced = []
    for number, row in enumerate(rows):
        label = CM in row.sought
        study = (_with_label(base) if label else base).with_search(
            objectives=row.objectives, max_suppression=0.01, suppression="paper", epsilon=row.epsilon
        )
        ready = Search.prepare(study, tables[label])
        every = Memory(ready.evaluate, ready.problem.shape)
        every.ask(ready.problem.rollup.all_nodes)
        truth = every.all
        best = truth.values[front_of(truth)]
        epsilon = np.array(row.epsilon or (1.0,) * len(row.objectives), dtype=np.float64)

        paper, ours = (_runs(ready, every, best, epsilon, seeds, hints) for hints in (False, True))
        reproduced.append(Reproduced(row, len(best), ready.problem.space, paper, ours))
        if progress is not None:
            progress(number + 1, len(rows))
    return reproduced


def _runs(ready: Search, every: Memory, best: Floats, epsilon: Floats, seeds: int, hints: bool) -> Runs:
    figures = []
    for seed in range(seeds):
        memory = Memory(lambda nodes: every.all[every.number(nodes)], ready.problem.shape)
        archive = pbg_ea(memory, epsilon, np.random.default_rng(seed), hints=ready.hints() if hints else None)
        total, mean = convergence_error(archive.values, best)
        figures.append((representation_ratio(archive.values, best, epsilon), total, mean, memory.count))
    rr, ce, ce_mean, evaluations = np.array(figures, dtype=np.float64).T
    return Runs(*(float(v) for v in (rr.mean(), rr.std(), ce.mean(), ce_mean.mean(), evaluations.mean())))


def _with_label(study: Study) -> Study:
    """Return the study with salary-class as the label, for the classification metric: 8,960 nodes."""
    return study.replace(columns={"salary-class": ColumnSettings(role=Role.LABEL)})
