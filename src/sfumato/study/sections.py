"""Sections of a run file: [columns], [search], [release], [policy], [cells], [local] and [channel].

The text below a field is its description in `docs/run-file.md`, which `tools/run_file.py` writes.

A rule of the policy is a line of `RULES`. A rule with a threshold has a field of the same name in `PolicySettings`.
The default of the field holds unless the publisher states another threshold with a reason. `release/policy.py`
measures the rules.
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


SMALLEST = Decimal("1e-12")  # a step of rounding is a multiple of it
Step = Annotated[float, Field(ge=1e-12, le=1e15)]
Edge = Annotated[float, Field(ge=-1e15, le=1e15)]


class ColumnSettings(Settings):
    """Settings of one column."""

    role: Role
    """Role of the column. Every column needs one before anything runs."""
    hierarchy: Declared | None = None
    """Hierarchy of the column: a file, a table that says how a file is read, a recipe that builds it, or the tree
    itself."""
    missing: Missing | None = None
    """Rule for missing values of this column, instead of the rule under [data]."""
    distance: Literal["equal", "ordered", "hierarchical"] | None = None
    """Distance between values of a sensitive column in t-closeness. Numbers are ordered and other values are equal
    unless stated."""
    constrained: bool | None = None
    """Whether cuts follow the hierarchy. The default is true where the column has a hierarchy."""
    order: tuple[str, ...] | None = None
    """Values in their order, where it differs from the order of the hierarchy or of the numbers."""
    breaks: tuple[float, ...] | None = None
    """The only places where the numbers of a column may be divided."""
    round: Step | DateUnit | None = None
    """Step to whose multiples released numbers are rounded, or the part of a date that is released. The column must not
    be a quasi-identifier."""
    bands: tuple[Edge, ...] | None = Field(default=None, min_length=1, max_length=1_000)
    """Edges, in rising order, of the bands into which released numbers are put. The column must not be a
    quasi-identifier."""
    harmless: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Released values of a sensitive column that reveal nothing about a person."""

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
        """Whether cuts follow the column's hierarchy."""
        return self.hierarchy is not None if self.constrained is None else self.constrained


class ObjectiveSettings(Settings):
    """A measure as an objective of the search."""

    name: str
    """Name of the measure."""
    direction: Literal["max", "min"] | None = None
    """Whether the measure is maximized or minimized. The measure's own direction is taken unless stated."""


