"""What swaps do to the tables of areas: how far shares of categories move, and how the mixture changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Floats
from sfumato.systems.groups.files.microfile import Microfile

GROUPS = 8  # an attribute with more values is put into so many groups


@dataclass(frozen=True)
class Shift:
    """Shares of all records that moved, and of the tables area by attribute: the mean and the largest change of a
    category's share (bias), and the mean change of an area's entropy, with its sign and without, in bits."""

    rate: float
    bias: float
    largest: float
    entropy: float
    entropy_change: float

    def as_dict(self) -> dict[str, Any]:
        return {name: round(float(getattr(self, name)), 6) for name in self.__dataclass_fields__}


def shift_of(before: Microfile, after: Codes) -> Shift:
    """The shift that other areas of the same records make."""
    biases, gains = [], []
    for position, values in enumerate(before.values):
        codes = _grouped(before.codes[position].astype(np.int64), len(values))
        one, two = (_shares(codes, areas, len(before.areas)) for areas in (before.area_of, after))
        biases.append(np.abs(two - one).reshape(-1))
        gains.append(_entropy(two) - _entropy(one))
    bias, gain = np.concatenate(biases), np.concatenate(gains)
    rate = float((before.area_of != after).mean())
    return Shift(rate, float(bias.mean()), float(bias.max()), float(np.abs(gain).mean()), float(gain.mean()))


def _grouped(codes: Counts64, count: int) -> Counts64:
    if count <= GROUPS:
        return codes
    of_value = np.bincount(codes, minlength=count)
    middle = np.cumsum(of_value) - of_value / 2
    grouped: Counts64 = np.minimum((middle * GROUPS / len(codes)).astype(np.int64), GROUPS - 1)[codes]
    return grouped


def _shares(codes: Counts64, area_of: Codes, areas: int) -> Floats:
    width = int(codes.max(initial=0)) + 1
    table = np.bincount(area_of.astype(np.int64) * width + codes, minlength=areas * width).reshape(areas, width)
    shares: Floats = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    return shares


def _entropy(shares: Floats) -> Floats:
    """Bits of each row.

    >>> _entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits: Floats = np.maximum(-(shares * logs).sum(axis=1), 0.0)
    return bits
