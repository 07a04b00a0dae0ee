"""The pages of a disguise: for analysts how to read and use the reports, for the publisher the measured figures.

The module also has the data of a disguise folder: the manifest, the mark and the pages that are drawn from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from markupsafe import Markup

from sfumato.auditing.uniqueness import WholeFile, own_values, uniqueness
from sfumato.base.arrays import Floats
from sfumato.base.formats import read_json
from sfumato.base.notebook import INK
from sfumato.base.text import number, percent
from sfumato.data.engine import Engine
from sfumato.data.source import Source, mark_of
from sfumato.data.value_counts import require
from sfumato.errors import InputError
from sfumato.methods.channel.draw import TEST_COLUMN, Persons, Rows, Truth
from sfumato.methods.channel.facts import HEADLINES, about_channel, figures_of, mark_for, tells_shares
from sfumato.methods.channel.given import Entries, headline_rows, others_words, public_given, response_findings
from sfumato.plans.channel import Channel
from sfumato.release.dictionary import plain_dictionary, treated_entries
from sfumato.release.manifest import EXTERNAL, INTERNAL, PRIVATE, Content
from sfumato.release.policy import UNIQUES, Finding, identifying_findings, left_out_findings, unique_findings
from sfumato.report.page import ACCENT, SECOND, Trace, figure, page, scatter
from sfumato.report.release_pages import internal, json_block
from sfumato.study import Study
from sfumato.study.sections import RULE_K, PolicySettings
from sfumato.version import __version__

SMALL = 10


def external_page(mark: Entries) -> str:
    """Return the page for analysts and respondents, from the mark next to the data: the method and its use.

    It states nothing that the mark does not state.
    """
    notes = mark["notes"]
    records = number(notes["records"]) if notes["records"] >= SMALL else f"fewer than {SMALL}"
    return page(
        "channel_external.html",
        title=f"The disguised column{'s' if len(mark['channels']) > 1 else ''} of this file",
        lead=f"In {notes['file']} the values of {' and '.join(notes['disguised'])} are not the true values. Each "
        "was replaced by a report drawn at random, with the probabilities below. The file has "
        f"{records} records{', in random order' if notes['order'] == 'random' else ''}.",
        tiles=(),
        version=__version__,
        notes=notes,
        others=others_words(notes["given"]["columns"]) if "given" in notes else "",
        small=percent(notes["given"]["small_share"]) if "given" in notes and notes["given"]["small_share"] else "",
        channels=[_public(channel, notes.get("given")) for channel in mark["channels"]],
        block=json_block({**notes, "channels": [channel["notes"] for channel in mark["channels"]]}),
    )


def _public(channel: Entries, beside: Entries | None) -> Entries:
    """Return one channel for analysts; what holds for a reader of the whole row comes first."""
    notes = channel["notes"]
    given = notes.get("given")
    error = "∞" if notes["expected_error"] is None else f"± {notes['expected_error'] ** 0.5:.2g}"
    epsilon = "∞" if notes["epsilon"] is None else f"{notes['epsilon']:g}"
    return {
        "name": "+".join(channel["columns"]),
        "categories": channel["categories"],
        "outputs": len(channel["outputs"]),
        "square": channel["categories"] == channel["outputs"],
        "inverted": len(channel["outputs"]) == len(channel["categories"]),
        "singular": notes["expected_error"] is None,
        "endless": notes["epsilon"] is None,
        "worst": percent(notes["worst_posterior"]),
        "right": percent(1 - notes["privacy"]),
        "given": None if given is None else {name: _percent(given[name]) for name in HEADLINES},
        "odds": "" if notes["epsilon"] is None else f"{math.exp(notes['epsilon']):.3g}",
        "tiles": _tiles(
            *(_alone(notes) if given is None or beside is None else _given_tiles(given, beside)),
            (error, "typical error of an estimated share, over all records"),
            (epsilon, "ε of local differential privacy"),
        ),
        "rows": _rows(channel),
        "attributes": _attributes(notes.get("attributes", {}), given),
    }


def _tiles(*tiles: tuple[str, str]) -> list[dict[str, str]]:
    return [{"value": value, "says": says} for value, says in tiles]


def _alone(notes: Entries) -> list[tuple[str, str]]:
    right = "of records at most whose true category the best possible guess gets right"
    return [
        (percent(notes["worst_posterior"]), "upper bound on the probability of any category, given a report"),
        (percent(1 - notes["privacy"]), right),
    ]


def _given_tiles(given: Entries, beside: Entries) -> list[tuple[str, str]]:
    others, least, worst = others_words(beside["columns"]), beside["records_least"], given["worst_posterior"]
    bound = f"upper bound on the probability of any category, given a report and {others}, where {least} or more "
    right = "of records at most whose true category the best possible guess gets right, given a report and "
    return [
        *([] if worst is None else [(percent(worst), f"{bound}records have the same {others}")]),
        (_percent(given["best_guess"]), f"{right}{others}"),
        (
            _percent(given["guess_from_file"]),
            "of records at most that a guess gets right which is learned from this file alone",
        ),
    ]


def _percent(share: float | None) -> str:
    return "–" if share is None else percent(share)


def _rows(channel: Entries) -> list[dict[str, object]]:
    """Return the rows of the matrix: complete if the reports are the categories, else only the entries above zero."""
    shown = []
    for name, row in zip(channel["outputs"], channel["matrix"], strict=True):
        said = [f"{cell:.4g}" if cell > 0 else "" for cell in row]
        some = ", ".join(f"{what} {cell}" for what, cell in zip(channel["categories"], said, strict=True) if cell)
        shown.append({"name": name, "cells": said, "some": some})
    return shown


def internal_page(manifest: Entries) -> str:
    """Return the page for the publisher: the figures of the written file and of the matrix, and the categories."""
    own = manifest["own"]
    agreement, dropped = own["agreement"], manifest["source"]["rows_read"] - manifest["records"]
    return internal(
        "channel_internal.html",
        manifest,
        title="Disguise of " + " and ".join(channel["name"] for channel in own["channels"]),
        lead=f"{number(manifest['records'])} records were disguised; {number(dropped)} with a missing value were left "
        "out.",
        facts={"agreement": agreement},
        tiles=(),
        chance=f"{agreement['chance']:.2g}",
        level=f"{agreement['level']:.0e}",
        compared=number(agreement["compared"]),
        others="" if own["given"] is None else others_words(own["given"]["columns"]),
        channels=[
            _private(channel, order, manifest["figures"][channel["name"]], own["given"])
            for order, channel in enumerate(own["channels"])
        ],
    )


def _private(channel: Entries, order: int, figures: Entries, beside: Entries | None) -> Entries:
    """Return one channel for the publisher."""
    front = channel["front"]
    error, bound = figures["mse"], figures["lower_bound"]
    tiles = [
        (f"{figures['privacy']:.4f}", "privacy"),
        (f"{figures['worst_posterior']:.4f}", "worst posterior"),
        (_number(figures["mse_of_estimate"]), "mean squared error of the analysts' estimate"),
        (_number(error), "mean squared error if the shares are known"),
        (percent(figures["loss"]), "loss: share of the information in the records that is lost"),
        (_number(figures["epsilon"], "{:.3f}"), "ε of local differential privacy"),
        (f"{figures['largest_gain']:.1f}", "largest gain: posterior probability divided by share"),
    ]
    if bound is not None and error is not None:
        tiles.append((f"{error / bound:.4f}", "error divided by its proven minimum"))
    return dict(channel) | {
        "tiles": _tiles(*tiles),
        "picture": "" if front is None else _front(front["points"], front["chosen"], f"front{order}"),
        "points": [] if front is None else [_cells(point) for point in front["points"]],
        "attributes": _attributes(channel["attributes"], figures["given"]),
        "given": headline_rows(figures, beside),
        "categories": [
            row | {"share": percent(row["share"]), "gain": f"{row['gain']:.1f}", "likeliest": percent(row["likeliest"])}
            for row in channel["categories"]
        ],
        "reports": [
            row | {"expected": percent(row["expected"]), "observed": percent(row["observed"])}
            for row in channel["reports"]
        ],
    }


def _number(value: float | None, shown: str = "{:.3e}") -> str:
    return "∞" if value is None else shown.format(value)


def _attributes(attributes: Entries, given: Entries | None) -> list[tuple[str, str, str]]:
    """Return for each single column of a joint channel how often it is guessed, and its highest posterior."""
    if given is not None:
        return [
            (name, _percent(said["best_guess"]), _percent(said["worst_posterior"]))
            for name, said in given["attributes"].items()
        ]
    return [(name, percent(1 - said["privacy"]), percent(said["worst_posterior"])) for name, said in attributes.items()]


def _cells(point: Entries) -> Entries:
    bound = point["lower_bound"]
    return {
        "id": point["id"],
        "privacy": f"{point['privacy']:.4f}",
        "error": f"{point['mse']:.4e}",
        "ratio": "–" if bound is None else f"{point['mse'] / bound:.4f}",
        "worst": f"{point['worst_posterior']:.4f}",
        "epsilon": number(math.inf if point["epsilon"] is None else point["epsilon"]),
        "loss": percent(point["loss"]),
    }


def _front(points: Sequence[Entries], chosen: int, name: str) -> Markup:
    privacy = [point["privacy"] for point in points]
    traces = [_curve("best found", privacy, [point["mse"] for point in points], ACCENT, "lines+markers")]
    bounds = [point["lower_bound"] for point in points]
    if all(bound is not None for bound in bounds):
        traces.append(_curve("proven minimum", privacy, bounds, INK, "lines", "dot"))
    here = next(point for point in points if point["id"] == chosen)
    traces.append(_curve("chosen", [here["privacy"]], [here["mse"]], SECOND, "markers", size=12))
    return figure(traces, {"title": {"text": "privacy"}}, _error_axis(traces), name)


def _error_axis(traces: Sequence[Trace]) -> Trace:
    """Return a logarithmic axis with a mark for every digit within a decade."""
    errors = [error for trace in traces for error in trace["y"]]
    ticks = "D1" if max(errors) < 10 * min(errors) else "D2"
    return {"title": {"text": "mean squared error"}, "type": "log", "dtick": ticks, "tickformat": ".0e"}


def _curve(
    name: str, x: Sequence[float], y: Sequence[float], colour: str, mode: str, dash: str = "solid", size: int = 6
) -> Trace:
    line, marker = {"color": colour, "dash": dash, "width": 2}, {"color": colour, "size": size}
    return scatter(x, y, mode, name, line=line, marker=marker)


TALLEST = 30  # largest error shown, relative to the certified one: errors near the ceiling grow without bound
COLOURS = {"Warner": SECOND, "OptRR": "#7b8794", "square": ACCENT, "certified": INK}


def paper_page(title: str, lead: str, panels: Sequence[Entries]) -> str:
    """Return the figures of the paper: `panels` have title, words, heads, rows, and curves by method."""
    shown = []
    for order, panel in enumerate(panels):
        tallest = TALLEST * max(error for _, error in panel["curves"]["certified"])
        traces = []
        for name, points in panel["curves"].items():
            seen = [(private, error) for private, error in points if error <= tallest]
            dash = "dot" if name == "certified" else "solid"
            traces.append(_curve(name, [p for p, _ in seen], [e for _, e in seen], COLOURS[name], "lines", dash))
        drawn = figure(traces, {"title": {"text": "privacy"}}, _error_axis(traces), f"panel{order}", 380)
        shown.append(dict(panel) | {"figure": drawn})
    return page("channel_paper.html", title=title, version=__version__, lead=lead, panels=shown)


CHANNEL = f"{PRIVATE}/channel.json"
FORMAT = "sfumato-disguise"


@dataclass(frozen=True, eq=False)
class Disguise:
    """The disguised and the plain columns of a file, how reports are drawn, and the name of the file in the folder."""

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
    """A disguised file, with the counts of the source and of the file itself.

    `counts` are those of each category in the source (records, and persons where declared). `reports` are those of each
    output in the file, channel by channel. The uniqueness of records over all columns, and over the plain ones, is
    `whole`. The figures for a reader who has the other columns too are `given`, None if there are none.
    """

    what: Disguise
    counts: tuple[Truth, ...]
    reports: tuple[Floats, ...]
    whole: WholeFile
    given: Entries | None = None
    persons: Persons | None = None

    @property
    def records(self) -> int:
        return int(self.counts[0].rows.sum())

    @cached_property
    def abouts(self) -> list[Entries]:
        """All that the publisher reads of each channel."""
        counted = zip(self.what.channels, self.counts, self.reports, strict=True)
        return [about_channel(channel, counts, reports) for channel, counts, reports in counted]

    @property
    def figures(self) -> Entries:
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

    def as_dict(self) -> dict[str, object]:
        """Return the system's own entries of the manifest. All follow from counts, so that they can be checked."""
        return {
            "kept": list(self.what.kept),
            "keep_order": self.what.keep_order,
            "test_seed": self.what.test_seed,
            "randomness": self.what.randomness,
            "given": self.given,
            "persons": None if self.persons is None else asdict(self.persons),
            "channels": self.abouts,
        }

    def dictionary(self, study: Study, left_out: int) -> Entries:
        """Return the data dictionary; `left_out` is the number of columns of the source that are not in the file."""
        hidden = {
            channel.name: {
                "role": "disguised",
                "meaning": "a report that was drawn at random",
                "done": "disguised",
                "words": f"Drawn at random for each record, with probabilities that depend on its true "
                f"{' and '.join(channel.columns)}: see {Path(EXTERNAL).name}.",
            }
            for channel in self.what.channels
        }
        changed = treated_entries(study, self.what.kept) | hidden
        return plain_dictionary(self.what.columns, changed, Path(self.what.data).name, left_out)

    def findings(self, policy: PolicySettings, left_out: int) -> list[Finding]:
        """Return how the file breaks the policy: rare categories, and persons unique in the plain columns."""
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
            alone = [
                *_identified(policy, persons, self.persons),
                *identifying_findings(policy.identifying, self.whole.own),
            ]
        missing = left_out_findings(policy, self.records, left_out)
        return [*response_findings(self.given, policy), *broken, *missing, *alone]

    def warnings(self) -> list[str]:
        """Return the warnings for the publisher."""
        listed = []
        for channel, counts in zip(self.what.channels, self.counts, strict=True):
            if tells_shares(channel):
                listed.append(
                    f"the public matrix of {channel.name} was designed for the exact shares of this table and reveals "
                    f"them {'roughly' if channel.square else 'exactly'}: design it with shares from elsewhere if they "
                    "must not be known."
                )
            delta, worst = channel.notes.get("delta"), figures_of(channel, counts.draws)["worst_posterior"]
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
    given: Entries | None,
    persons: Persons | None,
) -> Disguised:
    """Count the reports of a disguised file, and compute how unique its records are.

    `counts` are those of the source, `given` the figures given the other columns, which need the source too.
    """
    require(file, what.columns)
    written = Rows(engine, file, "written").attach()
    reports = tuple(written.everybody([channel.name], channel.output_cells).rows for channel in what.channels)
    known = uniqueness(engine, file, what.kept)
    own = own_values(engine, file, what.kept)
    whole = WholeFile(uniqueness(engine, file, file.names), known, what.kept, own=own)
    return Disguised(what, counts, reports, whole, given, persons)


