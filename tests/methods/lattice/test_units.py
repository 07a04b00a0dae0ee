"""Lattices in units: the fast ways against class tables, and whole fronts against plain loops over records."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measures.test_units import unit_tables

from sfumato.measures.measure import Goal
from sfumato.measures.registry import measure
from sfumato.methods.lattice.problem import Figures, LatticeProblem
from sfumato.tables.frequency import FrequencyTable

OBJECTIVE = (
    (("k", None), ("general_loss", None)),
    (("general_loss", None), ("k", 2.0)),
    (("k", None), ("distinct_l", None), ("general_loss", None)),
    (("general_loss", None), ("frequency_l", 1.5), ("k", 2.0)),
    (("weighted_k", None), ("general_loss", None)),
    (("alpha_k", None), ("general_loss", None)),
    (("precision", None), ("prosecutor_risk", 0.5)),
)


def problem(table: FrequencyTable, names: object, budget: int) -> LatticeProblem:
    goals = [Goal(measure(name), measure(name).direction, limit) for name, limit in names]  # type: ignore[attr-defined]
    sought = sum(goal.limit is None for goal in goals)
    return LatticeProblem(table, goals, budget, objective_count=sought, threads=1)


def releases(figures: Figures, persons: int) -> list[list[tuple[float, ...]]]:
    """The releases of each node that keep a record: of an empty one nothing is measured."""
    found = []
    for i in range(len(figures.start) - 1):
        part = slice(figures.start[i], figures.start[i + 1])
        rows = zip(
            figures.values[part].round(9).tolist(),
            figures.losses[part].round(9).tolist(),
            figures.suppressed[part].tolist(),
            figures.suppressed_rows[part].tolist(),
            strict=True,
        )
        found.append(sorted((*values, *rest) for values, *rest in rows if rest[1] < persons))
    return found


@pytest.mark.parametrize("names", OBJECTIVE, ids=lambda names: "-".join(name for name, _ in names))
@given(data=st.data())
def test_fast_ways_give_what_class_tables_give(names: object, data: st.DataObject) -> None:
    table = data.draw(unit_tables())
    ready = problem(table, names, data.draw(st.integers(0, table.persons - 1)))
    nodes = np.array(list(product(*(range(size) for size in ready.shape))), dtype=np.int32)
    fast, plain = ready.figures(nodes), ready._plain(nodes)
    assert releases(fast, table.persons) == releases(plain, table.persons)
    assert fast.failing.tolist() == plain.failing.tolist()


@pytest.mark.parametrize("names", OBJECTIVE, ids=lambda names: "-".join(name for name, _ in names))
@given(data=st.data())
def test_no_release_of_a_coarser_node_beats_a_bound(names: object, data: st.DataObject) -> None:
    table = data.draw(unit_tables())
    budget = data.draw(st.integers(0, table.persons - 1))
    ready = problem(table, names, budget)
    nodes = np.array(list(product(*(range(size) for size in ready.shape))), dtype=np.int32)
    figures = ready.figures(nodes)
    met = (ready.violation(figures) == 0) & (figures.suppressed < table.persons)
    for position, goal in enumerate(ready.goals):
        if goal.moves is None:
            continue
        for i, j in product(range(len(nodes)), repeat=2):
            # A bound that falls (minimised) at coarser nodes bounds all finer ones, one that rises all coarser ones.
            low, high = (nodes[j], nodes[i]) if goal.moves == "falls" else (nodes[i], nodes[j])
            if np.all(low <= high):
                here = (figures.node == j) & met
                assert np.all(
                    goal.sign * figures.values[here, position] >= goal.sign * figures.bounds[i, position] - 1e-9
                )


def plain_front(table: FrequencyTable, budget: int) -> set[tuple[int, float]]:
    """Every (k, loss) that no other release beats, by loops over the records and sets of units."""
    tuple_of = np.repeat(table.units.tuple_of, table.units.rows)  # type: ignore[union-attr]
    unit_of = np.repeat(table.units.unit, table.units.rows)  # type: ignore[union-attr]
    found = []
    for node in product(*(range(domain.hierarchy.height + 1) for domain in table.domains)):
        labels, cost = [], np.zeros(len(tuple_of))
        for domain, codes, level in zip(table.domains, table.codes, node, strict=True):
            group = domain.hierarchy.maps[level][codes[tuple_of]]
            leaves = domain.hierarchy.sizes[level][group]
            cost += (leaves - 1) / max(len(domain.hierarchy.leaves) - 1, 1)
            labels.append(group.tolist())
        keys = list(zip(*labels, strict=True))
        members = {key: {int(u) for k, u in zip(keys, unit_of, strict=True) if k == key} for key in set(keys)}
        size = [len(members[key]) for key in keys]
        for least in sorted(set(size)):
            gone = {int(u) for u, n in zip(unit_of, size, strict=True) if n < least}
            if len(gone) <= budget:
                loss = sum(c if n >= least else len(table.domains) for c, n in zip(cost, size, strict=True))
                found.append((least, loss))
    return {
        (k, round(loss, 9))
        for k, loss in found
        if not any((a > k and b <= loss + 1e-9) or (a >= k and b < loss - 1e-9) for a, b in found)
    }


@given(data=st.data())
def test_the_front_in_units_is_that_of_plain_loops(data: st.DataObject) -> None:
    table = data.draw(unit_tables())
    budget = data.draw(st.integers(0, table.persons - 1))
    ready = problem(table, OBJECTIVE[0], budget)
    nodes = np.array(list(product(*(range(size) for size in ready.shape))), dtype=np.int32)
    figures = ready.figures(nodes)
    pairs = list(zip(figures.values[:, 0].tolist(), figures.losses.tolist(), strict=True))
    best = {
        (int(k), round(loss, 9))
        for k, loss in pairs
        if not any((a > k and b <= loss + 1e-9) or (a >= k and b < loss - 1e-9) for a, b in pairs)
    }
    assert best == plain_front(table, budget)
