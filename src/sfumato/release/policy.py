"""The rules a release must keep to: what it breaks of them, and what of that was accepted with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.auditing.whole import WholeFile
from sfumato.errors import InputError, UnreachableError
from sfumato.measures.standard import DISTINCT_L, T_CLOSENESS, K
from sfumato.runtime.figures import percent
from sfumato.study.policy import RULE_K, RULE_UNIQUES, Acceptance, PolicySettings, Rule


@dataclass(frozen=True)
class Finding:
    """A rule that a release breaks: what was measured, in a sentence for the publisher."""

    rule: Rule
    what: str
    column: str | None = None

    @property
    def key(self) -> str:
        """The name under which it is accepted: the rule, and the column of a rule about columns."""
        return f"{self.rule}:{self.column}" if self.column is not None else str(self.rule)

    def accepted(self, given: Sequence[Acceptance]) -> Acceptance | None:
        """The acceptance that covers it, if there is one."""
        return next((a for a in given if a.rule == self.rule and a.column == self.column), None)

    def as_dict(self) -> dict[str, str]:
        described = {"rule": str(self.rule), "what": self.what}
        return described | {"column": self.column} if self.column is not None else described


class PolicyError(UnreachableError):
    """A release breaks rules of the policy that nobody accepted."""

    def __init__(self, findings: Sequence[Finding], what: str, *, expected: str = "", remedy: str = "") -> None:
        super().__init__(what, expected=expected, remedy=remedy)
        self.findings = tuple(findings)

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | {"findings": [f.as_dict() | {"key": f.key} for f in self.findings]}


def acceptances(given: Mapping[str, str] | Sequence[Acceptance]) -> tuple[Acceptance, ...]:
    """Acceptances as given in Python or on a command line: a rule, or `rule:column`, and the reason.

    >>> acceptances({"dependence:density": "areas of this density are public knowledge"})[0].column
    'density'
    """
    if not isinstance(given, Mapping):
        return tuple(given)
    parsed = []
    for key, reason in given.items():
        rule, _, column = key.partition(":")
        try:
            parsed.append(Acceptance.given(rule=rule, column=column or None, reason=reason))
        except InputError as error:
            raise InputError(
                f'the acceptance of "{key}" is not valid: {error.what}',
                expected="a rule (k, l, t, suppressed, uniques, raw, attacks, earlier; dependence:COLUMN, "
                "identifying:COLUMN) and a reason of ten characters or more",
            ) from None
    return tuple(parsed)


def policy_findings(
    policy: PolicySettings,
    figures: Mapping[str, Mapping[str, Any]],
    whole: WholeFile,
    *,
    suppressed: int,
    records: int,
    raw: bool,
) -> list[Finding]:
    """What a release breaks of the policy, by the figures that were measured on its file."""
    findings = []
    if raw:
        findings.append(Finding("raw", "Nothing is recoded or suppressed: this is the original table."))
    k = figures[K.name]["value"]
    if k is not None and k < policy.k:
        crowd = "no other record" if k <= 1 else f"as few as {k - 1:.0f} {'other' if k == 2 else 'others'}"
        findings.append(
            Finding(RULE_K, f"Some records share their quasi-identifiers with {crowd}: k is {k:.0f}, below {policy.k}.")
        )
    diversity = figures.get(DISTINCT_L.name, {}).get("value")
    if diversity is not None and diversity < policy.l:
        findings.append(
            Finding(
                "l",
                f"In some classes a sensitive column has {diversity:.0f} different "
                f"{'value' if diversity <= 1 else 'values'}, so anyone who finds the class learns "
                f"{'it' if diversity <= 1 else 'almost as much'}: ℓ is {diversity:.0f}, below {policy.l}.",
            )
        )
    distance = figures.get(T_CLOSENESS.name, {}).get("value")
    if distance is not None and distance >= policy.t and policy.t < 1:
        findings.append(
            Finding(
                "t",
                "The distribution of a sensitive column in some class differs too much from the whole file: "
                f"t is {distance:.3f}, not below {policy.t:g}.",
            )
        )
    if suppressed > policy.suppressed * records:
        findings.append(
            Finding(
                "suppressed",
                f"{percent(suppressed / max(records, 1))} of the records are suppressed, more than "
                f"{percent(policy.suppressed)}.",
            )
        )
    return findings + unique_findings(policy, whole)


def unique_findings(policy: PolicySettings, whole: WholeFile) -> list[Finding]:
    """Too many records of a released file that are unique in what somebody may know of them."""
    known = whole.known
    if not known.columns or known.unique <= policy.uniques * known.records:
        return []
    return [
        Finding(
            RULE_UNIQUES,
            f"{known.unique:,} of {known.records:,} released records ({percent(known.unique_share)}) are unique over "
            f"the quasi-identifiers and the columns that are released unchanged, more than {percent(policy.uniques)}.",
        )
    ]


def refuse_unaccepted(findings: Sequence[Finding], given: Sequence[Acceptance]) -> None:
    """Raise unless every finding was accepted with a reason."""
    remaining = [finding for finding in findings if finding.accepted(given) is None]
    if not remaining:
        return
    keys = ", ".join(dict.fromkeys(finding.key for finding in remaining))
    raise PolicyError(
        remaining,
        "the release does not meet the policy; nothing was written:\n"
        + "\n".join(f"  - {finding.what}" for finding in remaining),
        expected="a release that meets [policy], or an acceptance with a reason for each rule that is broken",
        remedy=f"another point, other thresholds or other roles; or accept each of these with a reason: {keys}",
    )


def accepted_findings(findings: Sequence[Finding], given: Sequence[Acceptance]) -> list[dict[str, str]]:
    """The findings that were accepted, each with its reason, for the reports and the manifest."""
    described = []
    for finding in findings:
        acceptance = finding.accepted(given)
        if acceptance is not None:
            described.append(finding.as_dict() | {"reason": acceptance.reason})
    return described