class SearchSettings(Settings):
    """Settings of the search."""

    system: Literal["lattice", "cuts", "channel", "groups", "local", "cells"] = "lattice"
    """Method that recodes the table."""
    problem: Literal[1, 2, 3, 4] | None = None
    """Problem of the paper on cuts, by its number. It fixes the objectives and the suppression."""
    prefer: Literal["k", "l"] = "k"
    """Whether k or ℓ selects the recodings in problem 4 of cuts. In problems 1 to 3, l replaces k by ℓ."""
    suppression: Literal["threshold", "paper", "none", "within", "below_mean", "safe"] | None = None
    """Rule that decides which classes are suppressed: threshold or paper for lattice; none, within, below_mean or safe
    for cuts."""
    algorithm: Literal["exact", "exhaustive", "pbg_ea", "best_first", "memetic", "nsga2"] | None = None
    """Search algorithm: exact, exhaustive, pbg_ea or best_first for lattice; memetic or nsga2 for cuts. The first is
    the default of each method."""
    objectives: tuple[str | ObjectiveSettings, ...] = Field(default=("k", "general_loss"), min_length=1)
    """Measures that the front trades off: names, or tables with a name and a direction."""
    max_suppression: float = Field(default=0.0, ge=0, lt=1)
    """Largest share of the records that may be suppressed."""
    constraints: dict[str, Annotated[float, Field(ge=-1e15, le=1e15)]] = Field(default_factory=dict)
    """Limits on measures that every point of the front keeps to, by the name of the measure."""
    weights: dict[str, Annotated[float, Field(ge=0, le=1e6)]] = Field(default_factory=dict)
    """Weights of the quasi-identifiers in the loss, by column. A column that is not named has the weight 1."""
    epsilon: tuple[Annotated[float, Field(ge=1e-12, le=1e12)], ...] | None = None
    """Step for each objective. Values within one step count as equal."""
    seed: Seed = 1
    """Seed of the random numbers of the search."""
    population: int | None = Field(default=None, ge=4, le=100_000)
    """Number of candidates in each generation. The default depends on the algorithm."""
    iterations: int = Field(default=100, ge=1, le=10**9)
    """Number of iterations of the algorithm pbg_ea."""
    generations: int = Field(default=250, ge=1, le=10**9)
    """Number of generations of the algorithms for cuts."""
    local_search: int = Field(default=16, ge=1, le=10**6)
    """Number of candidates that the algorithm memetic improves in each generation."""
    evaluations: int | None = Field(default=None, ge=1, le=10**15)
    """Number of evaluated nodes after which a search of the lattice stops."""
    reproduction: bool = False
    """Whether the search follows the rules of the paper to the letter, for comparison with published figures."""
    threads: Threads | None = None
    """Number of threads. All cores are used unless stated."""

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
        for name, known, instead in (("suppression", SUPPRESSION, ""), ("algorithm", ALGORITHMS, " to take {}")):
            stated = getattr(self, name)
            if stated is not None and stated not in known.get(self.system, ()):
                raise StudyError(
                    f'{name} = "{stated}" for {self.system}',
                    expected="one of: " + ", ".join(known[self.system]),
                    remedy=f"leave {name} out{instead.format(known[self.system][0])}",
                )
        return self

    @property
    def method(self) -> str:
        """The algorithm that runs: the default of the method unless stated."""
        return self.algorithm or ALGORITHMS[self.system][0]

    @property
    def paper(self) -> bool:
        """Whether suppression follows the lattice paper: the smallest classes are suppressed up to the limit."""
        return self.suppression == "paper"

    @property
    def named(self) -> tuple[ObjectiveSettings, ...]:
        """The objectives, each with a name and possibly a direction."""
        return tuple(ObjectiveSettings(name=o) if isinstance(o, str) else o for o in self.objectives)


