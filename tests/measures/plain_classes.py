"""Class sizes, and the figures of a node of a lattice, computed with numpy alone."""

from __future__ import annotations

import numpy as np

from sfumato.base.arrays import Codes, Counts64, Floats
from sfumato.plans.recodings import Recoding


def class_sizes(codes: Codes, counts: Counts64, recoding: Recoding) -> Counts64:
    """Return the sorted class sizes, computed with numpy alone. Benchmarks compare the kernels with this function."""
    key = np.zeros(codes.shape[1], dtype=np.int64)
    for part, column in zip(recoding, codes, strict=True):
        key = key * part.radix + part.groups[column]
    _, inverse = np.unique(key, return_inverse=True)
    return np.sort(np.bincount(inverse, weights=counts).astype(np.int64))


def node_figures(
    codes: Codes, counts: Counts64, recoding: Recoding, losses: Floats, limit: int, full: float
) -> tuple[int, int, float]:
    """Return k, suppressed records and loss of one recoding, computed with numpy alone, for comparison with the walk.

    The loss of a cell of column j with code c is `losses[j][c]`.
    """
    key = np.zeros(codes.shape[1], dtype=np.int64)
    for part, column in zip(recoding, codes, strict=True):
        key = key * part.radix + part.groups[column]
    _, inverse = np.unique(key, return_inverse=True)
    rows = np.bincount(inverse, weights=counts).astype(np.int64)
    sizes, number = np.unique(rows, return_counts=True)
    goes = int(np.searchsorted(np.cumsum(sizes * number), limit, side="right"))
    k = int(sizes[goes])
    gone = int((sizes * number)[:goes].sum())
    cells = np.zeros(codes.shape[1])
    for loss, column in zip(losses, codes, strict=True):
        cells += loss[column]
    return k, gone, float(np.sum(counts * np.where(rows[inverse] < k, full, cells)))
