"""The reports of a chosen channel: a folder with what an analyst needs, and the publisher's own page."""

from __future__ import annotations

from pathlib import Path

from sfumato.data.atomic import new_folder, refuse_existing_folder
from sfumato.data.disguised import mark_of
from sfumato.errors import InputError
from sfumato.report.channel_pages import Facts, external_page, internal_page
from sfumato.systems.channel.front import ChannelFront


def write_reports(front: ChannelFront, point: int, folder: Path, disguised: Path | None = None) -> dict[str, Path]:
    """Write external.html, channel.json and internal.html into a new folder, whole or not at all."""
    chosen = front.point(point)
    folder = folder.absolute()
    refuse_existing_folder(folder)
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
    with new_folder(folder) as inside:
        (inside / "external.html").write_text(external_page(facts), "utf-8")
        chosen.channel.save(inside / "channel.json")
        (inside / "internal.html").write_text(
            internal_page(facts, front.prior.shares, others, chosen.id, front.engine, front.exact), "utf-8"
        )
    return {name: folder / name for name in ("external.html", "channel.json", "internal.html")}
