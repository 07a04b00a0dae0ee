"""Sorting in compiled loops."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Floats
from sfumato.base.compiled import compiled

RUN = 8  # up to this number, insertion sort is faster


@compiled
def sort_by(keys: Floats | npt.NDArray[np.integer], places: Codes, number: int, spare: Codes) -> None:
    """Sort the first `number` places by their keys. Equal keys keep their order. `spare` is a buffer of this size.

    numpy's own sorts take seconds to compile into a loop.

    >>> places = np.array([0, 1, 2, 3], dtype=np.int32)
    >>> sort_by(np.array([2.0, 1.0, 2.0, 0.0]), places, 4, np.empty(4, dtype=np.int32))
    >>> places.tolist()
    [3, 1, 0, 2]
    """
    # Short runs are sorted by insertion and then merged, which is stable and needs one buffer.
    for begin in range(0, number, RUN):
        for i in range(begin + 1, min(begin + RUN, number)):
            one = places[i]
            key = keys[one]
            j = i
            while j > begin and keys[places[j - 1]] > key:
                places[j] = places[j - 1]
                j -= 1
            places[j] = one
    width = RUN
    while width < number:
        for begin in range(0, number, 2 * width):
            middle, end = min(begin + width, number), min(begin + 2 * width, number)
            a, b = begin, middle
            for at in range(begin, end):
                if a < middle and (b >= end or keys[places[a]] <= keys[places[b]]):
                    spare[at] = places[a]
                    a += 1
                else:
                    spare[at] = places[b]
                    b += 1
        for at in range(number):
            places[at] = spare[at]
        width *= 2
