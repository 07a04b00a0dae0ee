"""(k, k)-anonymity for tables of any size, by heuristics, and its audit by matching.

First, `source_support` blanks the cheapest cells such that every pattern agrees with k source records. It is exact for
this half of the requirement, so its cost is a lower bound for both halves. Then `release_support` blanks further cells,
until every source record agrees with k released ones; this never undoes the first half. It changes the records closest
to the source record that agrees with too few. A solution of the strict reading satisfies (k, k)-anonymity too. Finally,
`without_needless` takes back every blank of a solution that is not needed.

Matching: every released row belongs to some source record, so an assignment gives each row a different source record
that it agrees with. Source records may remain, as suppressed ones do. A row is possible for a person if some assignment
gives it to that person. One assignment is known: that of the publisher. With it, a row is possible for a person exactly
if both are in one strongly connected component of the residual graph. The graph has one more node, which is joined to
the source records that remain (docs/cells.md). Records with equal values are one node with a count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled
from sfumato.methods.cells.patterns import Blanks, mask_costs, masks_by_cost, numbered
from sfumato.release.policy import MATCHING_K, MATCHING_PEOPLE


def source_support(codes: Codes, counts: Counts64, k: int, weights: Floats, allowed: Flags) -> Blanks | None:
    """Return for each tuple the cheapest mask whose pattern agrees with k source records; None if a tuple has none."""
    left = np.arange(len(counts))
    masks = np.full(len(counts), -1, dtype=np.int64)
    for mask in masks_by_cost(codes.shape[1], weights, allowed).tolist():
        keys = numbered(codes, mask)
        enough = np.bincount(keys, weights=counts)[keys[left]] >= k
        masks[left[enough]] = mask
        left = left[~enough]
        if not len(left):
            return Blanks(codes, counts, np.arange(len(counts)), masks, counts.copy())
    return None


def release_support(blanks: Blanks, k: int, weights: Floats, allowed: Flags, whole: int) -> Blanks | None:
    """Add blanks until every source record agrees with k released ones; at most `whole` records become fully blank."""
    codes, counts = blanks.codes, blanks.counts
    of, mask, count = blanks.of.tolist(), blanks.mask.tolist(), blanks.count.tolist()
    _, released = blanks.agreeing()
    columns = np.arange(codes.shape[1])
    bits = 1 << columns
    full = (1 << codes.shape[1]) - 1
    never = int(sum(bits[~allowed]))
    spare = whole - blanks.whole
    while True:
        short = np.flatnonzero(released < k)
        if not len(short):
            break
        r = int(short[np.argmin(released[short])])
        tuples, masks = np.array(of), np.array(mask)
        more = ((codes[tuples] != codes[r]) * bits).sum(axis=1) & ~masks
        price = mask_costs(more, weights)
        usable = (more > 0) & ((more & never) == 0) & (np.array(count) > 0)
        if spare <= 0:
            usable &= (masks | more) != full
        if not usable.any():
            return None
        best = int(np.flatnonzero(usable)[np.argmin(price[usable])])
        rows = min(k - int(released[r]), count[best])
        new = int(masks[best] | more[best])
        if new == full:
            rows = min(rows, spare)
            spare -= rows
        before, after = _agree(codes, of[best], mask[best]), _agree(codes, of[best], new)
        released += rows * (after.astype(np.int64) - before)
        count[best] -= rows
        of.append(of[best])
        mask.append(new)
        count.append(rows)
    kept = np.array(count) > 0
    blanks = Blanks(codes, counts, np.array(of)[kept], np.array(mask)[kept], np.array(count, dtype=np.int64)[kept])
    return blanks.merged()


def _agree(codes: Codes, of: int, mask: int) -> Flags:
    kept = [j for j in range(codes.shape[1]) if not mask >> j & 1]
    return np.asarray((codes[:, kept] == codes[of, kept]).all(axis=1))


def without_needless(blanks: Blanks, k: int, weights: Floats) -> Blanks:
    """Take back blanks that are not needed, record by record, the most expensive columns first."""
    order = np.argsort(-mask_costs(blanks.mask, weights), kind="stable")
    of, mask = np.repeat(blanks.of[order], blanks.count[order]), np.repeat(blanks.mask[order], blanks.count[order])
    _, released = blanks.agreeing()
    columns = np.argsort(-weights, kind="stable")
    take_back(blanks.codes, blanks.counts, of, mask, released, k, columns)
    one = np.ones(len(of), dtype=np.int64)
    return Blanks(blanks.codes, blanks.counts, of, mask, one).merged()


@compiled
def take_back(
    codes: Codes, counts: Counts64, of: Counts64, mask: Counts64, released: Counts64, k: int, columns: Counts64
) -> None:
    """Take back blanks while k source records still agree and no source record falls below k released ones."""
    size, width = codes.shape
    # One pass suffices: restored cells only lower the counts, so a blank that was needed once is needed for good.
    for e in range(len(of)):
        if mask[e] == 0:
            continue
        for column in columns:
            if not mask[e] >> column & 1:
                continue
            new = mask[e] & ~(1 << column)
            # Source tuples that agree now and differ in this column lose a released record; each must have more than k.
            support = 0
            fine = True
            for t in range(size):
                agrees = True
                for j in range(width):
                    if not mask[e] >> j & 1 and codes[t, j] != codes[of[e], j]:
                        agrees = False
                        break
                if agrees:
                    if codes[t, column] == codes[of[e], column]:
                        support += counts[t]
                    elif released[t] <= k:
                        fine = False
                        break
            if not fine or support < k:
                continue
            for t in range(size):
                agrees = codes[t, column] != codes[of[e], column]
                if agrees:
                    for j in range(width):
                        if not mask[e] >> j & 1 and codes[t, j] != codes[of[e], j]:
                            agrees = False
                            break
                if agrees:
                    released[t] -= 1
            mask[e] = new


MOST_EDGES = 30_000_000  # limit on pairs of a tuple and a row that agree; their graph takes about 1.2 GB
MOST_WORK = 400_000_000  # limit on tuples times masks; about two minutes


@dataclass(frozen=True, eq=False)
class Possible:
    """The number of possible released records for each source tuple, and of possible source records for each entry.

    The smallest of the first is matching k.
    """

    rows: Counts64
    people: Counts64

    @property
    def matching_k(self) -> int:
        return min(self.rows.tolist(), default=0)

    @property
    def matching_people(self) -> int:
        return min(self.people.tolist(), default=0)

    def reaches(self, k: int) -> bool:
        """Return whether both numbers are at least k."""
        return min(self.matching_k, self.matching_people) >= k


def possible(blanks: Blanks) -> Possible | None:
    """Return what is possible for each person and each row; None if there are too many pairs to examine."""
    tuples = len(blanks.counts)
    if len(np.unique(blanks.mask)) * tuples > MOST_WORK:
        return None
    row_of, released = _rows(blanks)
    pairs = [np.zeros((2, 0), np.int32)]
    edges = 0
    for own, rows in _agreeing(blanks, row_of):
        edges += len(own)
        if edges > MOST_EDGES:
            return None
        pairs.append(np.stack([own, rows]).astype(np.int32))
    own, rows = np.concatenate(pairs, axis=1)
    del pairs
    part = _components(blanks, own, rows, row_of, len(released))
    joined = part[own] == part[tuples + rows]
    own, rows = own[joined], rows[joined]
    for_tuples = np.bincount(own, weights=released[rows], minlength=tuples).astype(np.int64)
    for_rows = np.bincount(rows, weights=blanks.counts[own], minlength=len(released)).astype(np.int64)
    return Possible(for_tuples, for_rows[row_of])


def counted_by_matching(blanks: Blanks) -> dict[str, int | None]:
    """Return both figures of a file by name; None for figures that were not computed."""
    found = possible(blanks)
    known = (None, None) if found is None else (found.matching_k, found.matching_people)
    return {MATCHING_K: known[0], MATCHING_PEOPLE: known[1]}


def enough_possible(blanks: Blanks, k: int) -> bool:
    """Return whether k released records are possible for every person, and k persons for every released record."""
    found = possible(blanks)
    return found is not None and found.reaches(k)


def reach_matching_k(blanks: Blanks, classes: Blanks, k: int) -> Blanks:
    """Add blanks until k released records are possible for every person and k persons for every released record.

    `classes` are blanks of the same records in the strict reading. If too few rows are possible for a record, all
    records of its class receive the blanks of that class, so each of them can have each of these rows. This ends at the
    latest when all classes are used. If matching cannot be computed, the blanks are returned unchanged.
    """
    of, mask, _ = _records(blanks)
    _, least, own = _records(classes)
    while True:
        pairs, entry = np.unique(np.stack([of, mask], axis=1), axis=0, return_inverse=True)
        entry = entry.reshape(-1)
        count = np.bincount(entry).astype(np.int64)
        blanks = Blanks(blanks.codes, blanks.counts, pairs[:, 0].copy(), pairs[:, 1].copy(), count)
        found = possible(blanks)
        if found is None or found.reaches(k):
            return blanks
        short = (found.rows[of] < k) | (found.people[entry] < k)
        mask = np.where(np.isin(own, own[short]), mask | least, mask)


def _records(blanks: Blanks) -> tuple[Counts64, Counts64, Counts64]:
    """Return the tuple, the mask and the row of every record, sorted by tuple and mask."""
    row_of, _ = _rows(blanks)
    by = np.lexsort((blanks.mask, blanks.of))
    of, mask, row = (np.repeat(each[by], blanks.count[by]) for each in (blanks.of, blanks.mask, row_of))
    return of, mask, row


def _rows(blanks: Blanks) -> tuple[Counts64, Counts64]:
    """Return the number of the released row of each entry, and the number of records with each row."""
    row_of = np.zeros(len(blanks.of), dtype=np.int64)
    total = 0
    for some, keys in blanks.by_mask():
        present, number = np.unique(keys[blanks.of[some]], return_inverse=True)
        row_of[some] = number.reshape(-1) + total
        total += len(present)
    return row_of, np.bincount(row_of, weights=blanks.count, minlength=total).astype(np.int64)


def _agreeing(blanks: Blanks, row_of: Counts64) -> Iterator[tuple[Counts64, Counts64]]:
    """Yield pairs of a tuple and a row that agree with each other, mask by mask."""
    for some, keys in blanks.by_mask():
        row = np.full(int(keys.max(initial=0)) + 1, -1, dtype=np.int64)
        row[keys[blanks.of[some]]] = row_of[some]
        own = np.flatnonzero(row[keys] >= 0)
        yield own, row[keys[own]]


def _components(blanks: Blanks, own: Counts64, rows: Counts64, row_of: Counts64, released: int) -> Counts64:
    """Return the strongly connected component of each tuple, of each row, and of the node for the rest.

    Edges lead from a tuple to every row that agrees with it, and from a row to the tuple that has it. A tuple with
    remaining records can take one more row. A tuple that has a row can release it in exchange.
    """
    tuples = len(blanks.counts)
    given, over = blanks.released, tuples + released
    free, used = np.flatnonzero(blanks.counts > given), np.flatnonzero(given > 0)
    start = [own, tuples + row_of, np.full(len(free), over), used]
    end = [tuples + rows, blanks.of, free, np.full(len(used), over)]
    first, second = (np.concatenate(part).astype(np.int32) for part in (start, end))
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(over + 1, over + 1))
    return np.asarray(connected_components(graph.tocsr(), directed=True, connection="strong")[1])
