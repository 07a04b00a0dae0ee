"""Harmless and missing sensitive values: every class criterion against its definition in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.measures.classes import EXEMPT, ClassTable, classify, diversity, sensitive_masks
from sfumato.measures.histograms import Options, histograms_of
from sfumato.measures.measure import Goal
from sfumato.measures.registry import measure
from sfumato.methods.lattice.problem import LatticeProblem
from sfumato.plans.recodings import LevelPlan, at_levels
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes

HARMLESS = ("none", "n.a.")
ILL = ("", "cold", "flu", "gout", "n.a.", "none")
TREE = Hierarchy.from_paths("q", [(str(v), str(v // 2), str(v // 4), "*") for v in range(8)])
INFINITE = math.inf


def table_of(rows: Sequence[tuple[int, int, str]], harmless: Sequence[str] = HARMLESS) -> FrequencyTable:
    """Two quasi-identifiers with the same tree, and an illness: some values are harmless, the empty one is missing."""
    domains = []
    for column in range(2):
        counts = Counter(str(row[column]) for row in rows)
        domains.append(domain_of("ab"[column], counts, TREE, missing="category"))
    ill = domain_of("ill", Counter(row[2] for row in rows), None, missing="category")
    codes = tuple(code for code, label in enumerate(ill.labels) if label in harmless)
    ill = replace(ill, harmless=codes)
    records = np.array([[domains[j].labels.index(str(row[j])) for row in rows] for j in range(2)], dtype=np.int32)
    secrets = np.array([ill.labels.index(row[2]) for row in rows], dtype=np.int32)
    return from_codes(domains, records, {"ill": (ill, secrets)})


def both(cells: Sequence[str]) -> list[list[str]]:
    """All cells, and those that are not missing if there are any."""
    known = [cell for cell in cells if cell]
    return [list(cells), known] if known else [list(cells)]


def harmful(cells: Sequence[str]) -> list[str]:
    return sorted({cell for cell in cells if cell and cell not in HARMLESS})


def shares(cells: Sequence[str]) -> dict[str, float]:
    return {cell: count / len(cells) for cell, count in Counter(cells).items()}


def distinct(cells: Sequence[str], _: Sequence[str]) -> float:
    if not harmful(cells):
        return EXEMPT
    return len(harmful(cells)) + any(cell in HARMLESS for cell in cells)


def alpha(cells: Sequence[str], _: Sequence[str]) -> float:
    return max((shares(some).get(value, 0.0) for some in both(cells) for value in harmful(cells)), default=0.0)


def frequency(cells: Sequence[str], everyone: Sequence[str]) -> float:
    return 1 / alpha(cells, everyone) if alpha(cells, everyone) else INFINITE


def beta(cells: Sequence[str], everyone: Sequence[str]) -> float:
    most = 0.0
    for some, rest in zip(both(cells), both(everyone), strict=False):
        for value in harmful(cells):
            most = max(most, shares(some)[value] / shares(rest)[value] - 1)
    return most


def delta(cells: Sequence[str], everyone: Sequence[str]) -> float:
    if not harmful(cells):
        return 0.0
    if harmful(cells) != harmful(everyone):
        return INFINITE
    most = 0.0
    for some, rest in zip(both(cells), both(everyone), strict=False):
        for value in harmful(cells):
            most = max(most, abs(math.log(shares(some)[value] / shares(rest)[value])))
    return most


def entropy(cells: Sequence[str], _: Sequence[str]) -> float:
    return min(math.exp(-sum(s * math.log(s) for s in shares(some).values())) for some in both(cells))


def recursive(cells: Sequence[str], _: Sequence[str]) -> float:
    found = []
    for some in both(cells):
        counts = sorted(Counter(some).values(), reverse=True)
        found.append(max((l + 1 for l in range(len(counts)) if counts[0] < 3 * sum(counts[l:])), default=0))
    return min(found)


def closeness(cells: Sequence[str], everyone: Sequence[str]) -> float:
    found = []
    for some, rest in zip(both(cells), both(everyone), strict=False):
        one, two = shares(some), shares(rest)
        found.append(sum(abs(one.get(v, 0.0) - two[v]) for v in two) / 2)
    return max(found)


PLAIN: dict[str, tuple[Callable[[Sequence[str], Sequence[str]], float], Callable[..., float]]] = {
    "distinct_l": (distinct, min),
    "frequency_l": (frequency, min),
    "alpha_k": (alpha, max),
    "beta_likeness": (beta, max),
    "delta_disclosure": (delta, max),
    "entropy_l": (entropy, min),
    "recursive_l": (recursive, min),
    "t_closeness": (closeness, max),
}
rows_of = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from(ILL)), min_size=2, max_size=24)


def crowds(rows: Sequence[tuple[int, int, str]], levels: tuple[int, int]) -> list[list[str]]:
    found: dict[tuple[int, int], list[str]] = {}
    for one, two, ill in rows:
        key = tuple(8 if level == 3 else value >> level for value, level in zip((one, two), levels, strict=True))
        found.setdefault(key, []).append(ill)  # type: ignore[arg-type]
    return list(found.values())


@given(rows_of, st.tuples(st.integers(0, 3), st.integers(0, 3)))
@settings(max_examples=150, deadline=None)
def test_every_criterion_is_as_defined(rows: list[tuple[int, int, str]], levels: tuple[int, int]) -> None:
    table = table_of(rows)
    classes = classify(table, at_levels(table, levels))
    everyone = [row[2] for row in rows]
    for name, (plain, worst) in PLAIN.items():
        expected = worst(plain(cells, everyone) for cells in crowds(rows, levels))
        assert measure(name).value(classes) == pytest.approx(expected, abs=1e-9), name


@given(rows_of, st.tuples(st.integers(0, 3), st.integers(0, 3)))
@settings(max_examples=60, deadline=None)
def test_oracles_agree(rows: list[tuple[int, int, str]], levels: tuple[int, int]) -> None:
    from sfumato.measures.oracle import Records

    table = table_of(rows)
    classes = classify(table, at_levels(table, levels))
    records = Records(table, classes.recoding, np.ones(table.rows, dtype=np.bool_))
    for name in [*PLAIN, "enhanced_beta", "recursive_c", "weighted_l"]:
        expected = records.each(measure(name), "ill")
        found = measure(name).property(classes, "ill")
        assert np.sort(found.records()) == pytest.approx(np.sort(expected), abs=1e-9), name


@given(rows_of, st.tuples(st.integers(0, 3), st.integers(0, 3)))
@settings(max_examples=60, deadline=None)
def test_bits_and_histograms_count_the_same(rows: list[tuple[int, int, str]], levels: tuple[int, int]) -> None:
    table = table_of(rows)
    classes = classify(table, at_levels(table, levels))
    masks, words = sensitive_masks(table)
    held = np.zeros((len(classes.rows), masks.shape[1]), dtype=np.uint64)
    np.bitwise_or.at(held, classes.index.astype(np.int64), masks)
    expected = measure("distinct_l").property(classes, "ill").values[: len(classes.rows)]
    found = [diversity(mask, words) for mask in held]
    assert found == expected.tolist()
    histogram = histograms_of(table, [LevelPlan({"a": levels[0], "b": levels[1]})]).of(0)
    counted = Counter(zip(classes.rows.tolist(), found, strict=True))
    cells = zip(histogram.size.tolist(), histogram.diversity.tolist(), histogram.records.tolist(), strict=True)
    assert {(size, held): n for size, held, n in cells} == {each: each[0] * n for each, n in counted.items()}
    for option in zip(*(part.tolist() for part in _parts(histogram.options(len(rows)))), strict=True):
        k, l, gone, below, fewer = option
        left = classes.with_suppressed((classes.rows < below) | (expected < fewer))
        assert (k, gone) == (measure("k").value(left), left.suppressed_rows)
        assert l == measure("distinct_l").value(left)


def _parts(options: Options) -> tuple[Any, ...]:
    return options.k, options.l, options.suppressed, options.suppress_below, options.diversity_below


@given(rows_of, st.integers(0, 6), st.sampled_from(["distinct_l", "frequency_l", "alpha_k", "delta_disclosure"]))
@settings(max_examples=40, deadline=None)
def test_the_walk_and_class_tables_agree_and_bounds_hold(
    rows: list[tuple[int, int, str]], budget: int, name: str
) -> None:
    """Every release of every node by both ways; a bound that is claimed is no worse than any finer release."""
    table = table_of(rows)
    chosen = measure(name)
    goals = [Goal(measure("k"), "max"), Goal(chosen, chosen.direction), Goal(measure("general_loss"), "min")]
    problem = LatticeProblem(table, goals, min(budget, len(rows) - 1), threads=1)
    nodes = np.array([(a, b) for a in range(4) for b in range(4)], dtype=np.int32)
    walked, plain = problem.figures(nodes), problem._plain(nodes)
    assert walked.start.tolist() == plain.start.tolist()
    for node in range(len(nodes)):
        one, two = (
            sorted(map(tuple, np.round(f.values[f.start[node] : f.start[node + 1]], 9).tolist()))
            for f in (walked, plain)
        )
        assert one == two
    for place, goal in enumerate(problem.goals):
        if goal.moves is None:
            continue
        for a in range(len(nodes)):
            for b in range(len(nodes)):
                if (nodes[a] >= nodes[b]).all() and goal.moves == "falls":  # minimised: a coarser node's bound is lower
                    best = (goal.sign * plain.values[plain.start[b] : plain.start[b + 1], place]).min(initial=np.inf)
                    assert goal.sign * plain.bounds[a, place] <= best + 1e-9


def test_an_exempt_class_may_lower_what_a_budget_reaches() -> None:
    """Why ℓ has no bound here: apart, the second class can be suppressed; joined, its records have ℓ 2."""
    rows = [(0, 0, "none")] * 5 + [(1, 0, "flu")]
    fine = classify(table_of(rows), at_levels(table_of(rows), (0, 0)))
    gone = fine.with_suppressed(fine.rows == 1)
    joined = classify(table_of(rows), at_levels(table_of(rows), (1, 0)))
    assert (measure("distinct_l").value(gone), measure("distinct_l").value(joined)) == (EXEMPT, 2)
    problem = LatticeProblem(table_of(rows), [Goal(measure("distinct_l"), "max")], 1)
    assert problem.goals[0].moves is None
    assert LatticeProblem(table_of(rows), [Goal(measure("distinct_l"), "max")], 0).goals[0].moves is not None


def test_plain_tables_keep_their_bounds() -> None:
    rows = [(0, 0, "flu"), (1, 0, "cold"), (2, 2, "flu")]
    table = table_of(rows, harmless=())
    assert not table.special
    assert LatticeProblem(table, [Goal(measure("distinct_l"), "max")], 1).goals[0].moves is not None


def test_a_class_table() -> None:
    classes: ClassTable = classify(table_of([(0, 0, "flu"), (0, 0, "none"), (0, 0, "n.a."), (0, 0, "")]))
    assert measure("distinct_l").value(classes) == 2  # flu, and all harmless ones together
    assert measure("alpha_k").value(classes) == pytest.approx(1 / 3)  # among the three whose value is known
