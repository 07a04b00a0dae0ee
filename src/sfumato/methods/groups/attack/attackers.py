"""The attackers with rules and trees: each learns the group on one file and grades the records of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.formats import without_infinities
from sfumato.errors import DataError, StoppedError, UnreachableError
from sfumato.methods.groups.attack.learners import (
    Grader,
    TableModel,
    average_precision,
    classifiers_for,
    grader,
    learn_table,
)
from sfumato.methods.groups.attack.rule_walk import Stop, best_confidence, minimal_rows, walk_rules
from sfumato.methods.groups.attack.rules import (
    ALPHA,
    Graded,
    Quality,
    RuleMeasure,
    Variable,
    grade,
    rule_memberships,
    sentence,
)
from sfumato.methods.groups.microfile import Microfile
from sfumato.study.groups import AttackSettings

PAPER_GAMMA, PAPER_KAPPA = 0.75, 0.001
SAMPLE = 400_000  # records that suffice to choose γ and κ
GAMMAS = np.array([0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0])
KAPPAS = np.array([0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08])
TREES, STEP = 100, 50


@dataclass(frozen=True)
class RuleModel:
    """A rule base. The grade of a record is its greatest compatibility with any rule."""

    attacker: str
    variables: tuple[Variable, ...]
    rules: Codes
    quality: Quality
    threshold: float = ALPHA
    about: dict[str, Any] = field(default_factory=dict)
    everything: bool = False
    graded: bool = False

    def memberships(self, microfile: Microfile) -> Floats:
        graded = grade(microfile, self.variables)
        grades = rule_memberships(self.rules, graded.codes, graded.grades, graded.start, ALPHA)
        return grades[graded.tuple_of]

    def listed(self) -> list[dict[str, object]]:
        """Return the rules for print, the best first. An infinite RCF is null and named."""
        order = np.lexsort((-self.quality.df, -self.quality.fitness))
        figures = {name: getattr(self.quality, name) for name in ("df", "rcf", "support")}
        return [
            without_infinities(
                {"rule": self.rules[i].tolist(), "words": sentence(self.rules[i].tolist(), self.variables)}
                | {name: float(values[i]) for name, values in figures.items()}
            )
            for i in order.tolist()
        ]


Model = RuleModel | TableModel


def check_group(auxiliary: Microfile, group: str) -> Flags:
    """Return the members of a group, or raise unless there are members and other records."""
    members = auxiliary.members[group]
    count = int(members.sum())
    if count == 0 or count == len(members):
        everyone = "no record of" if count == 0 else "every record of"
        raise DataError(
            f"{everyone} {auxiliary.name} in range is in the group {group}",
            expected="some members, and some others",
            remedy="check the conditions under [groups.vital] and the ranges",
        )
    return members


def learn(
    attacker: str,
    auxiliary: Microfile,
    group: str,
    variables: Sequence[Variable],
    settings: AttackSettings,
    seed: int,
    stop: Stop | None = None,
) -> Model:
    """Learn a group with a named attacker. If asked to stop, raise StoppedError: half a model is of no use."""
    members = check_group(auxiliary, group)
    if attacker == "boosted":
        return learn_boosted(auxiliary, members, settings, seed, stop)
    if attacker not in ("exact", "evolutionary"):
        return learn_table(attacker, auxiliary, members, seed, stop)
    learned = learn_exact if attacker == "exact" else learn_evolutionary
    return learned(grade(auxiliary, variables), members, tuple(variables), settings, seed, stop)


def learn_exact(
    graded: Graded,
    members: Flags,
    variables: tuple[Variable, ...],
    settings: AttackSettings,
    seed: int,
    stop: Stop | None = None,
) -> RuleModel:
    """Learn all minimal rules by a complete walk. Cross-validation chooses γ and κ unless both are given."""
    gamma, kappa, about = choose_limits(graded, members, settings, seed, stop)
    walked = walk_rules(graded, members, gamma, kappa, settings.least_records, prune=True, stop=stop)
    rows = minimal_rows(walked.rules, graded.terms)
    if not len(rows):
        raise no_rule(graded, members, gamma, kappa, settings, variables)
    q = walked.quality
    quality = Quality(q.inside[rows], q.outside[rows], q.members, q.records)
    about = about | {"gamma": gamma, "kappa": kappa, "visited": walked.visited, "complete": walked.complete}
    return RuleModel("exact", variables, walked.rules[rows], quality, about=about)


def learn_evolutionary(
    graded: Graded,
    members: Flags,
    variables: tuple[Variable, ...],
    settings: AttackSettings,
    seed: int,
    stop: Stop | None = None,
) -> RuleModel:
    """Learn rules by the paper's search, with its γ and κ unless others are given."""
    measure, rng = RuleMeasure(graded, members), np.random.default_rng(seed)
    rules = evolve(settings, graded.terms, lambda some: measure.quality(some).fitness, rng, stop)
    gamma = PAPER_GAMMA if settings.gamma is None else settings.gamma
    kappa = PAPER_KAPPA if settings.kappa is None else settings.kappa
    rules = rules[measure.quality(rules).passing(gamma, kappa, settings.least_records)]
    rules = rules[minimal_rows(rules, graded.terms)]
    if not len(rules):
        raise no_rule(graded, members, gamma, kappa, settings, variables)
    about = {"gamma": gamma, "kappa": kappa, "evaluations": measure.evaluations, "seed": seed}
    return RuleModel("evolutionary", variables, rules, measure.quality(rules), about=about)


