"""Datafly (Sweeney 1997): generalize the column with most different values by one level until few records stand out.

Readings: docs/readings.md, 2, Datafly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Levels = tuple[int, ...]


def datafly(
    heights: Sequence[int],
    different: Callable[[int, int], int],
    short: Callable[[Levels], int],
    allowed: int,
    records: int,
) -> Levels | None:
    """The levels at which Datafly stops; None where even the top is too little.

    `different(column, level)` are the different values of a column at a level, `short(levels)` the records whose class
    is too small there. It stops when at most `allowed` are, and some record is left.

    >>> values = [[9, 3, 1], [4, 1]]
    >>> datafly([2, 1], lambda column, level: values[column][level], lambda at: 5 if sum(at) < 2 else 0, 0, 9)
    (1, 1)
    """
    levels = [0] * len(heights)
    while True:
        gone = short(tuple(levels))
        if gone <= allowed and gone < records:
            return tuple(levels)
        open_columns = [j for j, height in enumerate(heights) if levels[j] < height]
        if not open_columns:
            return None
        widest = max(open_columns, key=lambda j: (different(j, levels[j]), -j))
        levels[widest] += 1
