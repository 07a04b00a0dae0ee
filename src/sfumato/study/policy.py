"""The publisher's own rules for a release: the [policy] section of a run file, frozen and checked."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from sfumato.runtime.settings import Settings

Rule = Literal["k", "l", "t", "suppressed", "uniques", "raw", "attacks", "dependence", "identifying", "earlier"]
RULE_K: Rule = "k"
RULE_UNIQUES: Rule = "uniques"


class Acceptance(Settings):
    """A rule that a release may break, and the reason, which goes into the internal report.

    A rule about columns (`dependence`, `identifying`) is accepted for one `column`; all others stand without one.
    """

    rule: Rule
    column: str | None = None
    reason: str = Field(min_length=10)

    @model_validator(mode="after")
    def _one_column(self) -> Self:
        if (self.rule in ("dependence", "identifying")) != (self.column is not None):
            raise ValueError("column is given for the rules dependence and identifying, and for no other")
        return self


class PolicySettings(Settings):
    """What every release must keep to, measured on the written file.

    `k` and `l` are the least k and the least number of different sensitive values in a class; `t` the distance from
    the distribution of the whole file that no class may reach (1 allows any); `suppressed` the largest share of
    records that may be suppressed; `uniques` the largest share that may be unique over quasi-identifiers and all
    columns that are released unchanged.
    """

    k: int = Field(default=3, ge=1)
    l: int = Field(default=2, ge=1)
    t: float = Field(default=0.9, gt=0, le=1)
    suppressed: float = Field(default=1.0, ge=0, le=1)
    uniques: float = Field(default=0.001, ge=0, le=1)
    accept: tuple[Acceptance, ...] = ()
