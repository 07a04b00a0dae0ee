"""Records as memberships: tabulated once per value, compressed to distinct tuples, ready for rules.

A membership under α makes every product under α, so it counts as none; values that no rule can tell apart then share
a code, and records with the same codes share a tuple. A file of millions shrinks to what rules can see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.systems.groups.attack.rules import Variable
from sfumato.systems.groups.files.microfile import Microfile

ALPHA = 0.5
WIDE = 1 << 62


@dataclass(frozen=True)
class Graded:
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
        """Records per tuple, all or some."""
        index = self.tuple_of if chosen is None else self.tuple_of[chosen]
        return np.bincount(index, minlength=self.tuples).astype(np.float64)

    def part(self, chosen: Flags) -> Graded:
        """Some of the records, and only the tuples that they have."""
        present, number = np.unique(self.tuple_of[chosen], return_inverse=True)
        codes = np.ascontiguousarray(self.codes[:, present])
        return Graded(codes, self.grades, self.start, self.terms, number.reshape(-1).astype(np.int32))


def grade(microfile: Microfile, variables: Sequence[Variable], alpha: float = ALPHA) -> Graded:
    """Compress a microfile to what the variables can tell apart."""
    tables, columns, widths = [], [], []
    for variable in variables:
        position = microfile.attributes.index(variable.attribute)
        of_values = variable.grades(microfile.values[position])
        of_values[of_values < alpha] = 0.0
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
    """Equal combinations of codes get equal numbers; also the first record of each."""
    key, space = np.zeros(len(columns[0]), np.int64), 1
    for column, width in zip(columns, widths, strict=True):
        if space * width > WIDE:
            _, key = np.unique(key, return_inverse=True)
            space = int(key.max()) + 1
        key = key * width + column
        space *= width
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return number.astype(np.int32), first.astype(np.int64)
