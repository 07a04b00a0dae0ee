"""Publish what was chosen."""

from __future__ import annotations

from pathlib import Path

from sfumato.decide import Choice
from sfumato.release.publish import Release
from sfumato.release.publish import publish as publish_point


def publish(
    choice: Choice,
    folder: str | Path,
    *,
    starred: bool = False,
    reason: str | None = None,
    state: str | Path | None = None,
) -> Release:
    """Write a chosen point as a new release folder; the reason of the choice goes into the internal report.

    The file is read back and measured after it is written, and nothing is left if a figure differs.
    """
    told = choice.reason if reason is None else reason
    return publish_point(choice.front, choice.point.id, folder, starred=starred, reason=told, state=state)
