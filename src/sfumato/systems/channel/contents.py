"""What the folder of a disguise holds: the manifest, and the mark and the pages that are drawn from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing.own_values import own_values
from sfumato.auditing.whole import WholeFile, uniqueness
from sfumato.errors import InputError
from sfumato.plans.channel import Channel
from sfumato.release import pack
from sfumato.release.dictionary import plain_dictionary, treated_entries
from sfumato.release.manifest import Content
from sfumato.release.policy import UNIQUES, Finding, identifying_findings, left_out_findings, unique_findings
from sfumato.runtime.arrays import Floats
from sfumato.runtime.figures import percent
from sfumato.runtime.json_files import read_json
from sfumato.sources.engines.engine import Engine
from sfumato.sources.mark import mark_of
from sfumato.sources.source import Source
from sfumato.sources.value_counts import require
from sfumato.study import Study
from sfumato.study.policy import RULE_K, PolicySettings
from sfumato.systems.channel import facts
from sfumato.systems.channel.draw import TEST_COLUMN
from sfumato.systems.channel.given import public_given, response_findings
from sfumato.systems.channel.pages import external_page, internal_page
from sfumato.systems.channel.readback import Persons, Rows, Truth

CHANNEL = f"{pack.PRIVATE}/channel.json"
FORMAT = "sfumato-disguise"


@dataclass(frozen=True, eq=False)
class Disguise:
    """What is disguised in a file, and what goes along; how it is drawn, and the name of the file in the folder."""

    channels: tuple[Channel, ...]
    kept: tuple[str, ...]
    data: str
    keep_order: bool
    test_seed: int | None

    @property
    def hidden(self) -> list[str]:
        """The columns of the source that are disguised."""
        return [name for channel in self.channels for name in channel.columns]

    @property
    def columns(self) -> list[str]:
        """The columns of the file: the reports, the plain ones, and the mark of a test."""
        mark = [TEST_COLUMN] if self.test_seed is not None else []
        return [*(channel.name for channel in self.channels), *self.kept, *mark]

    @property
    def randomness(self) -> str:
        if self.test_seed is None:
            return "operating system"
        return f"Drawn with the fixed test seed {self.test_seed}: anyone can reverse it. Not for release."


@dataclass(frozen=True, eq=False)
class Disguised:
    """A disguised file, with what was counted in the source and in the file itself.

    `counts` are those of each category in the source (records, and persons where declared), `reports` those of each
    output in the file, channel by channel. `whole` says how unique records are over all columns, and over those that
    are kept as they are. `given` are the figures for someone who has the other columns too, None where there are none.
    """

    what: Disguise
    counts: tuple[Truth, ...]
    reports: tuple[Floats, ...]
    whole: WholeFile
    given: Mapping[str, Any] | None = None
    persons: Persons | None = None

    @property
    def records(self) -> int:
        return int(self.counts[0].rows.sum())

    @cached_property
    def abouts(self) -> list[dict[str, Any]]:
        """All that the publisher reads of each channel."""
        counted = zip(self.what.channels, self.counts, self.reports, strict=True)
        return [facts.about_channel(channel, counts, reports) for channel, counts, reports in counted]

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of each channel: given the other columns, if there are any, and on the shares of the table."""
        beside = {} if self.given is None else self.given["channels"]
        return {about["name"]: {"given": beside.get(about["name"]), **about["figures"]} for about in self.abouts}

    @property
    def loss(self) -> float:
        return float(sum(figures["loss"] for figures in self.figures.values()) / len(self.figures))

    @property
    def point(self) -> dict[str, int | None]:
        """The point of the front that the first channel was chosen from."""
        return {"id": (self.abouts[0]["front"] or {}).get("chosen")}

    def as_dict(self) -> dict[str, Any]:
        """The system's own entries. All follow from what was counted, so that they can be checked again."""
        return {
            "kept": list(self.what.kept),
            "keep_order": self.what.keep_order,
            "test_seed": self.what.test_seed,
            "randomness": self.what.randomness,
            "given": self.given,
            "persons": None if self.persons is None else asdict(self.persons),
            "channels": self.abouts,
        }

    def dictionary(self, study: Study, left_out: int) -> dict[str, Any]:
        """The data dictionary; `left_out` is how many columns of the source are not in the file."""
        hidden = {
            channel.name: {
                "role": "disguised",
                "meaning": "a report that was drawn at random",
                "done": "disguised",
                "words": f"Drawn at random for each record, with probabilities that depend on its true "
                f"{' and '.join(channel.columns)}: see {Path(pack.EXTERNAL).name}.",
            }
            for channel in self.what.channels
        }
        changed = treated_entries(study, self.what.kept) | hidden
        return plain_dictionary(self.what.columns, changed, Path(self.what.data).name, left_out)

    def findings(self, policy: PolicySettings, left_out: int) -> list[Finding]:
        """What it breaks of the policy: categories of very few people, and people alone in the plain columns."""
        listed = []
        kind = "records" if self.persons is None else "persons"
        for channel, counts in zip(self.what.channels, self.counts, strict=True):
            few = int(((counts.draws > 0) & (counts.draws < policy.k)).sum())
            if few:
                stand = "category has" if few == 1 else "categories have"
                listed.append(
                    f"{few} {stand} fewer than {policy.k} {kind} in {channel.name}: the public channel shows that "
                    "such people exist."
                )
        persons = None if self.persons is None else self.given
        smallest = self.whole.known.smallest if persons is None else persons["smallest"]
        if self.what.kept and smallest < policy.k:
            listed.append(f"Over the plain columns the smallest class has {smallest} {kind}, below {policy.k}.")
        broken = [Finding(RULE_K, " ".join(listed))] if listed else []
        alone = unique_findings(policy, self.whole)
        if persons is not None:
            alone = [*_alone(policy, persons, self.persons), *identifying_findings(policy.identifying, self.whole.own)]
        missing = left_out_findings(policy, self.records, left_out)
        return [*response_findings(self.given, policy), *broken, *missing, *alone]

    def warnings(self) -> list[str]:
        """What the publisher should know."""
        listed = []
        for channel, counts in zip(self.what.channels, self.counts, strict=True):
            if facts.tells_shares(channel):
                listed.append(
                    f"the public matrix of {channel.name} was designed for the exact shares of this table and tells "
                    f"them {'roughly' if channel.square else 'exactly'}: design it with shares from elsewhere if they "
                    "must not be known."
                )
            delta, worst = channel.notes.get("delta"), facts.figures_of(channel, counts.draws)["worst_posterior"]
            if isinstance(delta, int | float) and worst > delta + 1e-6:
                listed.append(
                    f"{channel.name} was designed for posteriors of at most {delta:g}, but with the shares of this "
                    f"table a report lets one believe a category with up to {worst:.4f}."
                )
        if self.persons is not None and self.persons.most_reports > 1:
            listed.append(
                f"some persons have rows with different values, and up to {self.persons.most_reports} reports: the ε "
                "of a person is the sum of the ε of the reports."
            )
        if self.what.keep_order:
            listed.append("the rows are in the order of the source, which may disclose their true values.")
        return listed if self.what.test_seed is None else [*listed, self.what.randomness]


