"""Fuzzy rules: linguistic variables, rules as integers, their sentences, and their quality on the records of a file.

A rule has one number per variable: 0 is "don't care", k the k-th term. In print it is the list of its words. The
memberships of records are tabulated once per value. A membership below α makes every product below α, so it counts as
0. Values that no rule can distinguish then share a code, and records with the same codes share a tuple, so that a file
of millions becomes a small table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.errors import StudyError, nearest
from sfumato.methods.groups.microfile import Microfile
from sfumato.study.census_mapping import Attribute

ALPHA = 0.5
WIDE = 1 << 62


def _plateau(x: Floats, a: float, b: float, c: float, d: float, shoulder: Callable[[Floats], Floats]) -> Floats:
    """Return shoulders a–b and c–d around the plateau b–c.

    If a shoulder has no width the plateau takes precedence (docs/readings.md, 4.6). As printed in the paper, the value
    at which a shoulder both starts and ends would have degree 0.
    """
    grades = np.zeros(len(x))
    rising, falling = (x > a) & (x < b), (x > c) & (x < d)
    grades[(x >= b) & (x <= c)] = 1.0
    grades[rising] = shoulder((x[rising] - a) / (b - a))
    grades[falling] = shoulder((d - x[falling]) / (d - c))
    return grades


def _smooth(u: Floats) -> Floats:
    return np.where(u <= 0.5, 2 * u * u, 1 - 2 * (1 - u) ** 2)


# Each membership function with its number of parameters: a bell of width a around b, straight or smooth shoulders
# around a plateau, a smooth rise or fall from a to b, and 1 from a to b.
KINDS: dict[str, tuple[Callable[..., Floats], int]] = {
    "gaussian": (lambda x, a, b: np.exp(-((x - b) ** 2) / (2 * a * a)), 2),
    "trapezoid": (lambda x, a, b, c, d: _plateau(x, a, b, c, d, lambda u: u), 4),
    "pi": (lambda x, a, b, c, d: _plateau(x, a, b, c, d, _smooth), 4),
    "s": (lambda x, a, b: _plateau(x, a, b, np.inf, np.inf, _smooth), 2),
    "z": (lambda x, a, b: _plateau(x, -np.inf, -np.inf, a, b, _smooth), 2),
    "crisp": (lambda x, a, b: ((x >= a) & (x <= b)).astype(np.float64), 2),
}


@dataclass(frozen=True)
class Term:
    """A term for a range of values: its name, and the degree from 0 to 1 to which a value belongs to it.

    >>> Term("young", "pi", (7.05, 15.4, 22.5, 27.18))(np.array([20, 30])).tolist()
    [1.0, 0.0]
    """

    name: str
    kind: str
    numbers: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise StudyError(
                f'unknown membership function "{self.kind}"',
                expected="a membership function",
                remedy=nearest(self.kind, KINDS),
            )
        wanted = KINDS[self.kind][1]
        if len(self.numbers) != wanted:
            raise StudyError(
                f'the term "{self.name}" has {len(self.numbers)} numbers', expected=f"{wanted} for {self.kind}"
            )
        ordered = list(self.numbers) == sorted(self.numbers) if self.kind != "gaussian" else self.numbers[0] > 0
        if not ordered:
            raise StudyError(
                f'the numbers of the term "{self.name}" are {list(self.numbers)}',
                expected="a width above 0, then the centre" if self.kind == "gaussian" else "numbers that never fall",
            )

    def __call__(self, values: npt.ArrayLike) -> Floats:
        grades: Floats = KINDS[self.kind][0](np.asarray(values, dtype=np.float64), *self.numbers)
        return grades


@dataclass(frozen=True)
class Variable:
    """A linguistic variable: an attribute and the terms for its values."""

    attribute: str
    terms: tuple[Term, ...]

    def grades(self, values: Floats) -> Floats:
        """Return the membership of each value in each term. Row 0 is "don't care"."""
        return np.stack([np.ones(len(values)), *(term(values) for term in self.terms)])


def variables_of(attributes: Mapping[str, Attribute], values: Callable[[str], Floats]) -> tuple[Variable, ...]:
    """Return the variables of the attributes that have terms: declared ones, or terms proposed from the values."""
    variables = []
    for name, attribute in attributes.items():
        if attribute.terms is not None:
            terms = tuple(Term(word, t.kind, t.numbers) for word, t in attribute.terms.items())
        else:
            terms = proposed(name, values(name), attribute.quantiles or 3, ordinal=attribute.ordinal)
        if terms:
            variables.append(Variable(name, terms))
    return tuple(variables)


def proposed(name: str, values: Floats, limit: int = 3, *, ordinal: bool = True) -> tuple[Term, ...]:
    """Propose terms from the values of an attribute: a crisp term for each of few values, else quantile terms.

    >>> [(t.name, t.kind) for t in proposed("sex", np.array([1.0, 2.0, 2.0]))]
    [('sex 1', 'crisp'), ('sex 2', 'crisp')]
    >>> for term in proposed("age", np.arange(1.0, 101.0)):
    ...     print(term.name, term.kind, [round(x, 1) for x in term.numbers])
    age up to 34 pi [1.0, 1.0, 25.8, 42.2]
    age 34 to 67 pi [25.8, 42.2, 58.8, 75.2]
    age from 67 pi [58.8, 75.2, 100.0, 100.0]
    """
    distinct = np.unique(values)
    if len(distinct) <= limit or (not ordinal and len(distinct) <= 12):
        return tuple(Term(f"{name} {value:g}", "crisp", (float(value), float(value))) for value in distinct)
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, limit + 1)[1:-1]))
    cuts = cuts[(cuts > distinct[0]) & (cuts < distinct[-1])]
    if not len(cuts):
        cuts = np.array([distinct[len(distinct) // 2]])
    least, most = distinct[[0, -1]]
    widths = np.diff(np.concatenate([[least], cuts, [most]]))
    half = np.minimum(widths[:-1], widths[1:]) / 4
    rising = [(least, least), *zip(cuts - half, cuts + half, strict=True)]
    falling = [*rising[1:], (most, most)]
    between = [f"{low:.6g} to {high:.6g}" for low, high in pairwise(cuts)]
    words = [f"up to {cuts[0]:.6g}", *between, f"from {cuts[-1]:.6g}"]
    return tuple(
        Term(f"{name} {word}", "pi", tuple(map(float, (*start, *end))))
        for word, start, end in zip(words, rising, falling, strict=True)
    )


def sentence(rule: Sequence[int], variables: Sequence[Variable]) -> str:
    """Return a rule in words.

    >>> sex = Variable("sex", (Term("male", "crisp", (1, 1)), Term("female", "crisp", (2, 2))))
    >>> sentence([1], [sex]), sentence([0], [sex])
    ('male', 'anyone')
    """
    words = [v.terms[k - 1].name for k, v in zip(rule, variables, strict=True) if k]
    return ", ".join(words) or "anyone"


class Graded(NamedTuple):
    """Distinct tuples: `grades[start[j] + k, codes[j, t]]` is the membership of tuple t in term k of variable j."""

    codes: Codes
    grades: Floats
    start: Counts64
    terms: Counts64
    tuple_of: Codes

    @property
    def tuples(self) -> int:
        return int(self.codes.shape[1])

    def counts(self, chosen: Flags | None = None) -> Floats:
        """Return the number of records per tuple, of all records or of some."""
        index = self.tuple_of if chosen is None else self.tuple_of[chosen]
        return np.bincount(index, minlength=self.tuples).astype(np.float64)

    def part(self, chosen: Flags) -> Graded:
        """Return some of the records, with only the tuples that they have."""
        present, number = np.unique(self.tuple_of[chosen], return_inverse=True)
        codes = np.ascontiguousarray(self.codes[:, present])
        return self._replace(codes=codes, tuple_of=number.reshape(-1).astype(np.int32))


def grade(microfile: Microfile, variables: Sequence[Variable]) -> Graded:
    """Compress a microfile to the tuples that the variables can distinguish."""
    tables, columns, widths = [], [], []
    for variable in variables:
        position = microfile.attributes.index(variable.attribute)
        of_values = variable.grades(microfile.values[position])
        of_values[of_values < ALPHA] = 0.0
        seen, code = np.unique(of_values, axis=1, return_inverse=True)
        tables.append(seen)
        columns.append(code.reshape(-1).astype(np.int32)[microfile.codes[position]])
        widths.append(seen.shape[1])
    tuple_of, first = _number(columns, widths)
    start = np.concatenate([[0], np.cumsum([len(table) for table in tables])])[:-1].astype(np.int64)
    grades = np.zeros((sum(len(table) for table in tables), max(widths)))
    for begin, table in zip(start, tables, strict=True):
        grades[begin : begin + len(table), : table.shape[1]] = table
    codes = np.stack([column[first] for column in columns])
    return Graded(codes, grades, start, np.array([len(v.terms) for v in variables], np.int64), tuple_of)


def _number(columns: Sequence[Codes], widths: Sequence[int]) -> tuple[Codes, Counts64]:
    """Return a number for each distinct combination of codes, and the first record of each."""
    key, space = np.zeros(len(columns[0]), np.int64), 1
    for column, width in zip(columns, widths, strict=True):
        if space * width > WIDE:
            _, key = np.unique(key, return_inverse=True)
            space = int(key.max()) + 1
        key = key * width + column
        space *= width
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return number.astype(np.int32), first.astype(np.int64)


@dataclass(frozen=True)
class Quality:
    """The quality of rules: mass in the group and outside it, and the paper's figures of them."""

    inside: Floats
    outside: Floats
    members: float
    records: float

    @property
    def support(self) -> Floats:
        return self.inside / self.members

    @property
    def df(self) -> Floats:
        """The share of the group that is covered minus the share of all records (equation 14)."""
        return self.inside / self.members - (self.inside + self.outside) / self.records

    @property
    def rcf(self) -> Floats:
        """The relative confidence (equation 16): +∞ with no mass outside the group, 0 with no mass at all.

        See docs/readings.md, 4.5.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.inside > 0, self.inside / self.outside, 0.0)

    @property
    def fitness(self) -> Floats:
        """The fitness (equation 24): DF times RCF, or DF alone if RCF is infinite."""
        df, rcf = self.df, self.rcf
        return np.where(df > 0, df * np.where(np.isinf(rcf), 1.0, rcf), 0.0)

    def part(self, rows: Counts64) -> Quality:
        """Return the quality of some rules."""
        return replace(self, inside=self.inside[rows], outside=self.outside[rows])

    def passing(self, gamma: float, kappa: float, least: float) -> Flags:
        """Return which rules have DF > 0, RCF ≥ γ, support > κ and at least `least` records of the group."""
        return (self.df > 0) & (self.rcf >= gamma) & (self.support > kappa) & (self.inside >= least)


@compiled
def rule_masses(
    rules: Codes, graded: Graded, inside: Floats, outside: Floats, lists: Codes, begin: Counts64
) -> tuple[Floats, Floats]:
    """Return the mass of each rule in and outside the group.

    `lists[begin[p] : begin[p + 1]]` are the tuples with a positive membership in row p of the grades. Only the shortest
    list among a rule's conditions is walked.
    """
    codes, grades, start = graded.codes, graded.grades, graded.start
    # The product is 0 where any membership is, so the tuples of the rarest condition are enough.
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
                if product < ALPHA:  # the product only falls
                    break
            if product >= ALPHA:
                mass_in[i] += product * inside[t]
                mass_out[i] += product * outside[t]
    return mass_in, mass_out


@compiled
def rule_memberships(rules: Codes, graded: Graded) -> Floats:
    """Return the greatest compatibility of each tuple with any rule, 0 below α."""
    codes, grades, start = graded.codes, graded.grades, graded.start
    grade = np.zeros(codes.shape[1])
    for t in range(codes.shape[1]):
        for i in range(len(rules)):
            product = 1.0
            for j in range(rules.shape[1]):
                if rules[i, j] > 0:
                    product *= grades[start[j] + rules[i, j], codes[j, t]]
                    if product < ALPHA or product <= grade[t]:  # it only falls, so it is not the greatest
                        break
            if product >= ALPHA and product > grade[t]:
                grade[t] = product
    return grade


class RuleMeasure:
    """The quality of rules on one file. Rules that were measured before are looked up."""

    def __init__(self, graded: Graded, members: Flags) -> None:
        self.graded = graded
        self.inside = graded.counts(members)
        self.outside = graded.counts() - self.inside
        self._lists, self._begin = _tuples_of_terms(graded)
        self._known: dict[bytes, tuple[float, float]] = {}

    @property
    def evaluations(self) -> int:
        return len(self._known)

    def quality(self, rules: Codes) -> Quality:
        """Return the quality of rules, one per row."""
        keys = [rule.tobytes() for rule in np.ascontiguousarray(rules, np.int32)]
        fresh = [i for i, key in enumerate(keys) if key not in self._known]
        fresh = list({keys[i]: i for i in fresh}.values())
        if fresh:
            some = np.ascontiguousarray(rules[fresh], np.int32)
            masses = rule_masses(some, self.graded, self.inside, self.outside, self._lists, self._begin)
            self._known.update((keys[i], (float(a), float(b))) for i, a, b in zip(fresh, *masses, strict=True))
        known = np.array([self._known[key] for key in keys]).reshape(-1, 2)
        return Quality(known[:, 0], known[:, 1], float(self.inside.sum()), float((self.inside + self.outside).sum()))


def _tuples_of_terms(graded: Graded) -> tuple[Codes, Counts64]:
    rows = [np.empty(0, np.int32)] * len(graded.grades)
    for j, begin in enumerate(graded.start):
        for k in range(1, int(graded.terms[j]) + 1):
            rows[begin + k] = np.flatnonzero(graded.grades[begin + k, graded.codes[j]] > 0).astype(np.int32)
    sizes = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return np.concatenate(rows), sizes
