"""Fuzzy rules: linguistic variables, rules as whole numbers, and their sentences.

A rule has one number per variable: 0 is "don't care", k the k-th term. It reads as the list of its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.runtime.arrays import Codes, Floats
from sfumato.study.file_mapping import Attribute
from sfumato.systems.groups.attack.memberships import Term


# The paper's table 5: a ready rule base over its twelve variables.
@dataclass(frozen=True)
class Variable:
    """A linguistic variable: an attribute and the words for its values."""

    attribute: str
    terms: tuple[Term, ...]

    def grades(self, values: Floats) -> Floats:
        """The membership of each value in each term: row 0 is "don't care"."""
        return np.stack([np.ones(len(values)), *(term(values) for term in self.terms)])


def variables_of(attributes: Mapping[str, Attribute], values: Mapping[str, Floats]) -> tuple[Variable, ...]:
    """The variables of a mapping: declared terms, or terms proposed from values. Attributes without terms have none."""
    variables = []
    for name, attribute in attributes.items():
        if attribute.terms is not None:
            terms = tuple(Term(word, t.kind, t.numbers) for word, t in attribute.terms.items())
        else:
            terms = proposed(name, values[name], attribute.quantiles or 3, ordinal=attribute.ordinal)
        if terms:
            variables.append(Variable(name, terms))
    return tuple(variables)


def proposed(name: str, values: Floats, limit: int = 3, *, ordinal: bool = True) -> tuple[Term, ...]:
    """Terms for an attribute from its values: a crisp term for each of few values, else overlapping quantile terms.

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
    ends = np.concatenate([[distinct[0]], cuts, [distinct[-1]]])
    half = np.minimum(np.diff(ends)[:-1], np.diff(ends)[1:]) / 4
    low, high = cuts - half, cuts + half
    terms = []
    for part in range(len(cuts) + 1):
        start = (distinct[0], distinct[0]) if part == 0 else (low[part - 1], high[part - 1])
        end = (distinct[-1], distinct[-1]) if part == len(cuts) else (low[part], high[part])
        if part == 0:
            words = f"{name} up to {cuts[0]:.6g}"
        elif part == len(cuts):
            words = f"{name} from {cuts[-1]:.6g}"
        else:
            words = f"{name} {cuts[part - 1]:.6g} to {cuts[part]:.6g}"
        terms.append(Term(words, "pi", tuple(map(float, (*start, *end)))))
    return tuple(terms)


def sentence(rule: Sequence[int], variables: Sequence[Variable]) -> str:
    """A rule in words.

    >>> sex = Variable("sex", (Term("male", "crisp", (1, 1)), Term("female", "crisp", (2, 2))))
    >>> sentence([1], [sex]), sentence([0], [sex])
    ('male', 'anyone')
    """
    words = [v.terms[k - 1].name for k, v in zip(rule, variables, strict=True) if k]
    return ", ".join(words) or "anyone"


def minimal(rules: Codes) -> Codes:
    """The rules that no other one covers, plainly: pair by pair. `rule_walk` has the fast twin.

    >>> minimal(np.array([[1, 0], [1, 2], [0, 2]], np.int32)).tolist()
    [[1, 0], [0, 2]]
    """
    keep = []
    for number, rule in enumerate(rules):
        wider = ((rules == 0) | (rules == rule)).all(axis=1) & (rules != rule).any(axis=1)
        if not wider.any():
            keep.append(number)
    return rules[keep]
