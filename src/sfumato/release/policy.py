"""The policy checks of a release: the rules that it violates, and the violations accepted with a reason.

The rules and their thresholds are in `study/sections.py`. A rule that depends on figures is checked by a function of
the policy and of the `Evidence`, what is known about a release. Rules that depend on classes are checked before
anything is written. All rules are checked on the figures that were measured on the file.

The module also finds columns with extreme values that may identify a person, and kept columns from which the values of
generalized, removed or sensitive columns follow.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.auditing.uniqueness import PERSON, OwnValues, WholeFile, holder_cells, identifying_sentence
from sfumato.auditing.units import refuse_several_spellings, unstated, what_to_declare
from sfumato.base.text import percent, percent_down
from sfumato.data.cells import cleaned, numeric
from sfumato.data.engine import Engine
from sfumato.data.settings import Role
from sfumato.data.source import Column, Source
from sfumato.errors import InputError, UnreachableError, shortened
from sfumato.measures.registry import DISTINCT_L, HOUSEHOLDS, T_CLOSENESS, K
from sfumato.release.columns import ColumnRecode
from sfumato.release.rows import complete_rows
from sfumato.study import Study
from sfumato.study.sections import KEYS, REASON_EXPECTED, RULES, Acceptance, PolicySettings, Rule
from sfumato.tables.dependence import Dependence, Dependences, Protected, dependences

UNIQUES: Rule = "uniques"
A_UNIT = "the column that numbers the persons or households that rows belong to, or the statement that every row is a "
A_UNIT += "person"

# Figures of a file in which a blank may be any value: the matches that some assignment of all rows to people permits
MATCHING_K, MATCHING_PEOPLE = "matching_k", "matching_people"


@dataclass(frozen=True)
class Finding:
    """A rule that a release violates: a sentence for the publisher on what was measured.

    `figures` are the numbers in the sentence, by name. A later release of the same plan needs a new reason if one of
    them is worse, or was not among those of the earlier release.
    """

    rule: Rule
    what: str
    column: str | None = None
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name under which it is accepted: the rule, and the column if the rule is about columns."""
        return f"{self.rule}:{self.column}" if self.column is not None else str(self.rule)

    def accepted(self, given: Sequence[Acceptance]) -> Acceptance | None:
        """Return the acceptance that covers the finding, if there is one."""
        return next((a for a in given if a.rule == self.rule and a.column == self.column), None)

    def as_dict(self) -> dict[str, object]:
        described: dict[str, object] = {"rule": str(self.rule), "what": self.what}
        described |= {"column": self.column} if self.column is not None else {}
        return described | ({"figures": dict(self.figures)} if self.figures else {})


class PolicyError(UnreachableError):
    """An error for a release that violates rules of the policy without an acceptance."""

    def __init__(self, findings: Sequence[Finding], what: str, *, expected: str = "", remedy: str = "") -> None:
        super().__init__(what, expected=expected, remedy=remedy)
        self.findings = tuple(findings)

    def as_dict(self) -> dict[str, object]:
        return super().as_dict() | {"findings": [f.as_dict() | {"key": f.key} for f in self.findings]}


def acceptances(given: Mapping[str, str] | Sequence[Acceptance]) -> tuple[Acceptance, ...]:
    """Return acceptances given in Python or on a command line: a rule, or `rule:column`, and the reason.

    >>> acceptances({"dependence:density": "areas of this density are public knowledge"})[0].column
    'density'
    """
    if not isinstance(given, Mapping):
        return tuple(given)
    parsed = []
    for key, reason in given.items():
        rule, _, column = key.partition(":")
        if rule in RULES and not RULES[rule].acceptable:
            raise InputError(
                f"the rule {rule} cannot be accepted: it is met by declaring what a row is, and a reason does not "
                "replace that",
                expected=A_UNIT,
                remedy=f'role = "unit" or role = "household" for {column or "the column"} under [columns]; or, if '
                'every row is a person of its own, unit = "row" and unit_reason under [data]',
            )
        try:
            parsed.append(Acceptance.checked(rule=rule, column=column or None, reason=reason))
        except InputError:
            raise InputError(
                f'the acceptance of "{key}" is not valid',
                expected=f"a rule ({KEYS}), and {REASON_EXPECTED}",
            ) from None
    return tuple(parsed)


