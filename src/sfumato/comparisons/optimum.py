"""The best node of a lattice for a k and an ℓ: least loss once every class that falls short is suppressed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.algorithms.dominance import comparable
from sfumato.algorithms.evaluation import Evaluated, Memory
from sfumato.algorithms.exact import Bound, exact, front_of
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.standard import GENERAL_LOSS
from sfumato.measures.suppression import suppress_planned
from sfumato.plans.levels import all_nodes
from sfumato.plans.recoding import at_level, at_levels
from sfumato.runtime.arrays import Codes, Floats
from sfumato.tables.frequency import FrequencyTable

SLACK = 1e-12  # two ways to the same sum may differ in the last digit


def classes_at(
    table: FrequencyTable, levels: Sequence[int], k: int, l: int, weights: Sequence[float] = ()
) -> ClassTable:
    """The classes of a node without those that have fewer than k records or l different sensitive values."""
    return suppress_planned(classify(table, at_levels(table, levels), weights), k, l)


def optimum(
    table: FrequencyTable, k: int, l: int, most: int, weights: Sequence[float], seed: int = 1
) -> tuple[int, ...] | None:
    """The levels with least loss where at most `most` records are suppressed; None where there are none.

    Generalizing only joins classes, so the records that fall short never become more, and the loss with nothing
    suppressed never less: both exclude nodes that are not looked at.
    """
    shape = tuple(domain.hierarchy.height + 1 for domain in table.domains)
    nodes = all_nodes(shape)

    def evaluate(some: Codes) -> Evaluated:
        found = [classes_at(table, node, k, l, weights) for node in some.tolist()]
        losses = comparable(np.array([[GENERAL_LOSS.value(classes)] for classes in found]))
        gone = np.array([[float(classes.suppressed_rows)] for classes in found])
        return Evaluated(some, losses, np.hstack([losses, gone]), np.maximum(gone[:, 0] - most, 0.0), gone)

    memory = Memory(evaluate, shape)
    known = comparable(whole_losses(table, nodes, weights) * (1 - SLACK))
    bounds = [Bound(GENERAL_LOSS.name, "rises", known), Bound("suppression", "falls", None, float(most))]
    exact(memory, bounds, np.random.default_rng(seed))
    best = front_of(memory.all)
    return tuple(memory.all.nodes[best[0]].tolist()) if len(best) else None


def whole_losses(table: FrequencyTable, nodes: Codes, weights: Sequence[float]) -> Floats:
    """The general loss of nodes with nothing suppressed."""
    total = np.zeros(len(nodes))
    for j, (domain, weight) in enumerate(zip(table.domains, weights, strict=True)):
        by_level = []
        for level in range(domain.hierarchy.height + 1):
            part = at_level(domain, level)
            covered = part.covers[part.groups[table.codes[j]]].astype(np.int64)
            by_level.append(float(((covered - 1) * table.counts).sum()) / max(domain.leaves - 1, 1))
        total += weight * np.array(by_level)[nodes[:, j]]
    return total
