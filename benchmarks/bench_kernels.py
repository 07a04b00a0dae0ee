"""Kernel against oracle: lattice nodes per CPU second from the tuples, k and general loss with 1 % suppression."""

from __future__ import annotations

import numpy as np

from benchmarks.synthetic import census_table
from benchmarks.timing import cpu_seconds, show
from sfumato.measures import kernels
from sfumato.measures.classes import flattened, folded, margins_of
from sfumato.measures.oracle import node_figures
from sfumato.measures.suppression import budget
from sfumato.plans.recoding import at_levels
from sfumato.tables.frequency import FrequencyTable


def main() -> None:
    rows = []
    for tuples, nodes in ((20_000, 64), (1_000_000, 4)):
        table = census_table(tuples)
        kernel, oracle = _rates(table, nodes)
        rows.append([f"{table.tuples:,}", f"{kernel:,.0f}", f"{oracle:,.1f}", f"{kernel / oracle:.1f}×"])
    show(
        "k and general loss of a node, from the tuples",
        ["tuples", "kernel, nodes/CPU s", "numpy oracle", "ratio"],
        rows,
    )


def _rates(table: FrequencyTable, nodes: int) -> tuple[float, float]:
    rng = np.random.default_rng(7)
    drawn = [[int(rng.integers(0, d.hierarchy.height + 1)) for d in table.domains] for _ in range(nodes)]
    recodings = [at_levels(table, node) for node in drawn]
    leaves = [max(domain.leaves - 1, 1) for domain in table.domains]
    losses = [
        [(part.covers[part.groups] - 1) / leaf for part, leaf in zip(plan, leaves, strict=True)] for plan in recodings
    ]
    parts = [flattened(plan) for plan in recodings]
    groups, radix = np.stack([p[0] for p in parts]), np.stack([p[2] for p in parts])
    cells = np.stack([np.concatenate(columns) for columns in losses])
    most, full = budget(0.01, table.rows), float(len(leaves))

    packed, margins = folded(table.packed), margins_of(table)

    def kernel() -> object:
        return kernels.candidate_figures(
            packed, table.codes, table.counts, margins, groups, parts[0][1], radix, cells, most, full
        )

    def oracle() -> object:
        return [
            node_figures(table.codes, table.counts, plan, loss, most, full)
            for plan, loss in zip(recodings, losses, strict=True)
        ]

    found, expected = kernel(), oracle()
    for i, (k, gone, loss) in enumerate(expected):  # type: ignore[arg-type]
        assert (found[0][i], found[1][i]) == (k, gone)  # type: ignore[index]
        assert abs(found[2][i] - loss) < 1e-6 * max(loss, 1.0)  # type: ignore[index]
    return nodes / cpu_seconds(kernel)[0], nodes / cpu_seconds(oracle)[0]
