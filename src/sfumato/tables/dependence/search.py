"""What is asked about a table that was looked at: which column may tell which, on which rows, and how near is near."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.runtime.arrays import Codes
from sfumato.tables.dependence.counts import ERRORS, Guess
from sfumato.tables.dependence.rows import Hashes, Look, Looks
from sfumato.tables.dependence.types import Protected

SLACK = 0.05  # a share on some rows may be lower than on all of them
SLACK_BY_VALUE = 0.10  # and lower still where the rows are those of some values
MANY = 100  # different numbers from which the order of a column says more than its values

Labels = Mapping[str, tuple[Hashes, Sequence[Codes]]]


@dataclass
class Search:
    """`labels` are, for each generalized column, the hashes of its values in order and their labels by step."""

    looks: Looks
    kept: Sequence[str]
    beside: Sequence[str]
    protected: Sequence[Protected]
    labels: Labels
    _known: dict[tuple[int, str], list[Codes]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All columns, in the order of their positions in the engine's tables."""
        return list(self.looks.sample.codes)

    def may_tell(self, name: str, protected: Protected) -> bool:
        """Whether a column is asked what it tells of another, alone.

        Sensitive columns are not asked about each other, because no outsider knows either; quasi-identifiers that are
        released unchanged are asked about generalized ones only, and generalized ones about none.
        """
        if name == protected.name:
            return False
        if name in self.kept:
            return not (protected.status == "sensitive" and self._sensitive(name))
        return protected.status == "generalized" and name in self.beside

    def may_help(self, name: str, protected: Protected) -> bool:
        """Whether a column may be one of two that tell another."""
        return name != protected.name and not (protected.status == "sensitive" and self._sensitive(name))

    def _sensitive(self, name: str) -> bool:
        return any(p.name == name and p.status == "sensitive" for p in self.protected)

    def questions(self) -> Iterator[tuple[str, Protected]]:
        """Every column that may tell another alone, and the other."""
        for protected in self.protected:
            for name in (*self.kept, *self.beside):
                if self.may_tell(name, protected):
                    yield name, protected

    def steps(self, look: Look, protected: Protected) -> list[Codes]:
        """A protected column on the rows of a look: its values, then the labels of each step; the last is released."""
        key = (id(look), protected.name)
        if key not in self._known:
            values = look.codes[protected.name]
            labels = [np.zeros(len(values), dtype=np.int32)]
            if protected.steps:
                hashes, columns = self.labels[protected.name]
                index = np.minimum(np.searchsorted(hashes, look.hashes[protected.name]), len(hashes) - 1)
                known = hashes[index] == look.hashes[protected.name]
                labels = [np.where(known, column[index], column.max() + 1)[values] for column in columns]
            self._known[key] = [values, *(label.astype(np.int32) for label in labels)]
        return self._known[key]

    def suggests(self, guess: Guess, look: Look) -> bool:
        """Whether a guess on some rows is near enough to a dependence to be counted on all of them."""
        slack = 0.0 if self.looks.whole else SLACK if look is self.looks.sample else SLACK_BY_VALUE
        return guess.tells(slack)

    def ordered(self, name: str) -> bool:
        """Whether a column is a number with so many values that neighbours in its order are looked at."""
        return self.looks.numeric(name) and len(self.looks.sample.hashes[name]) >= MANY

    def kept_first(self, one: str, two: str) -> tuple[str, str]:
        """Two columns, first the one that is released unchanged: a kept one before a quasi-identifier."""
        rank = [0 if name in self.kept else 1 if name in self.beside else 2 for name in (one, two)]
        return (one, two) if rank[0] <= rank[1] else (two, one)


def adds(share: float, alone: float) -> bool:
    """Whether two columns remove at least half of the errors that the better of them makes alone."""
    return share > alone and share - alone >= ERRORS * (1 - alone)
