"""Rules: kernels against the literal definitions, and the complete walk against every rule there is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.groups.files import VARIABLES, microfile

from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.methods.groups.attack.attackers import evolve
from sfumato.methods.groups.attack.rule_walk import best_confidence, minimal_rows, walk_rules
from sfumato.methods.groups.attack.rules import (
    Graded,
    RuleMeasure,
    Variable,
    grade,
    proposed,
    rule_memberships,
    sentence,
    variables_of,
)
from sfumato.methods.groups.microfile import Microfile, read_microfile
from sfumato.study.census_mapping import recipe
from sfumato.study.groups import AttackSettings

seeds = st.integers(0, 10_000)


def every_rule(terms: list[int], conditions: int | None = None) -> np.ndarray:  # type: ignore[type-arg]
    rules = [r for r in itertools.product(*(range(t + 1) for t in terms)) if sum(map(bool, r)) <= (conditions or 99)]
    return np.array([r for r in rules if any(r)], np.int32)


def literal_compatibility(rule: Sequence[int], record: Sequence[float]) -> float:
    """Equations 11 and 12 for one record, literally."""
    product = 1.0
    for k, variable, value in zip(rule, VARIABLES, record, strict=True):
        if k:
            product *= float(variable.terms[k - 1]([value])[0])
    return product if product >= 0.5 else 0.0


def minimal(rules: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """The rules that no other one covers, by comparing all pairs."""
    keep = []
    for number, rule in enumerate(rules):
        wider = ((rules == 0) | (rules == rule)).all(axis=1) & (rules != rule).any(axis=1)
        if not wider.any():
            keep.append(number)
    return rules[keep]


@given(seeds)
def test_df_and_rcf_are_the_literal_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    file = microfile(rng, 60)
    members = file.members["g"]
    rules = every_rule([2, 3, 1])
    rules = rules[rng.permutation(len(rules))[:8]]
    found = RuleMeasure(grade(file, VARIABLES), members).quality(rules)
    table = file.table()
    for i, rule in enumerate(rules.tolist()):
        grades = np.array([literal_compatibility(rule, record) for record in table])
        inside, outside = grades[members].sum(), grades[~members].sum()
        df = inside / members.sum() - grades.sum() / len(grades)
        rcf = (np.inf if inside else 0.0) if outside == 0 else inside / outside
        assert found.df[i] == pytest.approx(df, abs=1e-12)
        assert found.rcf[i] == pytest.approx(rcf)
        assert found.support[i] == pytest.approx(inside / members.sum())


@given(seeds, st.sampled_from([0.3, 0.75, 2.0]), st.sampled_from([0.0, 0.02, 0.1]))
def test_the_walk_finds_every_passing_rule(seed: int, gamma: float, kappa: float) -> None:
    rng = np.random.default_rng(seed)
    file = microfile(rng, 80)
    graded, members = grade(file, VARIABLES), file.members["g"]
    rules = every_rule([2, 3, 1])
    passing = rules[RuleMeasure(graded, members).quality(rules).passing(gamma, kappa, 3)]
    walked = walk_rules(graded, members, gamma, kappa, 3)
    assert {tuple(r) for r in walked.rules.tolist()} == {tuple(r) for r in passing.tolist()}
    small = minimal(passing)
    rows = minimal_rows(walked.rules, graded.terms)
    assert {tuple(r) for r in walked.rules[rows].tolist()} == {tuple(r) for r in small.tolist()}
    pruned = walk_rules(graded, members, gamma, kappa, 3, prune=True)
    kept = pruned.rules[minimal_rows(pruned.rules, graded.terms)]
    assert {tuple(r) for r in kept.tolist()} == {tuple(r) for r in small.tolist()}
    for found in (small, passing):  # pruning to minimal rules leaves every membership as it is
        assert np.array_equal(_grades(graded, found), _grades(graded, walked.rules))


def _grades(graded: Graded, rules: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return rule_memberships(np.ascontiguousarray(rules, np.int32), graded)


@given(seeds)
def test_best_confidence_is_that_of_the_rules(seed: int) -> None:
    rng = np.random.default_rng(seed)
    file = microfile(rng, 50)
    graded, members = grade(file, VARIABLES), file.members["g"]
    kappas = np.array([0.0, 0.05, 0.2])
    best = best_confidence(graded, graded.counts(members), graded.counts(~members), kappas, 1)
    for level, kappa in enumerate(kappas):
        walked = walk_rules(graded, members, 0.0, float(kappa), 1)
        expected = np.zeros(graded.tuples)
        for rule, rcf in zip(walked.rules, walked.quality.rcf, strict=True):
            covered = _grades(graded, rule[None, :]) > 0
            expected[covered] = np.maximum(expected[covered], rcf)
        assert np.array_equal(best[level], expected)


def test_the_same_seed_gives_the_same_rules() -> None:
    file = microfile(np.random.default_rng(1), 200)
    graded = grade(file, VARIABLES)
    measure = RuleMeasure(graded, file.members["g"])
    settings = AttackSettings(population=20, replaced=8, generations=5, runs=2)
    one, two = (
        evolve(settings, graded.terms, lambda rules: measure.quality(rules).fitness, np.random.default_rng(7))
        for _ in "ab"
    )
    assert np.array_equal(one, two)
    assert len(np.unique(one, axis=0)) == len(one)
    assert (one >= 0).all()
    assert (one <= graded.terms).all()


def test_sentences_and_proposals() -> None:
    assert sentence([1, 0, 1], VARIABLES) == "low a, about five"
    names = [term.name for term in proposed("income", np.arange(0.0, 1000.0), 4)]
    assert len(names) == 4
    assert names[0].startswith("income up to")
    terms = proposed("x", np.arange(0.0, 1000.0), 4)
    covered = np.max([term(np.arange(0.0, 1000.0)) for term in terms], axis=0)
    assert covered.min() >= 0.5  # every value is some word's


@pytest.fixture(scope="module")
def hawaii(shared: Path) -> dict[str, tuple[Microfile, tuple[Variable, ...]]]:
    found = {}
    for name in ("acs", "acs_paper"):
        mapping = recipe(name)
        source = open_source(DataSettings(path=str(shared / "data" / "acs-pums" / "ss15phi.csv.gz")))
        with open_engine() as engine:
            found[name] = (
                read_microfile(engine, source, mapping, name),
                variables_of(mapping.attributes, {}.__getitem__),
            )
    return found


@pytest.mark.parametrize(
    ("ranges", "best"),
    [("acs_paper", 0.7782720495), pytest.param("acs", 0.5475702904, marks=pytest.mark.published)],
)
def test_hawaii_is_searched_completely(
    hawaii: dict[str, tuple[Microfile, tuple[Variable, ...]]], ranges: str, best: float
) -> None:
    file, variables = hawaii[ranges]
    graded, members = grade(file, variables), file.members["military"]
    walked = walk_rules(graded, members, 0.75, 0.001, 5)
    fitness = walked.quality.fitness[np.isfinite(walked.quality.rcf)]
    assert fitness.max() == pytest.approx(best, abs=5e-11)
    rules = every_rule([len(v.terms) for v in variables], 3)
    passing = rules[RuleMeasure(graded, members).quality(rules).passing(0.75, 0.001, 5)]
    short = walked.rules[(walked.rules > 0).sum(axis=1) <= 3]
    assert {tuple(r) for r in short.tolist()} == {tuple(r) for r in passing.tolist()}
    small = walked.rules[minimal_rows(walked.rules, graded.terms)]
    assert np.array_equal(_grades(graded, small), _grades(graded, walked.rules))


def test_golden_rules_of_hawaii(hawaii: dict[str, tuple[Microfile, tuple[Variable, ...]]]) -> None:
    cases = [
        ("acs_paper", [1, 0, 1, 0, 0, 0, 2, 3, 1, 1, 2, 0], (0.0324392, 2.54026, 0.0453969)),
        ("acs", [0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0], (0.348658, 0.376625, 0.480949)),
    ]
    for ranges, rule, figures in cases:
        file, variables = hawaii[ranges]
        found = RuleMeasure(grade(file, variables), file.members["military"]).quality(np.array([rule], np.int32))
        assert (found.df[0], found.rcf[0], found.support[0]) == pytest.approx(figures, rel=5e-6)
