"""How well grades tell members from others."""

from __future__ import annotations

import numpy as np

from sfumato.runtime.arrays import Flags, Floats


def average_precision(members: Flags, grades: Floats) -> float:
    """The mean precision at the members, from the highest grade down; equal grades count together.

    >>> average_precision(np.array([True, False, True]), np.array([0.9, 0.8, 0.7])).__round__(4)
    0.8333
    """
    order = np.argsort(-grades, kind="stable")
    ends = np.flatnonzero(np.diff(grades[order], append=np.inf) != 0)
    hit = np.cumsum(members[order])[ends]
    recall = hit / max(int(members.sum()), 1)
    return float((np.diff(recall, prepend=0.0) * hit / (ends + 1)).sum())
