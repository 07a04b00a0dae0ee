"""The publisher's own rules for a release: the [policy] section of a run file, frozen and checked.

A rule is a line of `RULES`. A rule with a threshold is a field of `PolicySettings` with the same name, whose default
is what holds unless the publisher states another with a reason. How a rule is measured is in `release/policy.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from sfumato.errors import StudyError
from sfumato.runtime.settings import Settings

Rule = Literal[
    "k",
    "l",
    "t",
    "households",
    "suppressed",
    "left_out",
    "uniques",
    "raw",
    "attacks",
    "dependence",
    "identifying",
    "earlier",
    "response",
    "unit",
]
RULE_K: Rule = "k"
RULE_RESPONSE: Rule = "response"
LEAST_REASON = 10  # characters
WORD = re.compile(r"[^\W\d_]*([^\W\d_])(?!\1)[^\W\d_]+|[\u0e00-\u0eff\u3040-\u9fff]")  # two letters that differ


@dataclass(frozen=True)
class RuleFacts:
    """What a rule is. A rule about columns is accepted for one column.

    `limit` says how a threshold is read, and so which way is weaker: a figure must be `at least` it, `at most` it or
    `below` it; a rule without a threshold has none. `says` is the rule in words, with `{limit}` for its threshold, a
    percentage where it is a `share`. `key` is the field of a rule that has several thresholds. A rule that is not
    `acceptable` is met by what the study declares, never by a reason alone.
    """

    rule: Rule
    limit: Literal["at least", "at most", "below", ""]
    says: str
    share: bool = False
    columns: bool = False
    key: str = ""
    acceptable: bool = True

    @property
    def field(self) -> str:
        """The name of the threshold in the policy."""
        return self.key or self.rule

    @property
    def default(self) -> float:
        """The threshold that holds unless another is stated."""
        return float(PolicySettings.model_fields[self.field].default)

    def worse(self, figure: float, than: float) -> bool:
        """Whether a figure protects less than another."""
        return figure < than if self.limit == "at least" else figure > than

    def broken(self, figure: float, threshold: float) -> bool:
        """Whether a figure is not within a threshold."""
        return figure >= threshold if self.limit == "below" else self.worse(figure, threshold)

    def shown(self, threshold: float) -> str:
        """A threshold as sentences have it."""
        return f"{100 * threshold:g} %" if self.share else f"{threshold:g}"


RULES: dict[str, RuleFacts] = {
    facts.rule: facts
    for facts in (
        RuleFacts("k", "at least", "k at least {limit}"),
        RuleFacts("l", "at least", "ℓ at least {limit}"),
        RuleFacts("t", "below", "t below {limit}"),
        RuleFacts("households", "at least", "at least {limit} households in a class, where households are declared"),
        RuleFacts("suppressed", "at most", "at most {limit} of the records suppressed", share=True),
        RuleFacts(
            "left_out",
            "at most",
            "at most {limit} of the source's records left out because of missing values",
            share=True,
        ),
        RuleFacts(
            "uniques",
            "at most",
            "at most {limit} of the records unique over the quasi-identifiers and the columns that are released "
            "unchanged",
            share=True,
        ),
        RuleFacts(
            "response",
            "at most",
            "given the other released columns, a randomized response raises the largest share of a combination of "
            "their values by a factor of at most {limit}",
        ),
        RuleFacts("raw", "", "some quasi-identifier of the released records is changed"),
        RuleFacts("attacks", "", "no attack on a protected group identifies an area"),
        RuleFacts("dependence", "", "no unchanged column determines a protected one", share=True, columns=True),
        RuleFacts(
            "identifying",
            "at most",
            "at most {limit} of the records with a value of their own in a released number, date or text",
            share=True,
            columns=True,
        ),
        RuleFacts("unit", "", "it is declared what a row is where numbers repeat", columns=True, acceptable=False),
        RuleFacts("earlier", "", "no earlier release of the same people reveals more together with this one"),
    )
}
RESPONSE = (
    RuleFacts("response", "at most", "or to at most {limit}", share=True, key="response_posterior"),
    RuleFacts("response", "at most", "where {limit} records or more have these values", key="response_records"),
    RuleFacts("response", "at most", "and ε is at most {limit} where fewer have them", key="response_epsilon"),
)
THRESHOLDS = {  # the thresholds of one rule next to each other: a sentence names them in this order
    each.field: each
    for facts in RULES.values()
    if facts.limit
    for each in (facts, *(RESPONSE if facts.rule == RULE_RESPONSE else ()))
}
KEYS = ", ".join(
    [name for name, facts in RULES.items() if not facts.columns and facts.acceptable]
    + [f"{name}:COLUMN" for name, facts in RULES.items() if facts.columns and facts.acceptable]
)


def reason_given(text: str) -> bool:
    """Whether a text can be a reason: ten characters or more without blanks at the ends, and two different words.

    >>> reason_given("stays in the safe room"), reason_given("xxxxxxxxxxxx"), reason_given("ab ab ab ab")
    (True, False, False)
    """
    words = {match[0].casefold() for match in WORD.finditer(text)}
    return len(" ".join(text.split())) >= LEAST_REASON and len(words) > 1


REASON_EXPECTED = f"a reason in words: two different words or more, {LEAST_REASON} characters or more"


def _require_reason(text: str | None) -> None:
    if text is not None and not reason_given(text):
        raise ValueError(REASON_EXPECTED)


class Acceptance(Settings):
    """A rule that a release may break, and the reason, which goes into the internal report.

    A rule about columns (`dependence`, `identifying`) is accepted for one `column`; all others without one.
    """

    rule: Rule
    column: str | None = None
    reason: str = Field(min_length=LEAST_REASON)

    @model_validator(mode="after")
    def _one_column(self) -> Self:
        if not RULES[self.rule].acceptable:
            raise ValueError(f"the rule {self.rule} is met by declaring what a row is: docs/howto/persons.md says how")
        if RULES[self.rule].columns != (self.column is not None):
            about = " and ".join(name for name, facts in RULES.items() if facts.columns and facts.acceptable)
            raise ValueError(f"column is given for the rules {about}, and for no other")
        _require_reason(self.reason)
        return self


class PolicySettings(Settings):
    """What every release must keep to, measured on the written file.

    `k` and `l` are the least k and the least number of different sensitive values in a class; `t` the distance from
    the distribution of the whole file that no class may reach (1 allows any); `households` the fewest households in
    a class, where a household column is declared; `suppressed` the largest share of records that may be suppressed;
    `left_out` the largest share of the source's records that the missing rule may leave out; `uniques` the largest
    share that may be unique over the released columns that are not sensitive; `identifying` the
    largest share that may have a value of their own in a released number, date or text, whatever its role. A threshold
    that is weaker than its default needs a `reason`.

    `response` is for randomized response beside other released columns: the factor by which a report may raise the
    largest share of a combination of their values. A posterior up to `response_posterior` is allowed as well.
    Combinations with fewer than `response_records` records are covered by ε, which is then at most `response_epsilon`.
    """

    k: int = Field(default=3, ge=1)
    l: int = Field(default=2, ge=1)
    t: float = Field(default=0.9, gt=0, le=1)
    households: int = Field(default=2, ge=1)
    suppressed: float = Field(default=1.0, ge=0, le=1)
    left_out: float = Field(default=0.05, ge=0, le=1)
    uniques: float = Field(default=0.001, ge=0, le=1)
    identifying: float = Field(default=0.05, ge=0, le=1)
    response: float = Field(default=1.5, ge=1, le=1000)
    response_posterior: float = Field(default=0.75, gt=0, le=1)
    response_records: int = Field(default=100, ge=1)
    response_epsilon: float = Field(default=3.0, gt=0, le=50)
    reason: str | None = None
    accept: tuple[Acceptance, ...] = ()

    @model_validator(mode="after")
    def _weaker_for_a_reason(self) -> Self:
        _require_reason(self.reason)
        weaker = weaker_thresholds(self.model_dump())
        if weaker and self.reason is None:
            stated = ", ".join(f"{name} = {self.model_dump()[name]:g}" for name in weaker)
            usual = ", ".join(f"{name} {facts.limit} {facts.default:g}" for name, facts in weaker.items())
            raise StudyError(
                f"the policy states {stated}: weaker than the default, and no reason is given",
                expected=f"a reason, or {usual}",
                remedy="add the key reason to the policy: one text that says why these thresholds suffice",
            )
        return self


def weaker_thresholds(policy: Mapping[str, Any]) -> dict[str, RuleFacts]:
    """The rules whose thresholds are weaker than their defaults.

    >>> list(weaker_thresholds({"k": 2, "l": 3, "t": 1.0}))
    ['k', 't']
    """
    return {
        name: facts
        for name, facts in THRESHOLDS.items()
        if name in policy and facts.worse(float(policy[name]), facts.default)
    }


def policy_sentence(policy: Mapping[str, Any]) -> str:
    """The thresholds of a policy in words, as reports state them.

    >>> policy_sentence({"k": 3, "l": 2, "t": 0.9, "suppressed": 1.0, "left_out": 0.05, "uniques": 0.001})[:44]
    'k at least 3, ℓ at least 2, t below 0.9, at '
    >>> policy_sentence({"identifying": 0.05, "response": 1.5, "response_posterior": 0.75})[-88:]
    'at most 5 % of the records with a value of their own in a released number, date or text.'
    """
    return (
        ", ".join(
            facts.says.format(limit=facts.shown(float(policy[name])))
            for name, facts in THRESHOLDS.items()
            if name in policy
        )
        + "."
    )


def weaker_sentences(policy: Mapping[str, Any]) -> list[str]:
    """Which thresholds of a policy are below the default, for the internal report; with the reason.

    >>> weaker_sentences({"k": 2, "reason": "only for the safe room"})
    ['Below the default: k is 2, not 3. Reason: only for the safe room']
    """
    weaker = weaker_thresholds(policy)
    if not weaker:
        return []
    stated = "; ".join(
        f"{name} is {facts.shown(float(policy[name]))}, not {facts.shown(facts.default)}"
        for name, facts in weaker.items()
    )
    return [f"Below the default: {stated}. Reason: {policy.get('reason') or 'none was given'}"]
