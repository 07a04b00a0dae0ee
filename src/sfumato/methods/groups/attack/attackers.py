"""The attackers with rules and trees: each learns the group on one file and grades the records of another.

The paper's evolutionary search for rules is a Michigan approach: one individual is one rule, and the population is the
rule base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.formats import without_infinities
from sfumato.errors import DataError, StoppedError, StudyError, UnreachableError
from sfumato.methods.groups.attack.learners import average_precision, learn_table
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


@dataclass(frozen=True)
class Michigan:
    """The parameters of the evolutionary search, with the paper's values."""

    population: int = 100
    replaced: int = 40
    tournament: int = 10
    mutation: float = 0.05
    generations: int = 100
    runs: int = 10

    def evolve(
        self,
        terms: Counts64,
        fitness: Callable[[Codes], Floats],
        rng: np.random.Generator,
        stop: Callable[[], bool] | None = None,
    ) -> Codes:
        """Return every distinct rule of every generation of every run.

        Each of the λ pairs has one child (docs/readings.md, 4.7).
        """
        seen: dict[bytes, Codes] = {}
        width = len(terms)
        for _ in range(self.runs):
            rules = rng.integers(0, terms + 1, size=(self.population, width)).astype(np.int32)
            worth = fitness(rules)
            # the next generation overwrites the population
            seen.update((rule.tobytes(), rule.copy()) for rule in rules)
            for _ in range(self.generations):
                if stop is not None and stop():
                    raise StoppedError("interrupted while learning rules; nothing was saved")
                parents = rules[self._tournaments(worth, rng)]
                first = rng.random((self.replaced, width)) < 0.5
                children = np.where(first, parents[: self.replaced], parents[self.replaced :])
                reset = rng.random(children.shape) < self.mutation
                fresh = rng.integers(0, terms + 1, size=children.shape)
                children = np.where(reset, fresh, children).astype(np.int32)
                worst = np.argsort(worth, kind="stable")[: self.replaced]
                rules[worst], worth[worst] = children, fitness(children)
                seen.update((rule.tobytes(), rule.copy()) for rule in children)
        return np.array(list(seen.values()), np.int32).reshape(-1, width)

    def _tournaments(self, worth: Floats, rng: np.random.Generator) -> Counts64:
        drawn = rng.integers(0, self.population, size=(2 * self.replaced, self.tournament))
        best: Counts64 = drawn[np.arange(len(drawn)), np.argmax(worth[drawn], axis=1)]
        return best


PAPER_GAMMA, PAPER_KAPPA = 0.75, 0.001
SAMPLE = 400_000  # records that suffice to choose γ and κ
GAMMAS = np.array([0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0])
KAPPAS = np.array([0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08])
TREES, STEP = 100, 50


class Model(Protocol):
    """A learned group: grades from 0 to 1, and the threshold from which a record counts as a member."""

    @property
    def attacker(self) -> str: ...

    @property
    def threshold(self) -> float: ...

    @property
    def about(self) -> dict[str, Any]: ...

    @property
    def everything(self) -> bool:
        """Whether it grades all records by the released columns, and not only those in range by the attributes."""

    @property
    def graded(self) -> bool:
        """Whether grades are probabilities that a threshold divides. The grades of rules are not."""

    def memberships(self, microfile: Microfile) -> Floats:
        """Return the grade of every record."""


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
        rules = []
        for i in order.tolist():
            entry: dict[str, Any] = {
                "rule": self.rules[i].tolist(),
                "words": sentence(self.rules[i].tolist(), self.variables),
                "df": float(self.quality.df[i]),
                "rcf": float(self.quality.rcf[i]),
                "support": float(self.quality.support[i]),
            }
            rules.append(without_infinities(entry))
        return rules


