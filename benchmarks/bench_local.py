"""Local recoding of Adult: loss and CPU seconds of each method, with interval labels and with ARX's hierarchies.

`python -m benchmarks.bench_local [intervals|nodes [K ...]]`
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from benchmarks.timing import show
from sfumato.methods.local.search import Solver, model_of
from sfumato.papers.cuts import paper_setting
from sfumato.study import Study

EFFORT = {"intervals": {5: 4, 10: 4, 20: 4, 50: 3, 100: 3}, "nodes": {2: 4, 5: 6, 10: 3, 20: 3, 50: 3}}  # rounds
HEADS = ["k", "box bound", "best boxes", "improved", "rounds"]


def nodes_of_arx(shared: Path) -> Study:
    """Nine quasi-identifiers of Adult along ARX's hierarchies."""
    folder = shared / "data" / "arx" / "adult"
    names = (folder / "adult.csv").read_text("utf-8").splitlines()[0].split(";")
    tree = {"header": False, "separator": ";"}
    columns = {
        name: {
            "role": "quasi_identifier",
            "constrained": True,
            "hierarchy": tree | {"path": str(folder / f"adult_hierarchy_{name}.csv")},
        }
        for name in names
    }
    return Study(data={"path": str(folder / "adult.csv"), "separator": ";"}, columns=columns)


def solver_of(kind: str) -> Solver:
    study = paper_setting(4) if kind == "intervals" else nodes_of_arx(Path(os.environ["SFUMATO_SHARED"]))
    _, labels, cells = model_of(study, study.table())
    return Solver(labels, cells, 0, 1)


def measured(solver: Solver, k: int, effort: int) -> list[str]:
    """A row: losses in percent, and in brackets the CPU seconds from scratch."""
    began = time.process_time()
    figures = [f"{solver.box_bound(k):.3%}"]
    spent = [time.process_time() - began]
    boxes = solver.by_boxes(k)
    figures.append(f"{boxes.loss:.3%}")
    spent.append(time.process_time() - began)
    figures.append(f"{solver.improved(boxes, k, effort, _quiet).loss:.3%}")
    spent.append(time.process_time() - began)
    return [str(k), *(f"{figure} ({cpu:.1f})" for figure, cpu in zip(figures, spent, strict=True)), str(effort)]


def main() -> None:
    for kind in sys.argv[1:2] or EFFORT:
        if kind == "nodes" and not os.environ.get("SFUMATO_SHARED"):
            print("local, nodes: skipped, SFUMATO_SHARED is not set\n")
            continue
        solver = solver_of(kind)
        few = Solver(solver.labels, type(solver.cells)(solver.cells.codes[:99], solver.cells.counts[:99]), 0, 1)
        few.improved(few.by_boxes(2), 2, 1, _quiet)  # compiled
        began = time.process_time()
        if kind == "intervals":
            orders = solver.candidates(list(EFFORT[kind]), 100, _quiet)
            runs = ", ".join(f"{k}: {solver.orders.value(k, orders[k]):.3%}" for k in EFFORT[kind])
            print(f"order and runs: {runs} ({time.process_time() - began:.1f} CPU s)", flush=True)
        rows = []
        for k in [int(word) for word in sys.argv[2:]] or EFFORT[kind]:
            rows.append(measured(solver, k, EFFORT[kind][k]))
            print(rows[-1], flush=True)
        show(f"Local recoding of Adult, {kind}; loss (CPU s)", HEADS, rows)


def _quiet(_: int, __: int) -> bool:
    return False


if __name__ == "__main__":
    main()
