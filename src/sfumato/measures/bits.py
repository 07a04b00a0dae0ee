"""Sets of sensitive values as bits, for the compiled loops of classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.runtime.arrays import Codes, Counts64
from sfumato.runtime.compiled import compiled
from sfumato.tables.domain import HARMFUL, UNKNOWN, Domain
from sfumato.tables.frequency import FrequencyTable

Masks = npt.NDArray[np.uint64]
EXEMPT = 1 << 30  # the diversity of a class in which there is nothing to be learned: larger than any other


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
    """The fewest different values over the sensitive columns; `words` says where each column's bits begin.

    The first bit of a column is that of all harmless values together, and a missing value has none. A column with no
    other bit is exempt; EXEMPT says that all are.
    """
    least = EXEMPT
    for column in range(len(words) - 1):
        held = 0
        for w in range(words[column], words[column + 1]):
            held += bit_count(mask[w])
        harmless = int(mask[words[column]] & np.uint64(1)) if words[column + 1] > words[column] else 0
        if held > harmless:
            least = min(least, held)
    return least


def bits_of(domain: Domain) -> Codes:
    """The bit of each label: the first for all that are harmless, -1 for a missing value, which has none."""
    harmful = domain.harm == HARMFUL
    bits = np.where(harmful, np.cumsum(harmful), 0)
    return np.where(domain.harm == UNKNOWN, -1, bits).astype(np.int32)


def sensitive_masks(table: FrequencyTable) -> tuple[Masks, Counts64]:
    """The sensitive values of each tuple as bits; `words[c]` is where those of column c begin."""
    values = list(table.sensitive.values())
    bits = [bits_of(held.domain) for held in values]
    sizes = [int(of.max(initial=0)) // 64 + 1 for of in bits]
    words = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    masks = np.zeros((table.tuples, int(words[-1])), dtype=np.uint64)
    for column, (held, of) in enumerate(zip(values, bits, strict=True)):
        place = of[held.values].astype(np.int64)
        known = place >= 0
        word, bit = np.divmod(place[known], 64)
        there = np.uint64(1) << bit.astype(np.uint64)
        np.bitwise_or.at(masks, (held.tuple_of[known], words[column] + word), there)
    return masks, words


def no_masks(table: FrequencyTable) -> tuple[Masks, Counts64]:
    """The bits of a table whose sensitive values do not matter."""
    return np.zeros((table.tuples, 0), dtype=np.uint64), np.zeros(1, dtype=np.int64)
