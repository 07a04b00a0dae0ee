"""The method `cells`: single cells are blanked. The reports state how many, how blanks are read, and how to count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.base.text import number, percent
from sfumato.decide.pick import Choice
from sfumato.front import Front
from sfumato.measures.registry import K
from sfumato.methods.cells.matching import counted_by_matching
from sfumato.methods.cells.patterns import Blanks
from sfumato.methods.cells.search import AGREEING, ON_BLANK, ON_COLUMNS, ON_SUPPRESSED, search_cells
from sfumato.methods.run import Run
from sfumato.methods.shared import BoxSystem, ratio, salt_of, times_bound, with_acceptances, without_left_out
from sfumato.methods.system import Applying, Publishing
from sfumato.release.classes import BoxDraft, box_verifier
from sfumato.release.classes_rows import Assigned
from sfumato.release.draft import Draft, Verifier
from sfumato.release.manifest import EXTERNAL, INTERNAL, Content, Manifest
from sfumato.release.persons import may_count_persons
from sfumato.release.policy import MATCHING_K, MATCHING_PEOPLE
from sfumato.release.readback import external_facts
from sfumato.report.release_pages import external_page, recoded_page
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable

READ = {
    "strict": "A blank, written *, is a value of its own: records with blanks in the same columns and the same values "
    "in the others form a group.",
    "agreeing": "A blank, written *, may be any value. Every row of the file agrees with several records of the "
    "original table in its other key columns, and every one of these records with several rows.",
}
COUNT = (
    "Blanks are not spread at random: rare combinations are blanked more often. A table of two key columns lacks the "
    "records with a blank in either; spread those over the values in proportion to the others, or count them apart."
)
POSSIBLE = (
    "Matching takes into account that every released record belongs to a source record of its own: a pair is possible "
    "if some assignment of all released records has it. Possible does not mean equally likely."
)
READINGS = {  # of k: what is counted, and the text where it was not
    MATCHING_K: (
        "agreeing, by matching: released records that are possible for a source record (matching k)",
        "not computed",
    ),
    MATCHING_PEOPLE: ("agreeing, by matching: source records that are possible for a released record", "not computed"),
    AGREEING: ("agreeing (k, k), pair by pair: with source records, and these with released ones", "–"),
    K.name: ("strict: a blank is a value of its own", "–"),
    "matching": ("blanks match anything among released rows, as in sdcMicro (no protection by itself)", "not counted"),
}
WITHIN = {
    ON_COLUMNS: "the limits that were set on columns",
    ON_SUPPRESSED: "the limit on suppressed records",
    ON_BLANK: "the limit on records that are blank in every key column",
}


def pages_of(_: Path, manifest: Content) -> dict[str, str]:
    """Return the reports that a manifest describes, for publication and for verification."""
    reading = str(manifest["own"]["algorithm"])
    facts, shown = external_facts(manifest), None
    if reading == AGREEING:
        facts |= {name: manifest["figures"][name]["value"] for name in (AGREEING, MATCHING_K, MATCHING_PEOPLE)}
        shown = headline(facts[MATCHING_K])
    external = external_page(facts, manifest["dictionary"], [READ[reading], COUNT], shown)
    return {EXTERNAL: external, INTERNAL: cells_page(manifest)}


def headline(matching_k: int | None) -> dict[str, str]:
    """Return the headline of a file in which a blank may mean any value."""
    if matching_k is None:
        return {"value": "not computed", "says": "matching k: rows that are possible for each source record"}
    few = "row is" if matching_k == 1 else "or more rows are"
    return {"value": number(matching_k), "says": f"{few} possible for each source record (matching k)"}


def bound_sentence(manifest: Content) -> str:
    """Return a sentence about the lower bound on the cost. If it assumes limits, the sentence names them."""
    details, loss = manifest["point"]["details"], manifest["loss"]
    if "floor" not in details:
        return "No bound was found."
    limits = [WITHIN[name] for name in details.get("within", ()) if name in WITHIN]
    ways = f"Within {' and '.join(limits)}, no way" if limits else "No way"
    ratio = times_bound(manifest, loss, details["floor"])
    return (
        f"{ways} to blank cells in this reading costs less than {percent(details['floor'])} of all cells, according to "
        f"the search; this file costs {percent(loss)}, {ratio:.3f} times as much{without_left_out(manifest)}."
    )


def cells_page(manifest: Content) -> str:
    """Return the report for the publisher."""
    own, front, details = manifest["own"], manifest["own"]["front"], manifest["point"]["details"]
    records = manifest["released"]
    rows = [[name, number(cells), percent(cells / records)] for name, cells in details["blanked"].items()]
    readings = details["readings"]
    read = [
        [says, number(readings[name]) if readings[name] is not None else missing]
        for name, (says, missing) in READINGS.items()
        if name in readings
    ]
    explained = [POSSIBLE] if MATCHING_K in readings else []
    bound = bound_sentence(manifest)
    heads = ["column", "cells", "share"]
    sections: list[Mapping[str, object]] = [
        {"title": "Blanked cells", "sentences": [READ[own["algorithm"]], bound], "heads": heads, "rows": rows},
        {"title": "k in each reading", "sentences": explained, "heads": ["reading", K.name], "rows": read},
        {"title": "Counting from the file", "sentences": [COUNT]},
    ]
    return recoded_page(
        manifest,
        headline=headline(readings[MATCHING_K]) if MATCHING_K in readings else None,
        about={"patterns": number(own["classes"]), "records blank in every column": number(details["blank_records"])},
        how=f"{front['how'][:1].upper()}{front['how'][1:]}.",
        heading="cells, method",
        plans=[f"{p['details']['cells']:,} cells, {p['details']['method']}" for p in front["points"]],
        sections=sections,
    )


REASON = "counts agreement with source records, so it is measured with the source"


def beside(study: Study, plan: Assigned) -> Mapping[str, dict[str, object]]:
    """Return the figures that need the source: (k, k)-anonymity pair by pair, and by matching in that reading."""
    blanks = None if may_count_persons(study) else blanks_of(plan)
    if blanks is None:
        return {}
    figures: dict[str, int | None] = {AGREEING: blanks.agreeing_k}
    if study.cells.reading == AGREEING:
        figures |= counted_by_matching(blanks)
    return {name: {"value": value, "measured_on": "source", "reason": REASON} for name, value in figures.items()}


def blanks_of(plan: Assigned) -> Blanks | None:
    """Return the blanks of a file; None if groups of a column overlap, so they are not values of a recoding."""
    inside = plan.owner >= 0
    width = plan.high - plan.low
    blank = (width == [len(column.values) for column in plan.columns]) & (width > 1)
    codes = np.empty((len(plan.counts), len(plan.columns)), dtype=np.int32)
    for j, column in enumerate(plan.columns):
        groups = np.arange(len(column.values))  # a value in no group is one of its own
        last = 0
        for low, high in sorted({(int(plan.low[i, j]), int(plan.high[i, j])) for i in np.flatnonzero(~blank[:, j])}):
            if low < last:
                return None
            groups[low:high], last = low, high
        codes[:, j] = groups[plan.codes[j]]
    mask = (blank @ (1 << np.arange(len(plan.columns))))[plan.owner[inside]]
    tuples, of = np.unique(codes, axis=0, return_inverse=True)
    counts = np.bincount(of.reshape(-1), weights=plan.counts).astype(np.int64)
    return Blanks(tuples, counts, of.reshape(-1)[plan.of[inside]], mask, plan.count[inside]).merged()


def details_of(study: Study, plan: Assigned, figures: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the details of a point that follow from the blanks of a released file.

    Nothing is returned if a column has one value, or the label of all its values in every record: then a blank cannot
    be distinguished from a value or from a group of a recoding that was made before.
    """
    blanks = blanks_of(plan)
    if blanks is None or min(len(column.values) for column in plan.columns) == 1:
        return {}
    if int(blanks.blanked().max()) == int(blanks.count.sum()):
        return {}
    details = blanks.details([column.name for column in plan.columns])
    if may_count_persons(study):
        return details
    counted = (AGREEING, MATCHING_K, MATCHING_PEOPLE)
    readings = {K.name: int(blanks.sizes().min()), "matching": blanks.matching()}
    return details | {"readings": readings | {name: figures[name]["value"] for name in counted if name in figures}}