@dataclass(frozen=True)
class Evidence:
    """What is known about a release: its figures, its record counts, and its uniqueness once the file is written.

    `raw` is true if no quasi-identifier of the released records is changed. `noun` is what is counted: records or
    persons. `left_out` are the records that the missing rule left out, and `entered` the other records, if persons are
    counted.
    """

    figures: Mapping[str, Mapping[str, Any]]
    records: int
    suppressed: int
    raw: bool
    whole: WholeFile | None = None
    noun: str = "record"
    left_out: int = 0
    entered: int | None = None

    def figure(self, name: str) -> float:
        """Return a figure by the name of its measure. NaN, which violates no threshold, if there is none."""
        value = self.figures.get(name, {}).get("value")
        return math.nan if value is None else float(value)


def _broken(rule: Rule, figure: float, threshold: float, what: str) -> list[Finding]:
    """Return the finding that a figure violates its threshold, if it does."""
    return [Finding(rule, what, figures={rule: figure})] if RULES[rule].broken(figure, threshold) else []


def _raw(known: Evidence) -> list[Finding]:
    if not known.raw or known.records == known.suppressed:
        return []
    share = percent(known.suppressed / known.records)
    gone = f", and {share} of the {known.noun}s are removed" if known.suppressed else ""
    what = f"No quasi-identifier of the released records is changed{gone}: these are original records."
    return [Finding("raw", what)]


def _k(policy: PolicySettings, known: Evidence) -> list[Finding]:
    k = known.figure(K.name)
    crowd = f"no other {known.noun}" if k <= 1 else f"as few as {k - 1:.0f} {'other' if k == 2 else 'others'}"
    what = f"Some {known.noun}s share their quasi-identifiers with {crowd}: k is {k:.0f}, below {policy.k}."
    return _broken("k", k, policy.k, what)


def _matching_k(policy: PolicySettings, known: Evidence) -> list[Finding]:
    """Check k by matching if a blank may be any value: possible matches of records and of rows both count."""
    rows, people = known.figure(MATCHING_K), known.figure(MATCHING_PEOPLE)
    if math.isnan(rows) or math.isnan(people):
        what = "Matching k was not computed because too many pairs of records agree, so the rule on k is not met."
        return _broken("k", 0.0, policy.k, what)
    k = min(rows, people)
    few = (
        f"{rows:.0f} released {'record is' if rows == 1 else 'records are'} possible for a source record"
        if rows <= people
        else f"{people:.0f} source {'record is' if people == 1 else 'records are'} possible for a released record"
    )
    what = (
        f"For an attacker who knows the quasi-identifiers of all source records, as few as {few}: "
        f"matching k is {k:.0f}, below {policy.k}."
    )
    return _broken("k", k, policy.k, what)


def _l(policy: PolicySettings, known: Evidence) -> list[Finding]:
    diversity = known.figure(DISTINCT_L.name)
    what = (
        f"In some classes a sensitive column has {diversity:.0f} different {'value' if diversity <= 1 else 'values'}, "
        f"so anyone who finds the class learns {'it' if diversity <= 1 else 'almost as much'}: ℓ is {diversity:.0f}, "
        f"below {policy.l}."
    )
    return _broken("l", diversity, policy.l, what)


def _t(policy: PolicySettings, known: Evidence) -> list[Finding]:
    distance = known.figure(T_CLOSENESS.name)
    what = (
        "The distribution of a sensitive column in some class differs too much from the whole file: "
        f"t is {distance:.3f}, not below {policy.t:g}."
    )
    return _broken("t", distance, policy.t, what) if policy.t < 1 else []


