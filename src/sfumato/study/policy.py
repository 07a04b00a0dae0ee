"""The publisher's own rules for a release: the [policy] section of a run file, frozen and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

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


def policy_sentence(policy: Mapping[str, Any]) -> str:
    """The rules of a policy in words, as reports state them.

    >>> policy_sentence({"k": 3, "l": 2, "t": 0.9, "suppressed": 1.0, "uniques": 0.001})[:44]
    'k at least 3, ℓ at least 2, t below 0.9, at '
    """
    suppressed, uniques = (f"{100 * policy[name]:g} %" for name in ("suppressed", "uniques"))
    return (
        f"k at least {policy['k']}, ℓ at least {policy['l']}, t below {policy['t']:g}, at most {suppressed} of the "
        f"records suppressed, at most {uniques} of the records unique over the quasi-identifiers and the columns that "
        "are released unchanged."
    )
