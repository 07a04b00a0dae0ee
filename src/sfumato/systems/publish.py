"""Publish what was chosen, whatever system it is from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sfumato.decide import Choice
from sfumato.release.publish import Release, publish_draft
from sfumato.release.rehearse import Rehearsal, rehearse_draft
from sfumato.runtime.atomic import refuse_existing_folder
from sfumato.runtime.stages import Progress
from sfumato.study.policy import Acceptance
from sfumato.systems.registry import system_named
from sfumato.systems.system import Publishing


def publish(
    choice: Choice,
    folder: str | Path,
    *,
    reason: str | None = None,
    accept: Mapping[str, str] | Sequence[Acceptance] = (),
    name: str | None = None,
    format: str | None = None,  # noqa: A002
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Release:
    """Write a chosen point as a new release folder; the reason of the choice goes into the internal report.

    The file is read back and measured after it is written, and nothing is left if a figure differs or if it breaks
    the study's policy; `accept` gives a reason for each rule that it may break: `{"uniques": "the file stays in the
    safe room"}`. `name` is that of the released file, `format` csv, parquet, sav, dta or xlsx (that of the source
    unless given), `state` the folder of the ledger, the user's own unless given.

    Args:
        choice: what `pick` or `ask` chose.
        folder: a folder that does not exist yet.
        reason: why this release, for the internal report.
        accept: rules that the release may break, each with a reason.
        name: the name of the released file, without its ending.
        format: csv, parquet, sav, dta or xlsx.
        state: the folder of the ledger.
        progress: a function that is told how far it is.

    Returns:
        The release: its folder, its file, what was measured on it.
    """
    stated = choice.reason if reason is None else reason
    refuse_existing_folder(Path(folder).absolute())
    draft = system_named(choice.front.system).draft(choice, Publishing(accept, name, progress, format))
    return publish_draft(draft, folder, reason=stated, state=state)


def rehearse(choice: Choice, *, state: str | Path | None = None) -> Rehearsal:
    """What `publish` would write, measure and refuse, without writing anything that stays.

    >>> import sfumato as sf
    >>> front = sf.search(sf.read(sf.sample("adult")))
    >>> [finding.key for finding in rehearse(sf.pick(front, point=0)).findings]
    ['raw', 'k', 'l', 't', 'uniques']
    """
    return rehearse_draft(system_named(choice.front.system).draft(choice, Publishing()), state=state)