def _households(policy: PolicySettings, known: Evidence) -> list[Finding]:
    number = known.figure(HOUSEHOLDS.name)
    several = "household" if number <= 1 else "households"
    what = (
        f"Some classes hold the persons of {number:.0f} {several}, below {policy.households}: "
        "what such a class shows of them is known of the household."
    )
    return _broken("households", number, policy.households, what)


def _suppressed(policy: PolicySettings, known: Evidence) -> list[Finding]:
    share = known.suppressed / max(known.records, 1)
    what = f"{percent(share)} of the {known.noun}s are suppressed, more than {percent(policy.suppressed)}."
    allowed = known.suppressed <= policy.suppressed * known.records
    return [] if allowed else [Finding("suppressed", what, figures={"suppressed": share})]


def left_out_findings(policy: PolicySettings, records: int, left_out: int) -> list[Finding]:
    """Return the finding that the missing rule left out too many of the source's records, if it did.

    `records` are those that entered, released or suppressed.
    """
    share = left_out / max(records + left_out, 1)
    what = (
        f"The missing rule leaves out {left_out:,} of the {records + left_out:,} records of the source "
        f"({percent(share)}), more than {percent(policy.left_out)}: the release is about other records than the table. "
        'The rule missing = "category" under [data] leaves out none.'
    )
    return _broken("left_out", share, policy.left_out, what)


def unique_findings(policy: PolicySettings, whole: WholeFile) -> list[Finding]:
    """Return findings on unique records: over the columns an attacker may know, and by one column of any role."""
    known = whole.known
    alone = identifying_findings(policy.identifying, whole.own)
    if not known.columns or known.unique <= policy.uniques * known.records:
        return alone
    what = (
        f"{known.unique:,} of {known.records:,} released {whole.counted} ({percent(known.unique_share)}) are unique "
        f"over the released columns that are not sensitive, more than {percent(policy.uniques)}."
    )
    return [Finding(UNIQUES, what, figures={UNIQUES: known.unique_share}), *alone]


def with_households(findings: Sequence[Finding], households: Sequence[Finding]) -> list[Finding]:
    """Return findings with those counted in households. For each rule the larger share is stated."""
    found = {finding.key: finding for finding in findings}
    for finding in households:
        before = found.setdefault(finding.key, finding)
        if finding.figures[finding.rule] > before.figures[finding.rule]:
            found[finding.key] = finding
    return list(found.values())


def identifying_findings(limit: float, columns: Sequence[OwnValues]) -> list[Finding]:
    """Return the released columns that alone identify more than a share of the records.

    Sensitive columns are included: an employer knows a wage, and a public register the time of a booking.
    """
    return [
        Finding("identifying", identifying_sentence(one, limit), one.column, {"identifying": one.share})
        for one in columns
        if one.identifies(limit)
    ]


def policy_findings(policy: PolicySettings, known: Evidence) -> list[Finding]:
    """Return the findings of a release, from what is known about it."""
    return [
        *_raw(known),
        *(_matching_k(policy, known) if MATCHING_K in known.figures else _k(policy, known)),
        *_l(policy, known),
        *_t(policy, known),
        *_households(policy, known),
        *_suppressed(policy, known),
        *left_out_findings(policy, known.records if known.entered is None else known.entered, known.left_out),
        *([] if known.whole is None else unique_findings(policy, known.whole)),
    ]


@dataclass(frozen=True)
class Inherited:
    """An acceptance of the release whose plan is applied, with the figures that it was given for."""

    acceptance: Acceptance
    figures: Mapping[str, float]

    def covers(self, finding: Finding) -> bool:
        """Return whether a finding was accepted there and has no worse figure."""
        return finding.accepted([self.acceptance]) is not None and not self.worse(finding)

    def worse(self, finding: Finding) -> list[str]:
        """Return in words which figures of a finding are worse than before."""
        rule = RULES[finding.rule]
        return [
            f"{name} was {rule.shown(self.figures[name])} there and is {rule.shown(figure)} here"
            if name in self.figures
            else f"{name} was not accepted there"
            for name, figure in finding.figures.items()
            if name not in self.figures or rule.worse(figure, self.figures[name])
        ]


