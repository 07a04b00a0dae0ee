"""The attackers with classifiers: boosted trees, a random forest and a logistic regression.

Each learns from the recipe's attributes of the records in range or, under a name that ends in `_all`, from every
released column of all records. A seed draws the part of the auxiliary file that is learned from. The rest sets the
threshold, which flags as many records as there are members. A learner of all columns also gives the expected number of
members, the sum of all grades, which is a second signal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.errors import DataError, StoppedError, StudyError
from sfumato.methods.groups.attack.rule_walk import Stop
from sfumato.methods.groups.microfile import Microfile, Wide


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


ALL = "_all"
EXPECTED = ", expected members"
LEARNED = 0.8  # share of the auxiliary file that is learned from; the rest sets the threshold
OTHERS = 8_000  # records outside the group that suffice to learn from
TREES, ROUNDS, RATE, LEAVES = 100, 60, 0.12, 15
FEW = 30  # most values of a column of which a regression takes an indicator each
STEEP = 5.0  # standard deviations at which a regression truncates numbers


@dataclass(frozen=True)
class Indicators:
    """The matrix of a regression: indicators of frequent values, standard scores of others, and missing values."""

    values: tuple[Floats | None, ...]
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Indicators:
        distinct = [np.unique(column[~np.isnan(column)]) for column in matrix.T]
        known = [column[~np.isnan(column)] for column in matrix.T]
        return cls(
            tuple(values if len(values) <= FEW else None for values in distinct),
            np.array([column.mean() if len(column) else 0.0 for column in known]),
            np.array([max(column.std(), 1e-12) if len(column) else 1.0 for column in known]),
        )

    def __call__(self, matrix: Floats) -> csr_array:
        records = np.arange(len(matrix))
        rows, at, cells = [], [], []
        first = 0
        for j, values in enumerate(self.values):
            column = matrix[:, j]
            missing = np.isnan(column)
            if values is None:
                known = ~missing
                scaled = np.clip((column[known] - self.centre[j]) / self.spread[j], -STEEP, STEEP)
                rows += [records[known], records[missing]]
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


Grader = Callable[[Floats], Floats]  # the probability of membership of every row of a matrix


@dataclass(frozen=True)
class TableModel:
    """A classifier. `like` are the columns that it knows, coded as in the file that it learned from.

    Without `like` it knows the recipe's attributes. Grades are corrected for the sampling of other records: members are
    `rarer` in the file by this factor than in the sample that was learned from. From the `threshold` a record counts as
    a member.
    """

    attacker: str
    threshold: float
    fitted: Grader
    attributes: tuple[str, ...]
    rarer: float = 1.0
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
        return corrected(self.fitted(matrix), self.rarer)

    def expected(self) -> TableModel:
        """Return the same learner with the sum of all grades as its signal: the expected number of members."""
        return replace(self, attacker=self.attacker + EXPECTED, threshold=0.0)


def corrected(grades: Floats, rarer: float) -> Floats:
    """Return probabilities of membership in a file in which members are rarer by a factor."""
    chance: Floats = grades / (grades + (1 - grades) * rarer)
    return chance


def grader(fitted: Any, prepared: Callable[[Floats], object] | None = None) -> Grader:
    """Return the grades of a fitted classifier, on the matrix that it was fitted to."""

    def grades(matrix: Floats) -> Floats:
        with threadpool_limits(1):
            return np.asarray(fitted.predict_proba(prepared(matrix) if prepared else matrix)[:, 1], np.float64)

    return grades


def learn_table(attacker: str, auxiliary: Microfile, members: Flags, seed: int, stop: Stop | None = None) -> TableModel:
    """Learn a group from the attributes of a file, or from all its columns for names that end in `_all`."""
    like: Wide | None = None
    if attacker.endswith(ALL):
        if auxiliary.wide is None:
            raise DataError(f"{auxiliary.name} was read without its columns", expected="the whole file")
        like = _varied(auxiliary.wide)
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
    fitted = fit(attacker.removesuffix(ALL), matrix(chosen), members[chosen], seed, stop)
    grades = corrected(fitted(matrix(held)), rarer)
    threshold = _flagging(grades, members[held], weight)
    about = {"average_precision": average_precision(members[held], grades), "seed": seed}
    return TableModel(attacker, max(threshold, 1e-9), fitted, auxiliary.attributes, rarer, like, about)


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


def fit(kind: str, matrix: Floats, members: Flags, seed: int, stop: Stop | None = None) -> Grader:
    """Fit a classifier: `boosted`, `forest` or `logistic`."""
    if stop is not None and stop():
        raise StoppedError("interrupted while an attacker was learning; nothing was saved")
    classifiers = classifiers_for(kind, "other attackers under [groups.protect]")
    # with more threads than free cores the threads wait for each other, and training takes ten times as long
    with threadpool_limits(1):
        if kind == "logistic":
            from sklearn.linear_model import LogisticRegression

            prepared = Indicators.of(matrix)
            line = LogisticRegression(C=0.1, max_iter=200, random_state=seed)
            return grader(line.fit(prepared(matrix), members), prepared)
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
        return grader(trees.fit(matrix, members))


def _varied(wide: Wide) -> Wide:
    """Return which columns have more than one value besides missing ones; trees cannot split others."""
    kept = [name for name, values in zip(wide.names, wide.values, strict=True) if len(values) > 1]
    return wide.only(kept)


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
