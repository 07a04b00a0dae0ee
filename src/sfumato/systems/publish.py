"""Publish what was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sfumato.data.policy import Acceptance
from sfumato.decide import Choice
from sfumato.release.publish import Release
from sfumato.release.publish import publish as publish_point


def publish(
    choice: Choice,
    folder: str | Path,
    *,
    reason: str | None = None,
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    name: str | None = None,
    state: str | Path | None = None,
) -> Release:
    """Write a chosen point as a new release folder; the reason of the choice goes into the internal report.

    The file is read back and measured after it is written, and nothing is left if a figure differs or if it breaks
    the study's policy; `accept` gives a reason for each rule that it may break.
    """
    stated = choice.reason if reason is None else reason
    return publish_point(choice.front, choice.point.id, folder, reason=stated, accept=accept, name=name, state=state)