def inherited_from(accepted: Sequence[Mapping[str, Any]]) -> tuple[Inherited, ...]:
    """Return the acceptances that a release passes on, but never those of the rule `earlier`.

    An earlier release of other people does not matter for the releases of these people.
    """
    try:
        return tuple(
            Inherited(
                Acceptance.checked(rule=entry["rule"], column=entry.get("column"), reason=entry["reason"]),
                {str(name): float(figure) for name, figure in entry.get("figures", {}).items()},
            )
            for entry in accepted
            if entry["rule"] != "earlier"
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            "the acceptances in the manifest cannot be read", expected="a manifest as it was published"
        ) from None


def covering(
    findings: Sequence[Finding], given: Sequence[Acceptance], inherited: Sequence[Inherited]
) -> tuple[Acceptance, ...]:
    """Return the given acceptances, and those of an earlier release that cover the present findings."""
    handed = [one.acceptance for one in inherited if any(one.covers(f) for f in findings if f.accepted(given) is None)]
    return (*given, *handed)


def unit_findings(study: Study, source: Source) -> list[Finding]:
    """Return columns whose values repeat like numbers of persons, if the study does not declare what a row is."""
    return [Finding("unit", each.sentence, each.column) for each in unstated(study, source)]


def refuse_unstated_units(study: Study, source: Source) -> None:
    """Raise unless the study declares what a row is, if a number of persons or households repeats.

    A declared number must be written in one way.
    """
    refuse_several_spellings(study, source)
    found = unstated(study, source)
    if found:
        declared = [f"{name}, the declared unit, has another value in every row" for name in study.named(Role.UNIT)]
        why = next(iter(declared), "it is not declared what a row is")
        raise PolicyError(
            [Finding("unit", each.sentence, each.column) for each in found],
            f"{why}, so figures such as k would count rows; nothing was written:\n"
            + "\n".join(f"  - {each.sentence}" for each in found),
            expected=A_UNIT,
            remedy=what_to_declare(found),
        )


def refuse_unaccepted(
    findings: Sequence[Finding],
    given: Sequence[Acceptance],
    inherited: Sequence[Inherited] = (),
    *,
    written: bool = True,
) -> None:
    """Raise unless every finding has an acceptance. `written` is true if all rules were checked on a file."""
    remaining = [finding for finding in findings if finding.accepted(covering([finding], given, inherited)) is None]
    if not remaining:
        return
    keys = list(dict.fromkeys(finding.key for finding in remaining))
    lines = [f"  - {finding.what}{_not_covered(finding, inherited)}" for finding in remaining]
    later = "" if written else "; the other rules are checked on the written file"
    raise PolicyError(
        remaining,
        "the release does not meet the policy; nothing was written:\n" + "\n".join(lines),
        expected=f"a release that meets [policy], or an acceptance with a reason for each rule that is broken{later}",
        remedy="another point, another search or other roles; or accept with a reason: "
        + ", ".join(f'accept = {{"{key}": "…"}}' for key in keys),
    )


def _not_covered(finding: Finding, inherited: Sequence[Inherited]) -> str:
    """Return why the reason of an earlier release does not cover a finding, empty if there was none."""
    before = next((one for one in inherited if finding.accepted([one.acceptance]) is not None), None)
    if before is None:
        return ""
    return f" The reason given for the release it comes from does not cover this: {'; '.join(before.worse(finding))}."


def accepted_findings(findings: Sequence[Finding], given: Sequence[Acceptance]) -> list[dict[str, object]]:
    """Return the accepted findings, each with its reason, for the reports and the manifest."""
    pairs = [(finding, finding.accepted(given)) for finding in findings]
    return [finding.as_dict() | {"reason": accepted.reason} for finding, accepted in pairs if accepted is not None]


