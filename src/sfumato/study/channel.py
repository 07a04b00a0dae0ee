"""The section [channel] of a run file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from sfumato.errors import StudyError
from sfumato.runtime.settings import Settings
from sfumato.sources.settings import Seed


class ChannelSettings(Settings):
    """Which sensitive columns to disguise, how much any report may reveal, and how to look for matrices.

    `delta` is an upper bound on the posterior probability of any category given a report, 0.75 where neither it nor
    `epsilon` is given; `epsilon` caps local differential privacy, and alone gives a front over ε; `gain` caps how many
    times its share a category's posterior may be. `invariant` asks for matrices that leave the shares as they are.
    The prior comes from the data, or from a file of categories and shares with a number of records. A public matrix
    tells the shares that it is designed for: by default these are the table's, rounded to powers of
    1 + `coarsen` (0.1);
    `design` can be "exact" or "uniform" instead. `keep` are columns that are released beside the disguised ones as
    they are; the search then bounds ε, so that the policy's rule `response` holds for whatever they reveal. `given` are
    columns whose combinations with enough records get limits of their own instead: such matrices are best found.
    """

    columns: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    delta: float | None = Field(default=None, gt=0, le=1)
    gain: float | None = Field(default=None, gt=1, le=10**6)
    engine: Literal["exact", "square", "optrr"] = "exact"
    invariant: bool = False
    design: Literal["coarse", "exact", "uniform"] | None = None
    coarsen: float | None = Field(default=None, gt=0, le=10)
    points: int = Field(default=24, ge=1, le=1000)
    privacy: tuple[float, ...] = ()
    epsilon: float | None = Field(default=None, gt=0, le=50)
    prior: str | None = None
    records: int | None = Field(default=None, ge=1, le=10**12)
    generations: int = Field(default=20_000, ge=1, le=10**9)
    sweeps: int = Field(default=4, ge=0, le=10**6)
    seed: Seed = 1

    @model_validator(mode="before")
    @classmethod
    def _square_if_given(cls, values: Any) -> Any:
        """Limits for combinations of columns are kept by square matrices, so that engine is the default then."""
        if isinstance(values, Mapping) and values.get("given") and "engine" not in values:
            return {**values, "engine": "square"}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        coarse = self.designed_for == "coarse"
        exact = 'engine = "exact"'
        wrong = (
            ("design", self.prior is not None and self.design is not None, "no prior file"),
            ("coarsen", self.coarsen is not None and not coarse, 'design = "coarse"'),
            ("invariant", self.invariant and self.engine != "exact", exact),
            ("invariant", self.invariant and self.design not in (None, "exact"), 'design = "exact"'),
            ("gain", self.gain is not None and self.engine != "exact", exact),
            ("privacy", bool(self.privacy) and self.local, "delta"),
            ("given", bool(self.given) and self.engine != "square", 'engine = "square"'),
            ("given", bool(self.given) and self.prior is not None, "no prior file"),
            ("given", bool(self.given) and self.design == "uniform", 'design = "coarse"'),
            ("given", bool(set(self.given) & set(self.columns)), "columns that are not disguised"),
        )
        for name, broken, needed in wrong:
            if broken:
                raise StudyError(
                    f"{name} under [channel] does not go with the other settings",
                    expected=f"{needed}, or no {name}",
                    remedy=f"leave {name} out",
                )
        return self

    @property
    def local(self) -> bool:
        """Whether ε is the only limit: then the front is over ε."""
        alone = self.epsilon is not None and self.delta is None and self.gain is None
        return alone and not self.invariant and self.engine == "exact"

    @property
    def most_posterior(self) -> float:
        """δ as given; else 1 where ε limits every report, and 0.75 where it does not."""
        if self.delta is not None:
            return self.delta
        return 0.75 if self.epsilon is None else 1.0

    @property
    def designed_for(self) -> str:
        """What the matrix is designed for: "coarse", "exact", "uniform", or "given" for the shares of a file."""
        if self.prior is not None:
            return "given"
        return self.design or ("exact" if self.invariant else "coarse")

    @property
    def step(self) -> float:
        """Shares are rounded to powers of one plus this."""
        return self.coarsen or 0.1
