"""Publish a choice, verify a release and draw a front as a page, for all systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.base.files import refuse_existing_folder, write_text
from sfumato.base.progress import Progress
from sfumato.data.frame import is_frame
from sfumato.data.settings import EngineOptions
from sfumato.decide.pick import Choice
from sfumato.front import Front
from sfumato.methods.registry import system_named, verifier_of
from sfumato.methods.system import Publishing
from sfumato.release.publish import Rehearsal, Release, publish_draft, rehearse_draft
from sfumato.release.verify import Verification, verify_release
from sfumato.study.sections import Acceptance
from sfumato.tables.frequency import FrequencyTable


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
    """Write a chosen point as a new release folder; the reason for the choice is written into the internal report.

    The file is read back and measured after it is written. No file is left if a figure differs or if it breaks the
    policy of the study.

    Args:
        choice: what `pick` or `ask` chose.
        folder: a folder that does not exist yet.
        reason: why this release, for the internal report.
        accept: rules that the release may break, each with a reason: `{"uniques": "the file stays in the safe room"}`.
        name: the name of the released file, without its ending.
        format: csv, parquet, sav, dta or xlsx, by default that of the source.
        state: the folder of the ledger, by default that of the user.
        progress: a function that receives the progress.

    Returns:
        The release: its folder, its file, what was measured on it.
    """
    stated = choice.reason if reason is None else reason
    refuse_existing_folder(Path(folder).absolute())
    draft = system_named(choice.front.system).draft(choice, Publishing(accept, name, progress, format))
    return publish_draft(draft, folder, reason=stated, state=state)


def rehearse(choice: Choice, *, state: str | Path | None = None) -> Rehearsal:
    """Return what `publish` would write, measure and refuse; nothing is kept.

    >>> import sfumato as sf
    >>> front = sf.search(sf.read(sf.sample("adult")))
    >>> [finding.key for finding in rehearse(sf.pick(front, point=0)).findings]
    ['raw', 'k', 'l', 't', 'uniques']
    """
    return rehearse_draft(system_named(choice.front.system).draft(choice, Publishing()), state=state)


def verify(
    folder: str | Path,
    source: Any = None,
    *,
    engine: str = "duckdb",
    engine_options: EngineOptions | None = None,
    other_version: bool = False,
) -> Verification:
    """Compare a release folder with what was published, and with its source if that is given.

    The files that an attack on a protected group learns from are never taken from the folder. Such a release is
    attacked only if `source` is the run file that names them.

    Pages that another version drew cannot be compared word by word. They are listed, and the release is not verified
    unless `other_version` states that this is known. Code that can run or load is not accepted in a page of any
    version.

    Args:
        folder: the release.
        source: the table it was made from (a path, or a table in memory), or a run file of the caller that says how
            to read it, which is required for a query of a database.
        engine: where rows are compared.
        engine_options: its memory limit and threads.
        other_version: whether a release counts as verified although another version drew its pages.

    Returns:
        What agrees and what differs; true if nothing differs.
    """
    named = source if source is None or is_frame(source) else str(source)
    return verify_release(verifier_of, folder, named, engine, engine_options or EngineOptions(), other_version)


def draw(
    front: Front,
    path: str | Path,
    chosen: int | None = None,
    table: FrequencyTable | None = None,
    compare: tuple[int, int] | None = None,
) -> Path:
    """Write the map of a front as a self-contained page; `chosen` marks a point.

    Args:
        front: the front.
        path: the page to write.
        chosen: the id of a point to mark.
        table: the study's frequency table, if it was read before.
        compare: the ids of two points of a recoding whose class sizes are shown side by side.

    Returns:
        The page that was written.
    """
    text = system_named(front.system).page(front, chosen, compare, table)
    return write_text(path, text, overwrite=True, private=True)