TIMES = 100  # the largest value against what most values stay below
MOST = 0.99  # the share of values that is most
NUMERIC = 0.9  # the share of cells that must be numbers


def extreme_columns(engine: Engine, study: Study, written: Source) -> list[str]:
    """Return `other` columns whose largest value is more than 100 times what 99 % of their values stay below.

    The value itself is never reported. Two scans serve all columns, and counts replace a percentile, which would hold
    every value in memory. The file is the engine's view `written`.
    """
    columns = [c for c in written.columns if c.name in study.columns and study.columns[c.name].role is Role.OTHER]
    if not columns:
        return []
    values = f"SELECT {', '.join(cell for i, c in enumerate(columns) for cell in _cells(written, c, i))} FROM written"
    parts = [f"max(v{i}), count(v{i}), count(t{i})" for i in range(len(columns))]
    counts = engine.rows(f"SELECT {', '.join(parts)} FROM ({values}) AS t")[0]
    read = {i: counts[3 * i : 3 * i + 3] for i in range(len(columns))}
    numbers = {i: n for i, (top, n, cells) in read.items() if top and n >= NUMERIC * cells}
    if not numbers:
        return []
    parts = [
        f"count(CASE WHEN v{i} > 0 THEN 1 END), "
        f"count(CASE WHEN v{i} < {min(float(read[i][0]), sys.float_info.max) / TIMES!r} THEN 1 END)"
        for i in numbers
    ]
    near = engine.rows(f"SELECT {', '.join(parts)} FROM ({values}) AS t")[0]
    found = zip(numbers.items(), near[::2], near[1::2], strict=True)
    return [columns[i].name for (i, n), positive, below in found if positive > (1 - MOST) * n and below >= MOST * n]


def _cells(written: Source, column: Column, position: int) -> tuple[str, str]:
    """Return a cell as a number, and as it is."""
    if column.is_text or written.settings.na:
        cell = cleaned(written, column)
        return f"abs({numeric(written, cell)}) AS v{position}", f"{cell} AS t{position}"
    return f"abs(TRY_CAST({column.sql} AS DOUBLE)) AS v{position}", f"{column.sql} AS t{position}"


def extreme_warnings(names: Sequence[str]) -> list[str]:
    return [
        f"{name} is released with a largest value that is more than {TIMES} times its 99th percentile: "
        "such a value may identify a person. Top-code it, or give the column another role."
        for name in names
    ]


LISTED = 5  # columns that a sentence names
FIRST = "one_record_each"


def release_dependences(engine: Engine, source: Source, study: Study, columns: Sequence[ColumnRecode]) -> Dependences:
    """Search the source, attached as `raw`, for dependences among the records that the missing rule keeps.

    Of a person with several records the first is searched. The other records repeat what is constant for the person, so
    a value that only this person has would seem to follow from other people.
    """
    roles = {name: study.columns[name].role for name in source.names}
    kept = [n for n, role in roles.items() if role.released and role is not Role.QUASI_IDENTIFIER]
    protected = [generalized(column) for column in columns if column.level > 0]
    protected += [Protected(n, "withheld") for n, role in roles.items() if not role.released]
    protected += [Protected(n, "sensitive") for n, role in roles.items() if role is Role.SENSITIVE]
    beside = [column.name for column in columns if column.level == 0]
    rows, unit = complete_rows(source, study), holder_cells(source, study).get(PERSON)
    raw = "raw" if unit is None else first_records(engine, "raw", unit, rows)
    return dependences(engine, source, kept, protected, beside, rows=rows, raw=raw)


def first_records(engine: Engine, view: str, key: str, rows: str) -> str:
    """Return the name of a view with the first of the records of another view that are equal in a key."""
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE first_records AS SELECT min(r) AS first FROM {view}_numbered WHERE {rows} "
        f"GROUP BY {key}"
    )
    for ending in ("_numbered", ""):
        chosen = f"SELECT * FROM {view}_numbered WHERE r IN (SELECT first FROM first_records)"
        engine.run(f"CREATE OR REPLACE TEMP VIEW {FIRST}{ending} AS {chosen}")
    return FIRST


