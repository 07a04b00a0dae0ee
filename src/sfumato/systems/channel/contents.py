"""What the folder of a disguise holds: the manifest, and the mark and the pages that are drawn from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.arrays import Floats
from sfumato.data.disguised import mark_of
from sfumato.data.engine import Engine
from sfumato.data.json_files import read_json
from sfumato.data.policy import PolicySettings
from sfumato.data.source import Source
from sfumato.errors import InputError
from sfumato.measures.whole import WholeFile, uniqueness
from sfumato.plans.channel import Channel
from sfumato.release import pack
from sfumato.release.policy import Finding, unique_findings
from sfumato.report.channel_pages import external_page, internal_page
from sfumato.systems.channel import facts
from sfumato.systems.channel.draw import TEST_COLUMN

CHANNEL = f"{pack.PRIVATE}/channel.json"
FORMAT = "sfumato-disguise"


@dataclass(frozen=True, eq=False)
class Disguised:
    """A disguised file: its channels, how it was made, and what was counted in the source and in the file itself.

    `counts` are the records of each category in the source, `reports` those of each output in the file, channel by
    channel; `whole` says how unique records are over all columns, and over those that are kept as they are.
    """

    channels: tuple[Channel, ...]
    kept: tuple[str, ...]
    data: str
    keep_order: bool
    test_seed: int | None
    counts: tuple[Floats, ...]
    reports: tuple[Floats, ...]
    whole: WholeFile

    @property
    def columns(self) -> list[str]:
        """The columns of the file."""
        return columns_of(self.channels, self.kept, self.test_seed)

    @property
    def randomness(self) -> str:
        if self.test_seed is None:
            return "operating system"
        return f"Drawn with the fixed test seed {self.test_seed}: anyone can undo it. Not for release."

    def as_dict(self) -> dict[str, Any]:
        """What the manifest says of it. All of it follows from what was counted, so that it can be checked again."""
        abouts = [
            facts.about_channel(channel, counts, reports)
            for channel, counts, reports in zip(self.channels, self.counts, self.reports, strict=True)
        ]
        records = int(self.counts[0].sum())
        return {
            "data": self.data,
            "columns": self.columns,
            "kept": list(self.kept),
            "keep_order": self.keep_order,
            "test_seed": self.test_seed,
            "randomness": self.randomness,
            "records": records,
            "suppressed": 0,
            "released": records,
            "loss": sum(about["figures"]["loss"] for about in abouts) / len(abouts),
            "figures": {about["name"]: about["figures"] for about in abouts},
            "channels": abouts,
            "whole": self.whole.as_dict(),
            "point": {"id": (abouts[0]["front"] or {}).get("chosen")},
        }

    def private_text(self) -> str:
        """The file that only the publisher may read: the channels with all that is known, and the true counts."""
        about = {
            "format": FORMAT,
            "channels": [channel.as_dict() for channel in self.channels],
            "counts": [[int(n) for n in counts] for counts in self.counts],
        }
        return json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def findings(self, policy: PolicySettings) -> list[Finding]:
        """What it breaks of the policy: categories of very few people, and people alone in the plain columns."""
        found = []
        for channel, counts in zip(self.channels, self.counts, strict=True):
            few = int(((counts > 0) & (counts < policy.k)).sum())
            if few:
                stand = "category stands" if few == 1 else "categories stand"
                found.append(
                    f"{few} {stand} for fewer than {policy.k} records in {channel.name}: the public channel tells that "
                    "there are such people."
                )
        smallest = self.whole.known.smallest
        if self.kept and smallest < policy.k:
            found.append(f"Over the plain columns the smallest class has {smallest} records, below {policy.k}.")
        return [*([Finding("k", " ".join(found))] if found else []), *unique_findings(policy, self.whole)]

    def warnings(self) -> list[str]:
        """What the publisher should know."""
        found = []
        for channel, counts in zip(self.channels, self.counts, strict=True):
            if facts.tells_shares(channel):
                found.append(
                    f"the public matrix of {channel.name} was designed for the exact shares of this table and tells "
                    f"them {'roughly' if channel.square else 'exactly'}: design it with shares from elsewhere if they "
                    "must not be known."
                )
            delta, worst = channel.notes.get("delta"), facts.figures_of(channel, counts)["worst_posterior"]
            if isinstance(delta, int | float) and worst > delta + 1e-6:
                found.append(
                    f"{channel.name} was designed for posteriors of at most {delta:g}, but with the shares of this "
                    f"table a report lets one believe a category with up to {worst:.4f}."
                )
        if self.kept:
            found.append("plain columns are as they were: who knows them may guess better than the figures say.")
        if self.keep_order:
            found.append("the rows are in the order of the source, which may tell what they hold.")
        return found if self.test_seed is None else [*found, self.randomness]


def whole_of(engine: Engine, file: Source, kept: Sequence[str]) -> WholeFile:
    """How unique the records of a disguised file are; it is the engine's view `written`."""
    return WholeFile(uniqueness(engine, file, file.names), uniqueness(engine, file, kept), tuple(kept))


def columns_of(channels: Sequence[Channel], kept: Sequence[str], test_seed: int | None) -> list[str]:
    """The columns of a disguised file: the reports, the plain ones, and the mark of a test."""
    return [*(channel.name for channel in channels), *kept, *([TEST_COLUMN] if test_seed is not None else [])]


def read_private(path: Path) -> tuple[tuple[Channel, ...], tuple[Floats, ...]]:
    """The channels and the true counts from the private file of a disguise."""
    expected = "channels with the counts of their categories"
    about = read_json(path, expected=expected)
    try:
        channels = tuple(Channel.from_dict(one) for one in about["channels"])
        counts = tuple(np.array(one, dtype=np.float64) for one in about["counts"])
        whole = all(
            found.shape == (channel.size,) and (found >= 0).all() and (found > 0).sum() > 1
            for channel, found in zip(channels, counts, strict=True)
        )
        if about["format"] == FORMAT and channels and whole and len({found.sum() for found in counts}) == 1:
            return channels, counts
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise InputError(f"{CHANNEL} cannot be read", expected=expected)


def pages_of(manifest: Mapping[str, Any], channels: Sequence[Channel]) -> dict[str, str]:
    """The mark beside the file and the pages, as the manifest has them; drawn again by a verification."""
    notes = {
        "disguised": [name for channel in channels for name in channel.columns],
        "plain": manifest["kept"],
        "file": Path(manifest["data"]).name,
        "records": manifest["released"],
        "order": "as in the source" if manifest["keep_order"] else "random",
        "reference": "equal shares",
        "randomness": manifest["randomness"],
    }
    mark = facts.mark_for(channels, manifest["channels"], notes)
    text = json.dumps(mark, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {
        mark_of(Path(manifest["data"])).as_posix(): text,
        pack.EXTERNAL: external_page(mark),
        pack.INTERNAL: internal_page(manifest),
    }
