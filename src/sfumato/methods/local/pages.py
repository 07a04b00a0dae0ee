"""The reports of a local recoding: the method, the loss and its lower bound, and how to count from the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.base.text import number, percent
from sfumato.measures.registry import TABLE_ERROR
from sfumato.methods.shared import times_bound, without_left_out
from sfumato.release.classes import box_verifier
from sfumato.release.manifest import EXTERNAL, INTERNAL, Content
from sfumato.release.readback import external_facts
from sfumato.report.release_pages import external_page, recoded_page

TABULATE = (
    "The same value may be in different groups in different records, so records cannot be counted by label. To "
    "count them by value, spread each record evenly over the values of its label: a record with the range 25 to 29 "
    "counts one fifth for each of the five ages."
)


def pages_of(_: Path, manifest: Content) -> dict[str, str]:
    """Return the reports that a manifest describes, for publication and for verification."""
    own, front = manifest["own"], manifest["own"]["front"]
    internal = recoded_page(
        manifest,
        about={"classes": number(own["classes"]), "tuples divided between classes": number(own["divided"])},
        how=f"{front['how'][:1].upper()}{front['how'][1:]}.",
        heading="classes, method, ratio to the floor",
        plans=[_plan(point) for point in front["points"]],
        sections=[floor_section(manifest), counting_section(manifest), downcoding_section(manifest)],
    )
    external = external_page(external_facts(manifest), manifest["dictionary"], [TABULATE])
    return {EXTERNAL: external, INTERNAL: internal}


def floor_section(manifest: Content) -> dict[str, object]:
    """Return the section about the lower bound on the loss."""
    point = manifest["point"]
    details = point.get("details", {})
    if "floor" not in details:
        return {"title": "Floor", "sentences": ["No floor was computed for this table."]}
    floor, loss = details["floor"], point["loss"]
    sentence = (
        f"According to the search, no recoding with the same kind of labels and this k, global or local, loses less "
        f"than {percent(floor)}, whatever it suppresses; this file loses {percent(loss)}"
    )
    ratio = times_bound(manifest, loss, floor)
    more = f", {ratio:.2f} times as much{without_left_out(manifest)}." if ratio is not None else "."
    stated = (
        "The floor is stated by the search. It was checked that it is no more than the sum of its prices. The command "
        "sfumato floor checks that no box costs less than its prices, on the front that this file was chosen from."
    )
    return {"title": "Floor", "sentences": [sentence + more, stated]}


def counting_section(manifest: Content) -> dict[str, object]:
    """Return the section about counting from the file and the error of that."""
    error = manifest["figures"].get(TABLE_ERROR.name)
    if error is None:
        none = "The error of tables of two key columns was not computed: a key column has too many values."
        return {"title": "Counting from the file", "sentences": [TABULATE, none]}
    named = error.get("largest_columns")
    where = f", in the table of {named[0]} and {named[1]}" if named else ""
    cost = (
        f"Tables of two key columns made so are off by {percent(error['value'])} of the records on average and by "
        f"{percent(error['largest'])} at most{where}. A value carries {manifest['own']['labels_per_value']:.1f} "
        "different labels on average."
    )
    return {"title": "Counting from the file", "sentences": [TABULATE, cost]}


def downcoding_section(manifest: Content) -> dict[str, object]:
    """Return the section about the downcoding attack: an attacker knows that the method prefers small boxes."""
    attack = manifest["own"]["downcoding"]
    records = max(attack["records"], 1)
    if not attack["attacked"]:
        return {"title": "Downcoding", "sentences": ["The attack was not made: there are too many classes."]}
    right = f" ({percent(attack['pinned_right'] / attack['pinned'])} of these rightly)" if attack["pinned"] else ""
    sentences = [
        "Someone who knows that classes with small labels were wanted can cross out values for which a record would "
        "have been in a class with smaller labels (downcoding, Cohen 2022). This attack was made on the file:",
        f"it narrows the labels of {percent(attack['narrowed'] / records)} of the records, for "
        f"{percent(attack['narrowed_right'] / records)} rightly, and claims one value of a column for "
        f"{percent(attack['pinned'] / records)}{right}; {percent(attack['sure'] / records)} are in classes with more "
        "than k records, where the reasoning is strongest. Class sizes stay as they are: k holds all the same.",
    ]
    details = manifest["point"].get("details", {})
    if "undrawn" in details:
        before = details["undrawn"]
        sentences.append(
            f"The recoding was drawn at random among those that lose at most {percent(details['promised'])}. Without "
            f"the draw the attack would have narrowed the labels of {percent(before['narrowed'] / records)} of the "
            f"records, for {percent(before['narrowed_right'] / records)} rightly."
        )
    return {"title": "Downcoding", "sentences": sentences}


def _plan(point: Mapping[str, Any]) -> str:
    details = point.get("details", {})
    ratio = f", {details['ratio']:.2f}" if "ratio" in details else ""
    return f"{point['classes']:,} classes, {details.get('method', '')}{ratio}"


VERIFIER = box_verifier(pages_of)
