"""DF, RCF and support of rules, and memberships by rules: compiled, with a literal twin beside each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.groups.attack.grades import ALPHA, Graded
from sfumato.systems.groups.attack.rules import Variable


@dataclass(frozen=True)
class Quality:
    """What rules are worth: mass in the group and outside it, and the paper's figures of them."""

    inside: Floats
    outside: Floats
    members: float
    records: float

    @property
    def support(self) -> Floats:
        return self.inside / self.members

    @property
    def df(self) -> Floats:
        """Equation 14: the share of the group that is covered, less the share of everyone."""
        return self.inside / self.members - (self.inside + self.outside) / self.records

    @property
    def rcf(self) -> Floats:
        """Equation 16; +∞ with nothing outside the group, 0 with nothing at all (docs/readings.md, 4.5)."""
        return relative_confidence(self.inside, self.outside)

    @property
    def fitness(self) -> Floats:
        """Equation 24; where RCF is infinite DF alone counts, and such rules rank behind no finite one by accident."""
        df, rcf = self.df, self.rcf
        return np.where(df > 0, df * np.where(np.isinf(rcf), 1.0, rcf), 0.0)

    def passing(self, gamma: float, kappa: float, least: float) -> Flags:
        """DF > 0, RCF ≥ γ, support > κ and at least so many records of the group."""
        return (self.df > 0) & (self.rcf >= gamma) & (self.support > kappa) & (self.inside >= least)


def relative_confidence(inside: Floats, outside: Floats) -> Floats:
    """Mass in the group over mass outside it.

    >>> relative_confidence(np.array([3.0, 3.0, 0.0]), np.array([2.0, 0.0, 0.0])).tolist()
    [1.5, inf, 0.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(outside > 0, inside / np.where(outside > 0, outside, 1.0), np.inf)
    return np.where(inside > 0, ratio, 0.0)


@compiled
def rule_masses(
    rules: Codes,
    codes: Codes,
    grades: Floats,
    start: Counts64,
    inside: Floats,
    outside: Floats,
    alpha: float,
    lists: Codes,
    begin: Counts64,
) -> tuple[Floats, Floats]:
    """The mass of each rule in and outside the group.

    `lists[begin[p] : begin[p + 1]]` are the tuples that row p of the grades reaches. Only the shortest list of a
    rule's conditions is walked.
    """
    mass_in, mass_out = np.zeros(len(rules)), np.zeros(len(rules))
    order = np.empty(rules.shape[1], np.int64)
    for i in range(len(rules)):
        used = 0
        best = -1
        for j in range(rules.shape[1]):
            if rules[i, j] > 0:
                order[used] = j
                row = start[j] + rules[i, j]
                if best < 0 or begin[row + 1] - begin[row] < begin[best + 1] - begin[best]:
                    best = row
                used += 1
        walked = len(inside) if best < 0 else begin[best + 1] - begin[best]
        for position in range(walked):
            t = position if best < 0 else lists[begin[best] + position]
            product = 1.0
            for u in range(used):
                j = order[u]
                product *= grades[start[j] + rules[i, j], codes[j, t]]
                if product < alpha:
                    break
            if product >= alpha:
                mass_in[i] += product * inside[t]
                mass_out[i] += product * outside[t]
    return mass_in, mass_out


@compiled
def rule_memberships(rules: Codes, codes: Codes, grades: Floats, start: Counts64, alpha: float) -> Floats:
    """The greatest compatibility of each tuple with any rule, 0 under α."""
    grade = np.zeros(codes.shape[1])
    for t in range(codes.shape[1]):
        for i in range(len(rules)):
            product = 1.0
            for j in range(rules.shape[1]):
                if rules[i, j] > 0:
                    product *= grades[start[j] + rules[i, j], codes[j, t]]
                    if product < alpha or product <= grade[t]:
                        break
            if product >= alpha and product > grade[t]:
                grade[t] = product
    return grade


class RuleMeasure:
    """Measures rules on one file; rules that were seen before are looked up."""

    def __init__(self, graded: Graded, members: Flags, alpha: float = ALPHA) -> None:
        self.graded, self.alpha = graded, alpha
        self.inside = graded.counts(members)
        self.outside = graded.counts() - self.inside
        self._lists, self._begin = _reached(graded)
        self._known: dict[bytes, tuple[float, float]] = {}

    @property
    def evaluations(self) -> int:
        return len(self._known)

    def quality(self, rules: Codes) -> Quality:
        """The quality of rules, one per row."""
        keys = [rule.tobytes() for rule in np.ascontiguousarray(rules, np.int32)]
        fresh = [i for i, key in enumerate(keys) if key not in self._known]
        fresh = list({keys[i]: i for i in fresh}.values())
        if fresh:
            g = self.graded
            masses = rule_masses(
                np.ascontiguousarray(rules[fresh], np.int32),
                g.codes,
                g.grades,
                g.start,
                self.inside,
                self.outside,
                self.alpha,
                self._lists,
                self._begin,
            )
            self._known.update((keys[i], (float(a), float(b))) for i, a, b in zip(fresh, *masses, strict=True))
        known = np.array([self._known[key] for key in keys]).reshape(-1, 2)
        return Quality(known[:, 0], known[:, 1], float(self.inside.sum()), float((self.inside + self.outside).sum()))


def _reached(graded: Graded) -> tuple[Codes, Counts64]:
    rows = [np.empty(0, np.int32)] * len(graded.grades)
    for j, begin in enumerate(graded.start):
        for k in range(1, int(graded.terms[j]) + 1):
            rows[begin + k] = np.flatnonzero(graded.grades[begin + k, graded.codes[j]] > 0).astype(np.int32)
    sizes = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return np.concatenate(rows), sizes


def literal_compatibility(rule: Sequence[int], variables: Sequence[Variable], record: Sequence[float]) -> float:
    """Equations 11 and 12 for one record, word by word: the oracle of the kernels.

    >>> from sfumato.systems.groups.attack.memberships import Term
    >>> age = Variable("age", (Term("young", "pi", (7.05, 15.40, 22.50, 27.18)),))
    >>> literal_compatibility([1], [age], [20.0]), literal_compatibility([1], [age], [26.0])
    (1.0, 0.0)
    """
    product = 1.0
    for k, variable, value in zip(rule, variables, record, strict=True):
        if k:
            product *= float(variable.terms[k - 1]([value])[0])
    return product if product >= ALPHA else 0.0