def count_file(
    engine: Engine,
    what: Disguise,
    file: Source,
    counts: tuple[Truth, ...],
    given: Mapping[str, Any] | None,
    persons: Persons | None,
) -> Disguised:
    """Count the reports of a disguised file, and how unique its records are.

    `counts` are those of the source, `given` the figures given the other columns, which need the source too.
    """
    require(file, what.columns)
    written = Rows(engine, file, "written").attach()
    reports = tuple(written.everybody([channel.name], channel.output_cells).rows for channel in what.channels)
    known = uniqueness(engine, file, what.kept)
    own = own_values(engine, file, what.kept)
    whole = WholeFile(uniqueness(engine, file, file.names), known, what.kept, own=own)
    return Disguised(what, counts, reports, whole, given, persons)


def _alone(policy: PolicySettings, given: Mapping[str, Any], persons: Persons | None) -> list[Finding]:
    """Too many persons whose values of the plain columns no other person has."""
    number = given["records"] if persons is None else persons.number
    if given["alone"] <= policy.uniques * number:
        return []
    share = given["alone"] / number
    what = (
        f"{given['alone']:,} of {number:,} persons ({percent(share)}) are the only ones with their values of the "
        f"columns that are released unchanged, more than {percent(policy.uniques)}."
    )
    return [Finding(UNIQUES, what, figures={UNIQUES: share})]


def private_text(channels: Sequence[Channel], counts: Sequence[Truth], persons: Persons | None) -> str:
    """The file that only the publisher may read: the channels with all that is known, and the true counts."""
    about: dict[str, Any] = {
        "format": FORMAT,
        "channels": [channel.as_dict() for channel in channels],
        "counts": [[int(n) for n in truth.draws] for truth in counts],
    }
    if persons is not None:
        about["persons"] = asdict(persons)
        about["rows"] = [[int(n) for n in truth.rows] for truth in counts]
        about["squares"] = [[int(n) for n in truth.squares] for truth in counts]
        about["most"] = [truth.most for truth in counts]
    return json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_private(folder: Path) -> tuple[tuple[Channel, ...], tuple[Truth, ...], Persons | None]:
    """The channels, the true counts and the persons from the private file of a disguise."""
    expected = "channels with the counts of their categories"
    about = read_json(folder / CHANNEL, expected=expected)
    try:
        channels = tuple(Channel.from_dict(one) for one in about["channels"])
        persons = Persons(**about["persons"]) if "persons" in about else None
        numbers = [about["counts"]] * 3 if persons is None else [about["rows"], about["counts"], about["squares"]]
        counts = tuple(
            Truth(_numbers(rows), _numbers(draws), _numbers(squares), int(most))
            for rows, draws, squares, most in zip(
                *numbers, [1] * len(channels) if persons is None else about["most"], strict=True
            )
        )
        whole = all(
            row.shape == (channel.size,) and (row >= 0).all() and (row > 0).sum() > 1
            for channel, truth in zip(channels, counts, strict=True)
            for row in (truth.rows, truth.draws, truth.squares)
        )
        if about["format"] == FORMAT and channels and whole and len({truth.rows.sum() for truth in counts}) == 1:
            return channels, counts, persons
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise InputError(f"{CHANNEL} cannot be read", expected=expected)


def _numbers(listed: Any) -> Floats:
    return np.array(listed, dtype=np.float64)


def pages_of(folder: Path, manifest: Content) -> dict[str, str]:
    """The mark beside the file and the pages, as the manifest has them; drawn again by a verification."""
    channels, _, persons = read_private(folder)
    own = manifest["own"]
    notes = {
        "disguised": [name for channel in channels for name in channel.columns],
        "plain": own["kept"],
        "file": Path(manifest["data"]).name,
        "records": manifest["released"],
        "order": "as in the source" if own["keep_order"] else "random",
        "reference": "equal shares",
        "randomness": own["randomness"],
        "counted": manifest["unit"]["says"],
    }
    given = own["given"]
    notes["persons"] = None if persons is None else asdict(persons)
    if given is not None:
        notes["given"] = public_given(given)
    mark = facts.mark_for(channels, own["channels"], notes, given)
    text = json.dumps(mark, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {
        mark_of(Path(manifest["data"])).as_posix(): text,
        pack.EXTERNAL: external_page(mark),
        pack.INTERNAL: internal_page(manifest),
    }
