"""Which candidates were seen before, by a 64-bit number each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Flags
from sfumato.runtime.compiled import compiled

Hashes = npt.NDArray[np.uint64]


class Seen:
    """A set of numbers that grows by doubling.

    >>> seen = Seen()
    >>> seen.new(np.array([3, 5, 3], dtype=np.uint64)).tolist(), seen.new(np.array([5, 0], dtype=np.uint64)).tolist()
    ([True, True, False], [False, True])
    >>> len(seen)
    3
    """

    def __init__(self, keys: Hashes | None = None) -> None:
        self._table = np.zeros(1 << 12, dtype=np.uint64)
        self._count = 0
        if keys is not None:
            self.new(keys)

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> Hashes:
        """All numbers, in order."""
        return np.sort(self._table[self._table > 0])

    def new(self, hashes: Hashes) -> Flags:
        """Put numbers in; says which were not there."""
        while 2 * (self._count + len(hashes)) > len(self._table):
            larger = np.zeros(2 * len(self._table), dtype=np.uint64)
            insert(larger, self._table[self._table > 0])
            self._table = larger
        fresh = insert(self._table, hashes)
        self._count += int(fresh.sum())
        return fresh


@compiled
def insert(table: Hashes, hashes: Hashes) -> Flags:
    """Insert by open addressing; 0 marks an empty place, so the number 0 is held as 1's neighbour."""
    mask = np.uint64(len(table) - 1)
    fresh = np.zeros(len(hashes), np.bool_)
    for i in range(len(hashes)):
        key = hashes[i] if hashes[i] != 0 else np.uint64(0x9E3779B97F4A7C15)
        slot = (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20) & mask
        while table[slot] != 0 and table[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] == 0:
            table[slot] = key
            fresh[i] = True
    return fresh
