"""What columns that keep all their cells rule out: records of rare values in them can only be suppressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import UnreachableError, counted, shortened
from sfumato.runtime.arrays import Codes, Counts64, Flags
from sfumato.runtime.figures import number
from sfumato.systems.cells.patterns import numbered


@dataclass(frozen=True, eq=False)
class Kept:
    """Which columns of a table keep their cells, how many of its records may be suppressed, and how many were removed
    before, which count as suppressed."""

    names: tuple[str, ...]
    codes: Codes
    counts: Counts64
    keeps: Flags
    budget: int
    removed: int = 0

    def enough(self, k: int) -> Flags:
        """The tuples whose values in these columns k records share; no class of k can have any of the others."""
        return np.asarray(self._sizes() >= k)

    def short(self, k: int) -> int:
        """How many records the other tuples have."""
        return int(self.counts[~self.enough(k)].sum())

    def reaches(self, k: int) -> bool:
        return self.short(k) <= self.budget

    @property
    def largest(self) -> int:
        """The largest k for which no more records have to be suppressed than may be."""
        return max((int(size) for size in np.unique(self._sizes()) if self.reaches(int(size))), default=0)

    def without(self, name: str) -> Kept:
        """The same where one of the columns need not keep its cells."""
        keeps = self.keeps & np.array([own != name for own in self.names])
        return Kept(self.names, self.codes, self.counts, keeps, self.budget, self.removed)

    @property
    def columns(self) -> list[str]:
        return [name for name, keeps in zip(self.names, self.keeps, strict=True) if keeps]

    def _sizes(self) -> Counts64:
        mask = int(sum(1 << j for j, keeps in enumerate(self.keeps) if not keeps))
        keys = numbered(self.codes, mask)
        return np.asarray(np.bincount(keys, weights=self.counts).astype(np.int64)[keys])


def refused(tables: Sequence[Kept], k: int, *, suppresses: bool) -> UnreachableError:
    """The error where columns that keep their cells rule out k: the nearest that they allow, in one of the tables.

    `suppresses` says whether the reading can suppress records at all.
    """
    best = max(tables, key=lambda one: one.largest)
    columns, records, short = best.columns, int(best.counts.sum()), best.short(k)
    nearer = [f"k = {number(best.largest)}"] if best.largest > 1 else []
    enough = [name for name in columns if best.without(name).reaches(k)]
    nearer += [f"blanks allowed in {' or '.join(enough[:3])}"] if enough else []
    if suppresses and short < records:
        least = (short + best.removed) / (records + best.removed)
        nearer.append(f"max_suppression from {_ceiling(least):g} on")
    keep = "keeps its cells" if len(columns) == 1 else "keep their cells"
    return UnreachableError(
        f"{shortened(columns)} {keep}, and {short:,} of {counted(records, 'record')} have values there that fewer than "
        f"{k:,} records share",
        expected="cells that may be blanked until k records agree",
        remedy="; or ".join(nearer) or "fewer columns that keep their cells",
    )


def _ceiling(share: float) -> float:
    """A share rounded up, so that the records fit into it."""
    return float(np.ceil(share * 1000 - 1e-9) / 1000)
