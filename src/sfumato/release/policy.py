"""The rules a release must keep to: what it breaks of them, and what of that was accepted with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.data.policy import Acceptance, Rule
from sfumato.errors import UnreachableError


@dataclass(frozen=True)
class Finding:
    """A rule that a release breaks: what was measured, in a sentence for the publisher."""

    rule: Rule
    what: str
    column: str | None = None

    def accepted(self, given: Sequence[Acceptance]) -> Acceptance | None:
        """The acceptance that covers it, if there is one."""
        return next((a for a in given if a.rule == self.rule and a.column == self.column), None)

    def as_dict(self) -> dict[str, str]:
        found = {"rule": str(self.rule), "what": self.what}
        return found | {"column": self.column} if self.column is not None else found


def refuse_unaccepted(findings: Sequence[Finding], given: Sequence[Acceptance]) -> None:
    """Raise unless every finding was accepted with a reason."""
    open_ = [finding for finding in findings if finding.accepted(given) is None]
    if not open_:
        return
    rules = dict.fromkeys(f"{f.rule}:{f.column}" if f.column else str(f.rule) for f in open_)
    raise UnreachableError(
        "the release breaks the policy, so nothing was written:\n"
        + "\n".join(f"  - {finding.what}" for finding in open_),
        expected="a release within [policy], or an acceptance with a reason for each rule it breaks",
        remedy="another point, other roles; or accept " + ", ".join(rules) + " with a reason",
    )
