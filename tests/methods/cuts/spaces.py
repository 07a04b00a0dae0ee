"""Plans as bits of a space of cuts, and which bits a space allows."""

from __future__ import annotations

import numpy as np

from sfumato.methods.cuts.space import CutSpace
from sfumato.plans.recodings import CutPlan
from sfumato.plans.segments import Bits


def bits_of(space: CutSpace, plan: CutPlan) -> Bits:
    return np.concatenate([np.isin(s.starts[1:], plan.cuts[s.name]).astype(np.uint8) for s in space.segments])


def valid(space: CutSpace, bits: Bits) -> bool:
    return all(segment.valid(part) for segment, part in zip(space.segments, space.parts(bits), strict=True))