def evolve(
    settings: AttackSettings,
    terms: Counts64,
    fitness: Callable[[Codes], Floats],
    rng: np.random.Generator,
    stop: Stop | None = None,
) -> Codes:
    """Return every distinct rule of every generation of every run.

    The search is a Michigan approach: one individual is one rule, and the population is the rule base. Each of the λ
    pairs has one child (docs/readings.md, 4.7).
    """
    seen: dict[bytes, Codes] = {}
    width, replaced = len(terms), min(settings.replaced, settings.population)
    for _ in range(settings.runs):
        rules = rng.integers(0, terms + 1, size=(settings.population, width)).astype(np.int32)
        worth = fitness(rules)
        # the next generation overwrites the population
        seen.update((rule.tobytes(), rule.copy()) for rule in rules)
        for _ in range(settings.generations):
            if stop is not None and stop():
                raise StoppedError("interrupted while learning rules; nothing was saved")
            drawn = rng.integers(0, settings.population, size=(2 * replaced, settings.tournament))
            parents = rules[drawn[np.arange(len(drawn)), np.argmax(worth[drawn], axis=1)]]
            first = rng.random((replaced, width)) < 0.5
            children = np.where(first, parents[:replaced], parents[replaced:])
            reset = rng.random(children.shape) < settings.mutation
            fresh = rng.integers(0, terms + 1, size=children.shape)
            children = np.where(reset, fresh, children).astype(np.int32)
            worst = np.argsort(worth, kind="stable")[:replaced]
            rules[worst], worth[worst] = children, fitness(children)
            seen.update((rule.tobytes(), rule.copy()) for rule in children)
    return np.array(list(seen.values()), np.int32).reshape(-1, width)


