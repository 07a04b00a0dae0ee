"""The (k, k) reading for tables of any size: each record its cheapest supported pattern, then more blanks where needed.

The first step is exact for one half of the reading, every pattern agrees with k source records, so its cost is a bound
of the whole. The second blanks further cells of the records that come nearest to a source record with too few released
ones, which never undoes the first. A solution of the strict reading is one of this reading too. Both are then gone
through once more, and every blank that is not needed is taken back.
"""

from __future__ import annotations

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.runtime.compiled import compiled
from sfumato.systems.cells.patterns import Blanks, mask_costs, masks_by_cost, numbered


def supported(codes: Codes, counts: Counts64, k: int, weights: Floats, allowed: Flags) -> Blanks | None:
    """For each tuple the cheapest mask whose pattern agrees with k source records; None where a tuple has none."""
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


def completed(blanks: Blanks, k: int, weights: Floats, allowed: Flags, whole: int) -> Blanks | None:
    """Blank more until every source record agrees with k released ones, at most `whole` of them blank altogether."""
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


def restored(blanks: Blanks, k: int, weights: Floats) -> Blanks:
    """The same with the blanks taken back that the reading does not need, dear columns first, record by record."""
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
    """Take back one blank after another where k source records still agree, and nobody falls below k released ones."""
    size, width = codes.shape
    for e in range(len(of)):
        if mask[e] == 0:
            continue
        for column in columns:
            if not mask[e] >> column & 1:
                continue
            new = mask[e] & ~(1 << column)
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