class ReleaseSettings(Settings):
    """Metadata of a release. All of it is public."""

    title: str | None = Field(default=None, min_length=1, max_length=500)
    """Title of the released table."""
    description: str | None = Field(default=None, min_length=1, max_length=20_000)
    """Description of the released table."""
    creator: str | None = Field(default=None, min_length=1, max_length=500)
    """Person or organisation that releases the table."""
    license: str | None = Field(default=None, min_length=1, max_length=500)
    """License of the released table."""
    url: str | None = Field(default=None, min_length=1, max_length=2_000)
    """Address at which the released table is found."""
    version: str | None = Field(default=None, min_length=1, max_length=100)
    """Version of the released table."""


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
    """Facts about a rule of the policy. A rule about columns is accepted for one column.

    `limit` is the comparison with the threshold: a figure must be `at least`, `at most` or `below` it. It is empty for
    a rule without a threshold. `says` is the rule in words, with `{limit}` for the threshold, which is a percentage
    where it is a `share`. `key` is the field of a rule that has several thresholds. A rule that is not `acceptable`
    needs a declaration in the study; a reason does not replace it.
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
        """The default of the threshold."""
        return float(PolicySettings.model_fields[self.field].default)

    def worse(self, figure: float, than: float) -> bool:
        """Return whether a figure protects less than another."""
        return figure < than if self.limit == "at least" else figure > than

    def broken(self, figure: float, threshold: float) -> bool:
        """Return whether a figure violates a threshold."""
        return figure >= threshold if self.limit == "below" else self.worse(figure, threshold)

    def shown(self, threshold: float) -> str:
        """Return a threshold as it is written in sentences."""
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
    """Return whether a text can be a reason: at least ten characters and two different words.

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
    """A rule that a release may break."""

    rule: Rule
    """Rule that the release may break."""
    column: str | None = None
    """Column for which the rule is accepted. Only the rules dependence and identifying need one."""
    reason: str = Field(min_length=LEAST_REASON)
    """Reason for the acceptance, which is in the internal report."""

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
    """Thresholds that every release must meet, measured on the written file.

    A threshold that is weaker than its default needs a `reason`.
    """

    k: int = Field(default=3, ge=1)
    """Least k of the released file."""
    l: int = Field(default=2, ge=1)
    """Least number of different sensitive values in a class."""
    t: float = Field(default=0.9, gt=0, le=1)
    """Distance from the distribution of the file that every class must be below. The value 1 switches the rule off."""
    households: int = Field(default=2, ge=1)
    """Least number of households in a class, where a column has the role household."""
    suppressed: float = Field(default=1.0, ge=0, le=1)
    """Largest share of the records that may be suppressed."""
    left_out: float = Field(default=0.05, ge=0, le=1)
    """Largest share of the source's records that may be left out because of missing values."""
    uniques: float = Field(default=0.001, ge=0, le=1)
    """Largest share of the records that may be unique over the quasi-identifiers and the columns that are released
    unchanged."""
    identifying: float = Field(default=0.05, ge=0, le=1)
    """Largest share of the records that may have a value of their own in a released number, date or text."""
    response: float = Field(default=1.5, ge=1, le=1000)
    """Largest factor by which a randomized response may raise the largest share of a combination of other released
    values."""
    response_posterior: float = Field(default=0.75, gt=0, le=1)
    """Posterior probability up to which the rule response is met whatever the factor is."""
    response_records: int = Field(default=100, ge=1)
    """Number of records from which on the rule response limits a combination of values by the factor. Rarer ones are
    limited by ε."""
    response_epsilon: float = Field(default=3.0, gt=0, le=50)
    """Largest ε where a combination of values has fewer records than response_records."""
    reason: str | None = None
    """Reason why weaker thresholds than the defaults suffice. It is in the internal report."""
    accept: tuple[Acceptance, ...] = ()
    """Rules that the release may break, each with a reason."""

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
    """Return the rules whose thresholds are weaker than their defaults.

    >>> list(weaker_thresholds({"k": 2, "l": 3, "t": 1.0}))
    ['k', 't']
    """
    return {
        name: facts
        for name, facts in THRESHOLDS.items()
        if name in policy and facts.worse(float(policy[name]), facts.default)
    }


def policy_sentence(policy: Mapping[str, Any]) -> str:
    """Return the thresholds of a policy in words, as reports state them.

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
    """Return the thresholds that are weaker than their defaults, with the reason, for the internal report.

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
    """Settings of local suppression, which blanks single cells."""

    k: tuple[Annotated[int, Field(ge=2, le=10**9)], ...] = Field(default=(2, 3, 5, 10), min_length=1)
    """Values of k to search for."""
    reading: Literal["strict", "agreeing"] = "strict"
    """Meaning of a blank: a value of its own (strict), or one that agrees with every value (agreeing, which is (k,
    k)-anonymity)."""
    never: tuple[str, ...] = ()
    """Columns in which no cell is blanked."""
    limits: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    """Largest share of blanked cells, by column."""
    blank_records: float = Field(default=0.0, ge=0, le=1)
    """Largest share of the records that may be blank in all columns, in the reading agreeing."""
    after: Literal["lattice", "cuts"] | None = None
    """Method whose front is searched first. Cells of some of its recodings are then blanked, and all points are on one
    front."""
    bases: int = Field(default=6, ge=0, le=1000)
    """Number of recodings of that front in which cells are blanked."""
    exact: int = Field(default=1500, ge=0, le=10**6)
    """Largest number of variables for which an integer program is solved."""
    effort: int = Field(default=2, ge=0, le=10**6)
    """Rounds of improvement for each k."""
    passes: int = Field(default=2, ge=0, le=10**6)
    """Passes that raise the lower bound."""
    test_seed: Seed | None = None
    """Seed of the random choices, which the operating system makes in a real release. For tests only."""


