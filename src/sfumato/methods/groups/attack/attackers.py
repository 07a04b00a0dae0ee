"""The attackers: each learns the group on one file and grades the records of another, by rules or by a classifier.

Rules come from a complete walk or an evolutionary search. Classifiers are boosted trees, a random forest and a logistic
regression. They learn from the recipe's attributes of the records in range or, under a name that ends in `_all`, from
every released column of all records. A seed draws the part of the auxiliary file that is learned from. The rest sets
the threshold, which flags as many records as there are members. A learner of all columns also gives the expected number
of members, the sum of all grades, which is a second signal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.formats import without_infinities
from sfumato.errors import DataError, StoppedError, StudyError, UnreachableError
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
from sfumato.methods.groups.microfile import Microfile, Wide
from sfumato.study.groups import AttackSettings

ALL = "_all"
EXPECTED = ", expected members"
LEARNED = 0.8  # share of the auxiliary file that is learned from; the rest sets the threshold
OTHERS = 8_000  # records outside the group that suffice to learn from
TREES, ROUNDS, RATE, LEAVES = 100, 60, 0.12, 15
FEW = 30  # most values of a column of which a regression takes an indicator each
STEEP = 5.0  # standard deviations at which a regression truncates numbers
PAPER_GAMMA, PAPER_KAPPA = 0.75, 0.001
SAMPLE = 400_000  # records that suffice to choose γ and κ
GAMMAS = np.array([0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0])
KAPPAS = np.array([0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08])
STEP = 50  # trees that are trained between two stop requests


def average_precision(members: Flags, grades: Floats) -> float:
    """Return the mean precision at the members, from the highest grade down. Equal grades count together.

    >>> average_precision(np.array([True, False, True]), np.array([0.9, 0.8, 0.7])).__round__(4)
    0.8333
    """
    order = np.argsort(-grades, kind="stable")
    ends = np.flatnonzero(np.diff(grades[order], append=np.inf) != 0)
    hit = np.cumsum(members[order])[ends]
    recall = hit / max(int(members.sum()), 1)
    return float((np.diff(recall, prepend=0.0) * hit / (ends + 1)).sum())


Grader = Callable[[Floats], Floats]  # the probability of membership of every row of a matrix


def indicators(learned: Floats) -> Callable[[Floats], csr_array]:
    """Return what makes the matrix of a regression: indicators of frequent values and of missing ones, else scores."""
    known = [column[~np.isnan(column)] for column in learned.T]
    distinct = [np.unique(column) for column in known]
    centre = [column.mean() if len(column) else 0.0 for column in known]
    spread = [max(column.std(), 1e-12) if len(column) else 1.0 for column in known]

    def prepared(matrix: Floats) -> csr_array:
        records = np.arange(len(matrix))
        rows, at, cells = [], [], []
        first = 0
        for j, values in enumerate(distinct):
            column = matrix[:, j]
            missing = np.isnan(column)
            if len(values) > FEW:
                scaled = np.clip((column[~missing] - centre[j]) / spread[j], -STEEP, STEEP)
                rows += [records[~missing], records[missing]]
                at += [np.full(len(scaled), first), np.full(int(missing.sum()), first + 1)]
                cells += [scaled, np.ones(int(missing.sum()))]
                first += 2
                continue
            where = np.searchsorted(values, column)
            listed = missing | (values[np.minimum(where, len(values) - 1)] == column) if len(values) else missing
            rows.append(records[listed])
            at.append(first + np.where(missing, len(values), where)[listed])
            cells.append(np.ones(len(rows[-1])))
            first += len(values) + 1
        cells_at = (np.concatenate(rows), np.concatenate(at))
        return csr_array((np.concatenate(cells), cells_at), shape=(len(matrix), first))

    return prepared


@dataclass(frozen=True)
class TableModel:
    """A classifier. From the `threshold` a record counts as a member.

    `like` are the columns that it knows, coded as in the file that it learned from. Without `like` it knows the
    recipe's attributes.
    """

    attacker: str
    threshold: float
    fitted: Grader
    attributes: tuple[str, ...]
    like: Wide | None = None
    about: dict[str, Any] = field(default_factory=dict)
    graded: ClassVar[bool] = True

    @property
    def everything(self) -> bool:
        """Whether it grades every record of a file by its released columns."""
        return self.like is not None

    def memberships(self, microfile: Microfile) -> Floats:
        if self.like is None:
            matrix = np.stack([microfile.column(name) for name in self.attributes], axis=1)
        elif microfile.wide is None:
            raise DataError(f"{microfile.name} was read without its released columns", expected="the whole file")
        else:
            matrix = microfile.wide.numbers(self.like)
        return self.fitted(matrix)

    def expected(self) -> TableModel:
        """Return the same learner with the sum of all grades as its signal: the expected number of members."""
        return replace(self, attacker=self.attacker + EXPECTED, threshold=0.0)


def grader(fitted: Any, prepared: Callable[[Floats], object] | None = None, rarer: float = 1.0) -> Grader:
    """Return the grades of a fitted classifier, corrected for a file in which members are rarer by a factor."""

    def grades(matrix: Floats) -> Floats:
        with threadpool_limits(1):
            chance = np.asarray(fitted.predict_proba(prepared(matrix) if prepared else matrix)[:, 1], np.float64)
        return np.asarray(chance / (chance + (1 - chance) * rarer))

    return grades


def learn_table(attacker: str, auxiliary: Microfile, members: Flags, seed: int, stop: Stop | None = None) -> TableModel:
    """Learn a group from the attributes of a file, or from all its columns for names that end in `_all`."""
    like: Wide | None = None
    if attacker.endswith(ALL):
        if auxiliary.wide is None:
            raise DataError(f"{auxiliary.name} was read without its columns", expected="the whole file")
        # Trees cannot split a column with one value besides missing ones.
        columns = zip(auxiliary.wide.names, auxiliary.wide.values, strict=True)
        like = auxiliary.wide.only([name for name, values in columns if len(values) > 1])
        if not like.names:
            raise DataError(f"{auxiliary.name} shares no column with the release", expected="columns of the same name")
    rng = np.random.default_rng([seed, len(members)])
    learned = _dealt(members, LEARNED, rng)

    def matrix(chosen: Counts64) -> Floats:
        if like is None or auxiliary.wide is None:
            return auxiliary.table()[chosen]
        return auxiliary.wide.part(chosen).numbers(like)

    chosen, rarer = _sampled(members & learned, ~members & learned, rng)
    held, weight = _sampled(members & ~learned, ~members & ~learned, rng)
    fitted = fit(attacker.removesuffix(ALL), matrix(chosen), members[chosen], seed, stop, rarer)
    grades = fitted(matrix(held))
    threshold = _flagging(grades, members[held], weight)
    about = {"average_precision": average_precision(members[held], grades), "seed": seed}
    return TableModel(attacker, max(threshold, 1e-9), fitted, auxiliary.attributes, like, about)


def _flagging(grades: Floats, members: Flags, weight: float) -> float:
    """Return the threshold that flags as many records as there are members. Others are weighted by the sampling."""
    order = np.argsort(-grades, kind="stable")
    flagged = np.cumsum(np.where(members[order], 1.0, weight))
    last = min(int(np.searchsorted(flagged, max(int(members.sum()), 1))), len(order) - 1)
    return float(grades[order[last]])


def classifiers_for(kind: str, others: str) -> Any:
    """Return the module of ensembles, or raise the error that it is not installed. The import takes seconds."""
    try:
        from sklearn import ensemble
    except ImportError:
        raise StudyError(
            f"the {kind} attacker needs scikit-learn",
            expected='the extra "boosted"',
            remedy=f'pip install "sfumato[boosted]", or {others}',
        ) from None
    return ensemble


def fit(kind: str, matrix: Floats, members: Flags, seed: int, stop: Stop | None = None, rarer: float = 1.0) -> Grader:
    """Fit a classifier: `boosted`, `forest` or `logistic`."""
    if stop is not None and stop():
        raise StoppedError("interrupted while an attacker was learning; nothing was saved")
    classifiers = classifiers_for(kind, "other attackers under [groups.protect]")
    # with more threads than free cores the threads wait for each other, and training takes ten times as long
    with threadpool_limits(1):
        if kind == "logistic":
            from sklearn.linear_model import LogisticRegression

            prepared = indicators(matrix)
            line = LogisticRegression(C=0.1, max_iter=200, random_state=seed)
            return grader(line.fit(prepared(matrix), members), prepared, rarer)
        if kind == "forest":
            trees = classifiers.RandomForestClassifier(TREES, min_samples_leaf=2, random_state=seed)
        else:
            trees = classifiers.HistGradientBoostingClassifier(
                learning_rate=RATE,
                max_iter=ROUNDS,
                max_leaf_nodes=LEAVES,
                max_features=0.5,
                early_stopping=False,
                random_state=seed,
            )
        return grader(trees.fit(matrix, members), rarer=rarer)


def _dealt(members: Flags, share: float, rng: np.random.Generator) -> Flags:
    """Draw about a share of the members and of the others at random, at least one of each on either side."""
    drawn = np.zeros(len(members), np.bool_)
    for kind in (np.flatnonzero(members), np.flatnonzero(~members)):
        count = min(max(round(share * len(kind)), 1), max(len(kind) - 1, 1))
        drawn[rng.permutation(kind)[:count]] = True
    return drawn


def _sampled(members: Flags, others: Flags, rng: np.random.Generator) -> tuple[Counts64, float]:
    """Return all members and a sample of the others, and how many times rarer members are among all."""
    mine, theirs = np.flatnonzero(members), np.flatnonzero(others)
    used = rng.permutation(theirs)[:OTHERS]
    return np.sort(np.concatenate([mine, used])), len(theirs) / max(len(used), 1)


@dataclass(frozen=True)
class RuleModel:
    """A rule base. The grade of a record is its greatest compatibility with any rule."""

    attacker: str
    variables: tuple[Variable, ...]
    rules: Codes
    quality: Quality
    threshold: float = ALPHA
    about: dict[str, Any] = field(default_factory=dict)
    everything: ClassVar[bool] = False
    graded: ClassVar[bool] = False

    def memberships(self, microfile: Microfile) -> Floats:
        graded = grade(microfile, self.variables)
        return rule_memberships(self.rules, graded)[graded.tuple_of]

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
    if attacker in ("exact", "evolutionary"):
        return learn_rules(attacker, grade(auxiliary, variables), members, tuple(variables), settings, seed, stop)
    return learn_table(attacker, auxiliary, members, seed, stop)


def learn_rules(
    attacker: str,
    graded: Graded,
    members: Flags,
    variables: tuple[Variable, ...],
    settings: AttackSettings,
    seed: int,
    stop: Stop | None = None,
) -> RuleModel:
    """Learn all minimal rules: of a complete walk (`exact`), or of those that the paper's search found.

    Cross-validation chooses γ and κ of the walk, and the paper those of its search, unless they are given.
    """
    if attacker == "exact":
        gamma, kappa, about = choose_limits(graded, members, settings, seed, stop)
        walked = walk_rules(graded, members, gamma, kappa, settings.least_records, prune=True, stop=stop)
        rules, quality = walked.rules, walked.quality
        about |= {"visited": walked.visited, "complete": walked.complete}
    else:
        measure, rng = RuleMeasure(graded, members), np.random.default_rng(seed)
        rules = evolve(settings, graded.terms, lambda some: measure.quality(some).fitness, rng, stop)
        gamma = PAPER_GAMMA if settings.gamma is None else settings.gamma
        kappa = PAPER_KAPPA if settings.kappa is None else settings.kappa
        rules = rules[measure.quality(rules).passing(gamma, kappa, settings.least_records)]
        quality = measure.quality(rules)
        about = {"evaluations": measure.evaluations, "seed": seed}
    rows = minimal_rows(rules, graded.terms)
    if not len(rows):
        raise no_rule(graded, members, gamma, kappa, settings, variables)
    about |= {"gamma": gamma, "kappa": kappa}
    return RuleModel(attacker, variables, rules[rows], quality.part(rows), about=about)


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
