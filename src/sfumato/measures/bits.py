"""Sets of sensitive values as bits, for the compiled loops of classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Counts64
from sfumato.runtime.compiled import compiled
from sfumato.tables.frequency import FrequencyTable

Masks = npt.NDArray[np.uint64]


@compiled
def bit_count(word: int) -> int:
    """How many bits are set."""
    x = np.uint64(word)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def diversity(mask: Masks, words: Counts64) -> int:
    """The fewest different values over the sensitive columns; `words` says where each column's bits begin."""
    least = 1 << 40
    for column in range(len(words) - 1):
        held = 0
        for w in range(words[column], words[column + 1]):
            held += bit_count(mask[w])
        least = min(least, held)
    return least


def sensitive_masks(table: FrequencyTable) -> tuple[Masks, Counts64]:
    """The sensitive values of each tuple as bits; `words[c]` is where those of column c begin."""
    values = list(table.sensitive.values())
    words = np.concatenate([[0], np.cumsum([-(-len(v.domain.labels) // 64) for v in values])]).astype(np.int64)
    masks = np.zeros((table.tuples, int(words[-1])), dtype=np.uint64)
    for column, held in enumerate(values):
        word, bit = np.divmod(held.values.astype(np.int64), 64)
        np.bitwise_or.at(masks, (held.tuple_of, words[column] + word), np.uint64(1) << bit.astype(np.uint64))
    return masks, words


def no_masks(table: FrequencyTable) -> tuple[Masks, Counts64]:
    """The bits of a table whose sensitive values do not matter."""
    return np.zeros((table.tuples, 0), dtype=np.uint64), np.zeros(1, dtype=np.int64)
