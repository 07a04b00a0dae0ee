"""The section [local] of a run file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sfumato.runtime.settings import Settings
from sfumato.sources.settings import Seed


class LocalSettings(Settings):
    """Which k to search for, and how long.

    `k` are the class sizes of the front; without any, eleven from 2 to 100. `method` "boxes" tries everything, "runs"
    only sorts and divides, which suits tables of any size. `effort` are rounds of improvement for each k and `passes`
    those that raise its floor. A record of a tuple that lies in several classes is put into one of them at random, by
    the randomness of the operating system; `test_seed` fixes that, for tests only. With `draw`, losses of the front are
    raised by this share, and what is published is drawn at random among recodings that lose no more. With `bounds`,
    columns of numbers have the ends of each range in two columns beside them, `age_low` and `age_high`.
    """

    k: Annotated[tuple[Annotated[int, Field(ge=1, le=10**9)], ...], Field(min_length=1)] | None = None
    method: Literal["boxes", "runs"] = "boxes"
    effort: int = Field(default=0, ge=0, le=10**6)
    passes: int = Field(default=2, ge=0, le=10**6)
    bounds: bool = False
    draw: float = Field(default=0.0, ge=0, le=1)
    test_seed: Seed | None = None