class LocalSettings(Settings):
    """Settings of local recoding."""

    k: Annotated[tuple[Annotated[int, Field(ge=1, le=10**9)], ...], Field(min_length=1)] | None = None
    """Class sizes to search for. The default is eleven sizes from 2 to 100."""
    method: Literal["boxes", "runs"] = "boxes"
    """Algorithms that run: all (boxes), or only sorting and dividing, which suits very large tables (runs)."""
    effort: int = Field(default=0, ge=0, le=10**6)
    """Rounds of improvement for each k."""
    passes: int = Field(default=2, ge=0, le=10**6)
    """Passes that raise the lower bound."""
    bounds: bool = False
    """Whether a column of numbers is released with two more columns for the ends of each range, such as age_low and
    age_high."""
    draw: float = Field(default=0.0, ge=0, le=1)
    """Share of loss within which the published recoding is drawn at random. The value 0 publishes the recoding of the
    front."""
    test_seed: Seed | None = None
    """Seed of the random choices, which the operating system makes in a real release. For tests only."""


class ChannelSettings(Settings):
    """Settings of randomized response."""

    columns: tuple[str, ...] = ()
    """Sensitive columns whose values are replaced by random reports."""
    keep: tuple[str, ...] = ()
    """Columns that are released unchanged next to the reports. The search then bounds ε so that the policy's rule
    response holds."""
    given: tuple[str, ...] = ()
    """Columns whose combinations of values get limits of their own, where they have enough records."""
    delta: float | None = Field(default=None, gt=0, le=1)
    """Upper bound on the posterior probability of any category given a report. The default is 0.75 where epsilon is not
    stated either."""
    gain: float | None = Field(default=None, gt=1, le=10**6)
    """Upper bound on the posterior probability of a category divided by its share."""
    engine: Literal["exact", "square", "optrr"] = "exact"
    """Algorithm: proven optima (exact), square matrices (square), or the evolutionary search of the paper (optrr)."""
    invariant: bool = False
    """Whether the reports have the shares of the source on average."""
    design: Literal["coarse", "exact", "uniform"] | None = None
    """Shares that the matrix is made for: rounded (coarse), those of the table (exact), or equal ones (uniform). A
    public matrix reveals them."""
    coarsen: float | None = Field(default=None, gt=0, le=10)
    """Step of the rounding in the design coarse: shares are rounded to powers of one plus this number, which is 0.1 by
    default."""
    points: int = Field(default=24, ge=1, le=1000)
    """Number of points on the front."""
    privacy: tuple[float, ...] = ()
    """Further levels of privacy for which a point is searched."""
    epsilon: float | None = Field(default=None, gt=0, le=50)
    """Upper bound on ε of local differential privacy. Without delta and gain, the front is over ε."""
    prior: str | None = None
    """File with categories and shares, which replaces the table."""
    records: int | None = Field(default=None, ge=1, le=10**12)
    """Number of records for which the error is estimated, with a prior from a file."""
    generations: int = Field(default=20_000, ge=1, le=10**9)
    """Number of generations of the engine optrr."""
    sweeps: int = Field(default=4, ge=0, le=10**6)
    """Number of sweeps along the front of the engine square."""
    seed: Seed = 1
    """Seed of the random numbers of the search."""

    @model_validator(mode="before")
    @classmethod
    def _square_if_given(cls, values: object) -> object:
        """Make the engine square the default with `given`: only its matrices meet limits for combinations."""
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
        """Whether ε is the only limit, so that the front is over ε."""
        alone = self.epsilon is not None and self.delta is None and self.gain is None
        return alone and not self.invariant and self.engine == "exact"

    @property
    def most_posterior(self) -> float:
        """The upper bound δ. Unless stated, it is 1 where ε limits every report and 0.75 elsewhere."""
        if self.delta is not None:
            return self.delta
        return 0.75 if self.epsilon is None else 1.0

    @property
    def designed_for(self) -> str:
        """The design of the matrix: "coarse", "exact", "uniform", or "given" for the shares of a file."""
        if self.prior is not None:
            return "given"
        return self.design or ("exact" if self.invariant else "coarse")

    @property
    def step(self) -> float:
        """The step of the rounding: shares are rounded to powers of one plus this number."""
        return self.coarsen or 0.1
