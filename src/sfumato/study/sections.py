"""The sections of a run file that are about one column, the search and the release.

The publisher's own rules for a release: the [policy] section of a run file, frozen and checked.

A rule is a line of `RULES`. A rule with a threshold is a field of `PolicySettings` with the same name, whose default
is what holds unless the publisher states another with a reason. How a rule is measured is in `release/policy.py`.

The section [cells] of a run file.

The section [local] of a run file.

The section [channel] of a run file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from sfumato.base.settings import Settings
from sfumato.data.settings import Missing, Role, Seed, Threads
from sfumato.data.treatment import DateUnit, exact
from sfumato.errors import StudyError, shortened
from sfumato.hierarchies.recipes import Declared
from sfumato.study.methods import ALGORITHMS, SUPPRESSION, SYSTEM_OF, WITHIN

ANY_SYSTEM = ("objectives", "max_suppression", "constraints", "weights", "seed", "threads")  # mean the same in both


SMALLEST = Decimal("1e-12")  # what a step of rounding is a multiple of
Step = Annotated[float, Field(ge=1e-12, le=1e15)]
Edge = Annotated[float, Field(ge=-1e15, le=1e15)]


class ColumnSettings(Settings):
    """What is declared about one column.

    `round` and `bands` say what the values of a released column that is no quasi-identifier are recoded to: multiples
    of a step, a part of a date, or bands between edges. `harmless` are released values of a sensitive column that
    reveal nothing.
    """

    role: Role
    hierarchy: Declared | None = None
    missing: Missing | None = None
    distance: Literal["equal", "ordered", "hierarchical"] | None = None
    constrained: bool | None = None
    order: tuple[str, ...] | None = None
    breaks: tuple[float, ...] | None = None
    round: Step | DateUnit | None = None
    bands: tuple[Edge, ...] | None = Field(default=None, min_length=1, max_length=1_000)
    harmless: tuple[str, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_treatment(self) -> Self:
        if self.round is not None and self.bands is not None:
            raise ValueError("a column with either round or bands")
        if isinstance(self.round, float) and exact(self.round) % SMALLEST:
            raise ValueError("a step with at most 12 decimals")
        if self.bands is not None and any(high <= low for low, high in pairwise(self.bands)):
            raise ValueError("the edges of bands in rising order, each once")
        return self

    @property
    def along_tree(self) -> bool:
        """Whether cuts keep to the column's hierarchy: they do where it has one, unless free cuts are asked for."""
        return self.hierarchy is not None if self.constrained is None else self.constrained


class ObjectiveSettings(Settings):
    """A measure to search over; its direction may be turned round."""

    name: str
    direction: Literal["max", "min"] | None = None


class SearchSettings(Settings):
    """What to search for, how, and within which limits."""

    system: Literal["lattice", "cuts", "channel", "groups", "local", "cells"] = "lattice"
    problem: Literal[1, 2, 3, 4] | None = None
    prefer: Literal["k", "l"] = "k"
    suppression: Literal["threshold", "paper", "none", "within", "below_mean", "safe"] | None = None
    algorithm: Literal["exact", "exhaustive", "pbg_ea", "best_first", "memetic", "nsga2"] | None = None
    objectives: tuple[str | ObjectiveSettings, ...] = Field(default=("k", "general_loss"), min_length=1)
    max_suppression: float = Field(default=0.0, ge=0, lt=1)
    constraints: dict[str, Annotated[float, Field(ge=-1e15, le=1e15)]] = Field(default_factory=dict)
    weights: dict[str, Annotated[float, Field(ge=0, le=1e6)]] = Field(default_factory=dict)
    epsilon: tuple[Annotated[float, Field(ge=1e-12, le=1e12)], ...] | None = None
    seed: Seed = 1
    population: int | None = Field(default=None, ge=4, le=100_000)
    iterations: int = Field(default=100, ge=1, le=10**9)
    generations: int = Field(default=250, ge=1, le=10**9)
    local_search: int = Field(default=16, ge=1, le=10**6)
    evaluations: int | None = Field(default=None, ge=1, le=10**15)
    reproduction: bool = False
    threads: Threads | None = None

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        own = {"system", *WITHIN.get(self.system, ())}
        if self.system not in ALGORITHMS and self.model_fields_set - own:
            extra = sorted(self.model_fields_set - own)
            raise StudyError(
                f"{shortened(extra)} under [search], and the system is {self.system}",
                expected=f"the settings of the {self.system} system under [{self.system}]",
                remedy=f"leave {extra[0]} out",
            )
        for name in self.model_fields_set & set(SYSTEM_OF):
            if SYSTEM_OF[name] != self.system and getattr(self, name) is not None:
                raise StudyError(
                    f"{name} under [search] belongs to the {SYSTEM_OF[name]} system, and the system is {self.system}",
                    expected=f"settings that the {self.system} system reads",
                    remedy=f'leave {name} out, or set system = "{SYSTEM_OF[name]}"',
                )
        if self.suppression is not None and self.suppression not in SUPPRESSION.get(self.system, ()):
            raise StudyError(
                f'suppression = "{self.suppression}" for {self.system}',
                expected="one of: " + ", ".join(SUPPRESSION[self.system]),
                remedy="leave suppression out",
            )
        if self.algorithm is not None and self.algorithm not in ALGORITHMS.get(self.system, ()):
            raise StudyError(
                f'algorithm = "{self.algorithm}" for {self.system}',
                expected="one of: " + ", ".join(ALGORITHMS[self.system]),
                remedy=f"leave algorithm out to take {ALGORITHMS[self.system][0]}",
            )
        return self

    @property
    def method(self) -> str:
        """The algorithm: as given, else the system's own."""
        return self.algorithm or ALGORITHMS[self.system][0]

    @property
    def paper(self) -> bool:
        """Whether suppression follows the paper of the lattice: the whole limit is spent on the smallest classes."""
        return self.suppression == "paper"

    @property
    def named(self) -> tuple[ObjectiveSettings, ...]:
        """The objectives, each as a name and a direction that may be open."""
        return tuple(ObjectiveSettings(name=o) if isinstance(o, str) else o for o in self.objectives)


class ReleaseSettings(Settings):
    """What the metadata of a release say of it as a whole. All of it is public."""

    title: str | None = Field(default=None, min_length=1, max_length=500)
    description: str | None = Field(default=None, min_length=1, max_length=20_000)
    creator: str | None = Field(default=None, min_length=1, max_length=500)
    license: str | None = Field(default=None, min_length=1, max_length=500)
    url: str | None = Field(default=None, min_length=1, max_length=2_000)
    version: str | None = Field(default=None, min_length=1, max_length=100)


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