def _identified(policy: PolicySettings, given: Entries, persons: Persons | None) -> list[Finding]:
    """Return the finding that too many persons have values of the plain columns that no other person has."""
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
    """Return the file that only the publisher may read: the channels with all notes, and the true counts."""
    about: dict[str, object] = {
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
    """Return the channels, the true counts and the persons from the private file of a disguise."""
    expected = "channels with the counts of their categories"
    about = read_json(folder / CHANNEL, expected=expected)
    try:
        channels = tuple(Channel.from_dict(one) for one in about["channels"])
        persons = Persons(**about["persons"]) if "persons" in about else None
        numbers = [about["counts"]] * 3 if persons is None else [about["rows"], about["counts"], about["squares"]]
        most = [1] * len(channels) if persons is None else about["most"]
        counts = tuple(
            Truth(np.array(rows, float), np.array(draws, float), np.array(squares, float), int(repeats))
            for rows, draws, squares, repeats in zip(*numbers, most, strict=True)
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


def pages_of(folder: Path, manifest: Content) -> dict[str, str]:
    """Return the mark and the pages that a manifest describes, for publication and for verification."""
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
        "persons": None if persons is None else asdict(persons),
    }
    given = own["given"]
    if given is not None:
        notes["given"] = public_given(given)
    mark = mark_for(channels, own["channels"], notes, given)
    text = json.dumps(mark, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {
        mark_of(Path(manifest["data"])).as_posix(): text,
        EXTERNAL: external_page(mark),
        INTERNAL: internal_page(manifest),
    }
