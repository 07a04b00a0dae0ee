"""Local recoding of Adult: loss and CPU seconds of each method, and of the bounds below them."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.timing import show
from sfumato.reproduce.cuts import paper_setting
from sfumato.systems.local.floor import floor_of
from sfumato.systems.local.search import model_of
from sfumato.systems.local.solve import Solver

KS = (5, 10, 20, 50, 100)


def main() -> None:
    study = paper_setting(4)
    _, labels, cells = model_of(study, study.table())
    Solver(labels, cells, 0, 1).solve(5, ((0, 1, 2, 3, 4, 5, 6, 7), (0,) * 8), boxes=True, effort=1, tell=_quiet)
    solver = Solver(labels, cells, 0, 1)
    began = time.process_time()
    orders = solver.candidates(KS, 100, _quiet)
    runs = {k: solver.orders.value(k, orders[k]) for k in KS}
    searching = time.process_time() - began
    rows = []
    for k in KS:
        began = time.process_time()
        floor = floor_of(k, np.minimum(solver.bound(k), 1.0), solver.cells.counts)
        bounding = time.process_time() - began
        boxes = solver.by_boxes(k)
        boxing = time.process_time() - began - bounding
        better = solver.improved(boxes, k, 3, _quiet)
        improving = time.process_time() - began - bounding - boxing
        rows.append(
            [
                str(k),
                f"{runs[k]:.3%}",
                f"{boxes.loss:.3%} ({boxing:.1f})",
                f"{better.loss:.3%} ({improving:.1f})",
                f"{floor.loss:.3%} ({bounding:.1f})",
            ]
        )
    heads = ["k", "order and runs", "best boxes (CPU s)", "three rounds of improvement (CPU s)", "box bound (CPU s)"]
    show(f"Local recoding of Adult, interval labels; {searching:.1f} CPU s for all orders and runs", heads, rows)


def _quiet(_: int, __: int) -> bool:
    return False


if __name__ == "__main__":
    main()
