"""The reports of a file with blanked cells: how many, how they are read, and how to count from the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.measures.standard import K
from sfumato.release import pack
from sfumato.release.facts import external_facts
from sfumato.release.manifest import Content
from sfumato.release.policy import MATCHING_K, MATCHING_PEOPLE
from sfumato.report.release_pages import external_page, recoded_page
from sfumato.runtime.figures import number, percent
from sfumato.systems.boxes import times_bound, without_left_out
from sfumato.systems.cells.points import AGREEING, ON_BLANK, ON_COLUMNS, ON_SUPPRESSED

READ = {
    "strict": "A blank, written *, is a value of its own: records with blanks in the same columns and the same values "
    "in the others form a group.",
    "agreeing": "A blank, written *, may stand for any value. Every row of the file agrees with several records of the "
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
WITHIN = {
    ON_COLUMNS: "the limits that were set on columns",
    ON_SUPPRESSED: "the limit on suppressed records",
    ON_BLANK: "the limit on records that are blank in every key column",
}


def pages_of(_: Path, manifest: Content) -> dict[str, str]:
    """The reports of a release as its manifest has them: drawn at publication, and again when it is verified."""
    reading = str(manifest["own"]["algorithm"])
    facts, shown = external_facts(manifest), None
    if reading == AGREEING:
        facts |= {name: manifest["figures"][name]["value"] for name in (AGREEING, MATCHING_K, MATCHING_PEOPLE)}
        shown = headline(facts[MATCHING_K])
    return {
        pack.EXTERNAL: external_page(facts, manifest["dictionary"], [READ[reading], COUNT], shown),
        pack.INTERNAL: cells_page(manifest),
    }


def headline(matching_k: int | None) -> dict[str, str]:
    """The headline of a file whose blanks may stand for any value."""
    if matching_k is None:
        return {"value": "not computed", "says": "matching k: rows that are possible for each source record"}
    few = "row is" if matching_k == 1 else "or more rows are"
    return {"value": number(matching_k), "says": f"{few} possible for each source record (matching k)"}


def _counted(figure: int | None, otherwise: str) -> str:
    return otherwise if figure is None else number(figure)


def bound_sentence(manifest: Mapping[str, Any]) -> str:
    """What no way to blank cells costs less than; where limits were taken for granted, only among ways within them."""
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


def cells_page(manifest: Mapping[str, Any]) -> str:
    """The publisher's report."""
    own, front, details = manifest["own"], manifest["own"]["front"], manifest["point"]["details"]
    records = manifest["released"]
    rows = [[name, number(cells), percent(cells / records)] for name, cells in details["blanked"].items()]
    readings = details["readings"]
    matched = {
        MATCHING_K: "agreeing, by matching: released records that are possible for a source record (matching k)",
        MATCHING_PEOPLE: "agreeing, by matching: source records that are possible for a released record",
    }
    counted = {
        AGREEING: "agreeing (k, k), pair by pair: with source records, and these with released ones",
        K.name: "strict: a blank is a value of its own",
    }
    loose = {"matching": "blanks match anything among released rows, as in sdcMicro (no protection by itself)"}
    read = [
        *([says, _counted(readings[name], "not computed")] for name, says in matched.items() if name in readings),
        *([says, number(readings[name])] for name, says in counted.items() if name in readings),
        *([says, _counted(readings[name], "not counted")] for name, says in loose.items() if name in readings),
    ]
    explained = [POSSIBLE] if MATCHING_K in readings else []
    bound = bound_sentence(manifest)
    sections: list[dict[str, Any]] = [
        {"title": "Blanked cells", "sentences": [READ[own["algorithm"]], bound], "heads": ["column", "cells", "share"]}
        | {"rows": rows},
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