def learn_boosted(
    auxiliary: Microfile, members: Flags, settings: AttackSettings, seed: int, stop: Stop | None = None
) -> TableModel:
    """Learn gradient-boosted trees on the numbers.

    The threshold of a cross-validation flags as many records of the auxiliary file as it has members.
    """
    columns, classifiers = auxiliary.table(), classifiers_for("boosted", "another attacker")

    def fitted(chosen: Flags) -> Grader:
        trees = classifiers.HistGradientBoostingClassifier(learning_rate=0.08, random_state=seed, warm_start=True)
        mine, theirs = columns[chosen], members[chosen]
        for count in range(STEP, TREES + 1, STEP):  # training in steps gives the same trees as training at once
            if stop is not None and stop():
                raise StoppedError("interrupted while fitting trees; nothing was saved")
            trees.set_params(max_iter=count).fit(mine, theirs)
            if trees.n_iter_ < count:
                break
        return grader(trees)

    folds = min(settings.folds, 3)
    fold = folds_of(members, folds, seed)
    held = np.zeros(len(members))
    # with more threads than free cores the threads wait for each other, and training takes ten times as long
    with threadpool_limits(1):
        for one in range(folds):
            held[fold == one] = fitted(fold != one)(columns[fold == one])
        trees = fitted(np.ones(len(members), np.bool_))
    count = int(members.sum())
    threshold = float(np.partition(held, len(held) - count)[len(held) - count])
    about = {"average_precision": average_precision(members, held), "seed": seed, "folds": folds}
    return TableModel("boosted", threshold, trees, auxiliary.attributes, about=about)


def folds_of(members: Flags, folds: int, seed: int) -> Codes:
    """Return a fold for each record, with members and others evenly distributed."""
    rng = np.random.default_rng(seed)
    fold = np.empty(len(members), np.int32)
    for kind in (members, ~members):
        fold[kind] = rng.permutation(int(kind.sum())) % folds
    return fold


def choose_limits(
    graded: Graded, members: Flags, settings: AttackSettings, seed: int, stop: Stop | None = None
) -> tuple[float, float, dict[str, Any]]:
    """Return γ and κ with the best F-measure on held-out folds; ties go to the larger κ, then the larger γ."""
    if settings.gamma is not None and settings.kappa is not None:
        return settings.gamma, settings.kappa, {"chosen": "given"}
    gammas = GAMMAS if settings.gamma is None else np.array([settings.gamma])
    kappas = KAPPAS if settings.kappa is None else np.array([settings.kappa])
    fold = folds_of(members, settings.folds, seed)
    if len(members) > SAMPLE:
        used = np.random.default_rng([seed, 1]).random(len(members)) <= SAMPLE / len(members)
        graded, members, fold = graded.part(used), members[used], fold[used]
    hit, flagged = np.zeros((len(kappas), len(gammas))), np.zeros((len(kappas), len(gammas)))
    for one in range(settings.folds):
        held = fold == one
        inside, outside = graded.counts(members & ~held), graded.counts(~members & ~held)
        least = settings.least_records * (1 - 1 / settings.folds)
        best = best_confidence(graded, inside, outside, kappas, least, stop)
        held_in, held_all = graded.counts(members & held), graded.counts(held)
        for g, gamma in enumerate(gammas):
            covered = best >= gamma
            hit[:, g] += covered @ held_in
            flagged[:, g] += covered @ held_all
    score = 2 * hit / (flagged + members.sum())
    k, g = max(np.argwhere(score >= score.max() - 1e-9).tolist())
    return float(gammas[g]), float(kappas[k]), {"chosen": "cross-validation", "f_measure": float(score[k, g])}


def no_rule(
    graded: Graded,
    members: Flags,
    gamma: float,
    kappa: float,
    settings: AttackSettings,
    variables: Sequence[Variable],
) -> UnreachableError:
    """Return the error that no rule passes, with the best rule that exists."""
    walked = walk_rules(graded, members, 0.0, kappa, settings.least_records)
    if not len(walked.rules):
        return UnreachableError(
            f"no rule has support above {kappa:g} and covers at least {settings.least_records} members",
            expected="a group that some rule describes",
            remedy="a smaller kappa or least_records under [groups.attack]",
        )
    best = int(np.argmax(walked.quality.rcf))
    rcf = float(walked.quality.rcf[best])
    words = sentence(walked.rules[best].tolist(), variables)
    return UnreachableError(
        f"no rule reaches gamma = {gamma:g}",
        expected=f"at most {rcf:.4g}, of the rule: {words} (support {walked.quality.support[best]:.4f})",
        remedy="a smaller gamma under [groups.attack], or the exact attacker without one: cross-validation chooses it",
    )