BLANKS = box_verifier(pages_of, beside, details_of, own_records="its blanks are single cells of its own records")


@dataclass(frozen=True)
class Cells(BoxSystem):
    """The method whose plans have labels that are single values or blanks."""

    name: str = "cells"
    plans: str = "suppressions of cells"
    verifier: Verifier = BLANKS
    apply: Callable[[Applying], Draft] | None = None
    title = "Suppressed cells"
    bound = "no suppression of cells within the limits below"
    shown = "which cells are blanked"

    def front_of(self, study: Study, table: FrequencyTable, run: Run) -> Front:
        return search_cells(study, table, run)

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        front, salt = with_acceptances(choice.front, how), salt_of(choice.front.study.cells.test_seed)
        return BoxDraft.of(front, choice.point, BLANKS, how.name, how.format, beside=beside, **salt)

    def counted(self, manifest: Manifest) -> list[str]:
        return ["cells blanked", number(manifest["point"]["details"]["cells"])]

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        points = front.points
        readings = [point.details["readings"] for point in points]
        return {
            "cells": [number(point.details["cells"]) for point in points],
            "suppressed": [number(point.suppressed) for point in points],
            "cost / bound": [ratio(point) for point in points],
            "k strict / by matching / pair by pair / blanks match": [
                " / ".join(number(each.get(name)) for name in (K.name, MATCHING_K, AGREEING, "matching"))
                for each in readings
            ],
            "method": [str(point.details["method"]) for point in points],
        }


SYSTEMS = {"cells": Cells()}
