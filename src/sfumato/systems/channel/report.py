"""The reports of a chosen channel: a folder with what an analyst needs, and the publisher's own page."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from sfumato.data.disguised import mark_of
from sfumato.errors import InputError
from sfumato.report.channel_pages import Facts, external_page, internal_page
from sfumato.systems.channel.front import ChannelFront


def write_reports(front: ChannelFront, point: int, folder: Path, disguised: Path | None = None) -> dict[str, Path]:
    """Write external.html, channel.json and internal.html into a new folder, whole or not at all."""
    chosen = front.point(point)
    folder = folder.absolute()
    if folder.exists():
        raise InputError(f"{folder} is there already", expected="a new folder", remedy="another name with -o")
    if not folder.parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}", expected="an existing folder to write to")
    if disguised is not None and not mark_of(disguised).is_file():
        raise InputError(
            f"{disguised.name} is no disguised file: it has no {mark_of(disguised).name} beside it",
            expected="a file that sfumato channel disguise wrote",
        )
    facts = Facts(
        chosen.channel,
        chosen.figures,
        front.delta,
        chosen.lower_bound,
        dict(chosen.attributes),
        front.prior.records,
        disguised.name if disguised is not None else None,
    )
    others = [(p.id, p.figures, p.lower_bound) for p in front.points]
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        inside = part / folder.name
        inside.mkdir()
        (inside / "external.html").write_text(external_page(facts), "utf-8")
        chosen.channel.save(inside / "channel.json")
        (inside / "internal.html").write_text(
            internal_page(facts, front.prior.shares, others, chosen.id, front.engine, front.exact), "utf-8"
        )
        inside.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return {name: folder / name for name in ("external.html", "channel.json", "internal.html")}