def generalized(column: ColumnRecode) -> Protected:
    """Return a quasi-identifier with the labels of every level up to the released one."""
    steps = [
        {key: column.tree.levels[level][group] for key, group in zip(column.keys, column.tree.maps[level], strict=True)}
        for level in range(1, column.level + 1)
    ]
    return Protected(column.name, "generalized", tuple(steps))


def dependence_findings(
    engine: Engine, source: Source, study: Study, columns: Sequence[ColumnRecode]
) -> tuple[list[Finding], list[str]]:
    """Return what violates the rule `dependence`, and further warnings for the publisher.

    A quasi-identifier that is released unchanged and reveals a generalized one violates no rule: records that differ in
    it are in different classes, so every figure counts what it reveals. The publisher is warned that the generalization
    has no effect.
    """
    searched = release_dependences(engine, source, study, columns)
    kept = [n for n in source.names if study.columns[n].role is not Role.QUASI_IDENTIFIER]
    vain = [dependence for dependence in searched.dependences if dependence.kept[0] not in kept]
    noun = "persons" if study.named(Role.UNIT) else "records"
    return findings_of(searched, study, kept, noun), [_in_vain(dependence, noun) for dependence in vain]


def findings_of(searched: Dependences, study: Study, kept: Sequence[str], noun: str = "records") -> list[Finding]:
    """Return the findings about kept columns that reveal a protected one, one for each column."""
    found = []
    for name in kept:
        listed = [dependence for dependence in searched.dependences if dependence.kept[0] == name]
        if listed:
            what = sentence(name, listed, released_as(study, name), noun)
            # For each protected column, the share of the records for which it follows.
            shares = {d.protected: max(e.right for e in listed if e.protected == d.protected) for d in listed}
            found.append(Finding("dependence", what, name, shares))
    return found


def released_as(study: Study, name: str) -> str:
    """Return how a column that no plan recodes is released."""
    treatment = study.treatments.get(name)
    return "unchanged" if treatment is None else "in bands" if treatment.bands else "rounded"


def sentence(name: str, listed: Sequence[Dependence], how: str = "unchanged", noun: str = "records") -> str:
    """Return a sentence for the publisher on what a kept column reveals."""
    return f"{name} is released {how} and {'; '.join(_clause(d, noun) for d in listed[:LISTED])}" + (
        f"; and {len(listed) - LISTED} more columns: {shortened([d.protected for d in listed[LISTED:]])}"
        if len(listed) > LISTED
        else ""
    )


def _clause(d: Dependence, noun: str) -> str:
    exact = {"one_to_one": ", one-to-one", "many_to_one": "", "nearly": ""}[d.kind]
    if d.way == "follows":
        return (
            f"is finer than the released labels of {d.protected}: it follows from {d.protected} for "
            f"{percent_down(d.right)} of the {noun}, from its released label for {percent_down(d.base)}{exact}"
        )
    if d.way == "finds":
        return f"finds {percent_down(d.right)} of the {noun} that {d.protected} is to hide, and is mostly right"
    helped = f"with {d.kept[1]} " if len(d.kept) > 1 else ""
    what = d.protected if not d.step else f"a finer label of {d.protected}"
    how = "gives, by a sum," if d.way == "computes" else "tells"
    return (
        f"{helped}{how} {what}, which is {d.status}: right for {percent_down(d.right)} of the {noun}, "
        f"{percent_down(d.base)} without it{exact}"
    )


def _in_vain(d: Dependence, noun: str) -> str:
    what = "it" if not d.step else "a finer label of it"
    helped = f" with {d.kept[1]}" if len(d.kept) > 1 else ""
    return (
        f"{d.protected} is generalized without effect: {d.kept[0]}, released unchanged, determines {what}{helped} for "
        f"{percent_down(d.right)} of the {noun}."
    )