@dataclass(frozen=True)
class BoostedModel:
    """Gradient-boosted trees. The threshold flags as many records of the auxiliary file as it has members."""

    attributes: tuple[str, ...]
    trees: Any
    threshold: float
    attacker: str = "boosted"
    about: dict[str, Any] = field(default_factory=dict)
    everything: bool = False
    graded: bool = True

    def memberships(self, microfile: Microfile) -> Floats:
        columns = np.stack([microfile.column(name) for name in self.attributes], axis=1)
        with threadpool_limits(1):
            return np.asarray(self.trees.predict_proba(columns)[:, 1], np.float64)


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
    makers = {"exact": learn_exact, "evolutionary": learn_evolutionary}
    if attacker == "boosted":
        return learn_boosted(auxiliary, group, settings, seed, stop)
    if attacker not in makers:
        check_group(auxiliary, group)
        return learn_table(attacker, auxiliary, group, seed, stop)
    return makers[attacker](auxiliary, group, tuple(variables), settings, seed, stop)


def learn_exact(
    auxiliary: Microfile,
    group: str,
    variables: tuple[Variable, ...],
    settings: AttackSettings,
    seed: int,
    stop: Stop | None = None,
) -> RuleModel:
    """Learn all minimal rules by a complete walk. Cross-validation chooses γ and κ unless both are given."""
    members = check_group(auxiliary, group)
    graded = grade(auxiliary, variables)
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
    auxiliary: Microfile,
    group: str,
    variables: tuple[Variable, ...],
    settings: AttackSettings,
    seed: int,
    stop: Stop | None = None,
) -> RuleModel:
    """Learn rules by the paper's search, with its γ and κ unless others are given."""
    members = check_group(auxiliary, group)
    graded = grade(auxiliary, variables)
    measure = RuleMeasure(graded, members)
    search = Michigan(
        population=settings.population,
        replaced=min(settings.replaced, settings.population),
        tournament=settings.tournament,
        mutation=settings.mutation,
        generations=settings.generations,
        runs=settings.runs,
    )
    rng = np.random.default_rng(seed)
    rules = search.evolve(graded.terms, lambda some: measure.quality(some).fitness, rng, stop)
    gamma = PAPER_GAMMA if settings.gamma is None else settings.gamma
    kappa = PAPER_KAPPA if settings.kappa is None else settings.kappa
    rules = rules[measure.quality(rules).passing(gamma, kappa, settings.least_records)]
    rules = rules[minimal_rows(rules, graded.terms)]
    if not len(rules):
        raise no_rule(graded, members, gamma, kappa, settings, variables)
    about = {"gamma": gamma, "kappa": kappa, "evaluations": measure.evaluations, "seed": seed}
    return RuleModel("evolutionary", variables, rules, measure.quality(rules), about=about)


def learn_boosted(
    auxiliary: Microfile, group: str, settings: AttackSettings, seed: int, stop: Stop | None = None
) -> BoostedModel:
    """Learn gradient-boosted trees on the numbers, with a threshold from cross-validation."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise StudyError(
            "the boosted attacker needs scikit-learn",
            expected='the extra "boosted"',
            remedy='pip install "sfumato[boosted]", or another attacker',
        ) from None
    members = check_group(auxiliary, group)
    columns = auxiliary.table()

    def fitted(chosen: Flags) -> Any:
        trees = HistGradientBoostingClassifier(learning_rate=0.08, random_state=seed, warm_start=True)
        mine, theirs = columns[chosen], members[chosen]
        for count in range(STEP, TREES + 1, STEP):  # training in steps gives the same trees as training at once
            if stop is not None and stop():
                raise StoppedError("interrupted while fitting trees; nothing was saved")
            trees.set_params(max_iter=count).fit(mine, theirs)
            if trees.n_iter_ < count:
                break
        return trees

    folds = min(settings.folds, 3)
    fold = folds_of(members, folds, seed)
    held = np.zeros(len(members))
    # with more threads than free cores the threads wait for each other, and training takes ten times as long
    with threadpool_limits(1):
        for one in range(folds):
            held[fold == one] = fitted(fold != one).predict_proba(columns[fold == one])[:, 1]
        trees = fitted(np.ones(len(members), np.bool_))
    count = int(members.sum())
    threshold = float(np.partition(held, len(held) - count)[len(held) - count])
    about = {"average_precision": average_precision(members, held), "seed": seed, "folds": folds}
    return BoostedModel(auxiliary.attributes, trees, threshold, about=about)


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
        best = best_confidence(graded, inside, outside, kappas, least, stop=stop)
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
