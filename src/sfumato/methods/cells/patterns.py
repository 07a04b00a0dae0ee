"""Released patterns: tuples with some blank cells, and the records that agree with them.

A pattern agrees with a record if all its cells that are not blank have the record's values. A mask states which cells
are blank, with bit j for column j. Patterns with the same mask agree with a record exactly if their other cells are
equal, so agreement is counted mask by mask.

`Kept` computes what columns without blanks rule out: records of rare values in them can only be suppressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.text import number
from sfumato.errors import UnreachableError, counted, shortened

MANY_MASKS = 128  # with more masks, matches under "a blank matches anything" are not counted, in quadratic time


@dataclass(frozen=True, eq=False)
class Blanks:
    """Blank cells: `count[e]` records of tuple `of[e]` are released with the cells of `mask[e]` blank.

    `codes[t, j]` is the value of tuple t in column j, and `counts[t]` its number of records. Records in no entry are
    suppressed.
    """

    codes: Codes
    counts: Counts64
    of: Counts64
    mask: Counts64
    count: Counts64

    @property
    def columns(self) -> int:
        return int(self.codes.shape[1])

    @property
    def released(self) -> Counts64:
        """The number of records of each tuple that are not suppressed."""
        return np.bincount(self.of, weights=self.count, minlength=len(self.counts)).astype(np.int64)

    def cost(self, weights: Floats) -> float:
        """Return the number of blank cells, each multiplied by the weight of its column."""
        return float((mask_costs(self.mask, weights) * self.count).sum())

    def blanked(self) -> Counts64:
        """Return the number of blank cells of each column."""
        return np.asarray((bits_of(self.mask, self.columns) * self.count[:, None]).sum(axis=0))

    @property
    def whole(self) -> int:
        """The number of records that are blank in every column."""
        return int(self.count[self.mask == (1 << self.columns) - 1].sum())

    def sizes(self) -> Counts64:
        """Return for each entry the number of records with the same pattern: k in the strict reading."""
        sizes = np.zeros(len(self.of), dtype=np.int64)
        for mask in np.unique(self.mask).tolist():
            some = self.mask == mask
            keys = numbered(self.codes, mask)[self.of[some]]
            sizes[some] = np.bincount(keys, weights=self.count[some]).astype(np.int64)[keys]
        return sizes

    def agreeing(self) -> tuple[Counts64, Counts64]:
        """Return for each entry the source records that agree, and for each tuple the released records that agree."""
        source = np.zeros(len(self.of), dtype=np.int64)
        released = np.zeros(len(self.counts), dtype=np.int64)
        for mask in np.unique(self.mask).tolist():
            some = self.mask == mask
            keys = numbered(self.codes, mask)
            own = keys[self.of[some]]
            source[some] = np.bincount(keys, weights=self.counts).astype(np.int64)[own]
            rows = np.bincount(own, weights=self.count[some], minlength=int(keys.max()) + 1).astype(np.int64)
            released += rows[keys]
        return source, released

    def matching(self) -> int | None:
        """Return the least number of released records that match one of them if a blank matches anything.

        None if there are too many masks. sdcMicro counts in this way. The figure alone is no protection: blanking k - 1
        complete records satisfies it.
        """
        masks = np.unique(self.mask).tolist()
        if len(masks) > MANY_MASKS:
            return None
        matching = np.zeros(len(self.of), dtype=np.int64)
        for one in masks:
            some = self.mask == one
            for two in masks:
                other = self.mask == two
                keys = numbered(self.codes, one | two)
                theirs = keys[self.of[other]]
                rows = np.bincount(theirs, weights=self.count[other], minlength=int(keys.max()) + 1)
                matching[some] += rows[keys[self.of[some]]].astype(np.int64)
        return int(matching.min()) if len(matching) else 0

    def merged(self) -> Blanks:
        """Return the same blanks with the entries of one tuple and mask merged."""
        pairs, number = np.unique(np.stack([self.of, self.mask], axis=1), axis=0, return_inverse=True)
        count = np.bincount(number.reshape(-1), weights=self.count).astype(np.int64)
        return Blanks(self.codes, self.counts, pairs[:, 0].copy(), pairs[:, 1].copy(), count)


def bits_of(masks: Counts64, columns: int) -> Counts64:
    """Return for each mask and column whether the cell is blank, as 0 or 1."""
    return np.asarray((masks[:, None] >> np.arange(columns)) & 1)


def mask_costs(masks: Counts64, weights: Floats) -> Floats:
    """Return the cost per record of each mask."""
    return np.asarray(bits_of(masks, len(weights)) @ weights, dtype=np.float64)


def numbered(codes: Codes, mask: int) -> Counts64:
    """Return a number for each tuple; equal numbers mean equal values in all cells that are not blank."""
    keys = np.zeros(len(codes), dtype=np.int64)
    largest = 1
    for j in range(codes.shape[1]):
        if mask >> j & 1:
            continue
        width = int(codes[:, j].max(initial=0)) + 1
        if largest > 2**62 // width:  # before the product overflows, the keys are renumbered
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
            largest = len(codes)
        keys = keys * width + codes[:, j]
        largest *= width
    return np.unique(keys, return_inverse=True)[1].reshape(-1)


def masks_by_cost(columns: int, weights: Floats, allowed: Flags) -> Counts64:
    """Return every mask over the columns that may have blanks, cheapest first."""
    masks = np.arange(1 << columns, dtype=np.int64)
    never = sum(1 << j for j in range(columns) if not allowed[j])
    masks = masks[(masks & never) == 0]
    return np.asarray(masks[np.lexsort((masks, mask_costs(masks, weights)))])


@dataclass(frozen=True, eq=False)
class Kept:
    """The columns of a table without blanks, and how many of its records may be suppressed.

    `removed` records were removed before and count as suppressed.
    """

    names: tuple[str, ...]
    codes: Codes
    counts: Counts64
    keeps: Flags
    budget: int
    removed: int = 0

    def enough(self, k: int) -> Flags:
        """Return the tuples whose values here occur in k records; no class of k can have any other tuple."""
        return np.asarray(self._sizes() >= k)

    def short(self, k: int) -> int:
        """Return the number of records of the other tuples."""
        return int(self.counts[~self.enough(k)].sum())

    def reaches(self, k: int) -> bool:
        return self.short(k) <= self.budget

    @property
    def largest(self) -> int:
        """The largest k that needs no more suppressed records than allowed."""
        return max((int(size) for size in np.unique(self._sizes()) if self.reaches(int(size))), default=0)

    def without(self, name: str) -> Kept:
        """Return the same with one more column that may have blanks."""
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
    """Return the error if columns without blanks rule out k, with the nearest possible request in one of the tables.

    `suppresses` states whether the reading can suppress records at all.
    """
    best = max(tables, key=lambda one: one.largest)
    columns, records, short = best.columns, int(best.counts.sum()), best.short(k)
    nearer = [f"k = {number(best.largest)}"] if best.largest > 1 else []
    enough = [name for name in columns if best.without(name).reaches(k)]
    nearer += [f"blanks allowed in {' or '.join(enough[:3])}"] if enough else []
    if suppresses and short < records:
        least = (short + best.removed) / (records + best.removed)
        nearer.append(f"max_suppression from {np.ceil(least * 1000 - 1e-9) / 1000:g} on")  # so that the records fit
    keep = "keeps its cells" if len(columns) == 1 else "keep their cells"
    return UnreachableError(
        f"{shortened(columns)} {keep}, and {short:,} of {counted(records, 'record')} have values there that fewer than "
        f"{k:,} records share",
        expected="cells that may be blanked until k records agree",
        remedy="; or ".join(nearer) or "fewer columns that keep their cells",
    )
