"""Check a release again, whichever system made it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.release.verification import Verification
from sfumato.release.verify import verify_release
from sfumato.sources.frames import is_frame
from sfumato.sources.settings import EngineOptions
from sfumato.systems.registry import VERIFIERS


def verify(
    folder: str | Path,
    source: Any = None,
    *,
    engine: str = "duckdb",
    engine_options: EngineOptions | None = None,
    other_version: bool = False,
) -> Verification:
    """Compare a release folder with what was published, and with its source if that is given.

    `source` is the table (a path, or a table in memory), or a run file of one's own that says how to read it (needed
    for a query of a database). The files that an attack on a protected group learns from are never taken from the
    folder: such a release is attacked again if `source` is the run file that names them.

    Pages that another version drew cannot be compared word by word: they are listed, and the release is not verified
    unless `other_version` says that this is known. Nothing that can run or load is accepted in a page of any version.

    Args:
        folder: the release.
        source: the table it was made from, or a run file of one's own.
        engine: where rows are compared.
        engine_options: its memory limit and threads.
        other_version: whether a release counts as verified although another version drew its pages.

    Returns:
        What agrees and what differs; true if nothing differs.
    """
    named = source if source is None or is_frame(source) else str(source)
    return verify_release(VERIFIERS, folder, named, engine, engine_options or EngineOptions(), other_version)
