"""The section [cells] of a run file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sfumato.runtime.settings import Settings
from sfumato.sources.settings import Seed


class CellsSettings(Settings):
    """Which single cells may be blanked, and how the blanks are read.

    In the `reading` "strict" a blank is a value of its own, and every released pattern has at least k records. In the
    reading "agreeing", (k, k), every released pattern agrees with at least k source records and every source record
    with at least k released ones, where at most a share `blank_records` of the records is blank in all columns.
    `never` are columns that keep all cells, `limits` the largest share of blanks by column. Problems with at most
    `exact` variables are solved exactly. With `after`, cells are also blanked after so many (`bases`) recodings of the
    front of lattice or cuts, and all are on one front; `effort` and `passes` are as under [local].
    """

    k: tuple[Annotated[int, Field(ge=2, le=10**9)], ...] = Field(default=(2, 3, 5, 10), min_length=1)
    reading: Literal["strict", "agreeing"] = "strict"
    never: tuple[str, ...] = ()
    limits: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    blank_records: float = Field(default=0.0, ge=0, le=1)
    after: Literal["lattice", "cuts"] | None = None
    bases: int = Field(default=6, ge=0, le=1000)
    exact: int = Field(default=1500, ge=0, le=10**6)
    effort: int = Field(default=2, ge=0, le=10**6)
    passes: int = Field(default=2, ge=0, le=10**6)
    test_seed: Seed | None = None
