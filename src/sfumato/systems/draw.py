"""Draw the front of any system as a page."""

from __future__ import annotations

from pathlib import Path

from sfumato.front import Front
from sfumato.runtime.atomic import write_text
from sfumato.systems.registry import system_named
from sfumato.tables.frequency import FrequencyTable


def draw(
    front: Front,
    path: str | Path,
    chosen: int | None = None,
    table: FrequencyTable | None = None,
    compare: tuple[int, int] | None = None,
) -> Path:
    """Write the map of a front as a self-contained page; `chosen` marks a point.

    `table` is the study's frequency table, where it was read before. `compare` names two points of a recoding whose
    class sizes are shown side by side.

    Args:
        front: the front.
        path: the page to write.
        chosen: the id of a point to mark.
        table: the study's frequency table, where it was read before.
        compare: the ids of two points to show side by side.

    Returns:
        The page that was written.
    """
    text = system_named(front.system).page(front, chosen, compare, table)
    return write_text(path, text, overwrite=True, private=True)
