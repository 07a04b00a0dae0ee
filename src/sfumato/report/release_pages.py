"""The pages of a release: the data dictionary, the publisher's report, and the report for readers of the file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sfumato.base.formats import parse_json
from sfumato.base.json_types import JsonRead
from sfumato.base.text import number, percent
from sfumato.errors import DataError, shortened
from sfumato.measures.registry import K
from sfumato.measures.units import in_persons
from sfumato.report.page import NUMBER, WHY, Section, page
from sfumato.study.sections import policy_sentence, weaker_sentences
from sfumato.version import __version__

LEFT_OUT = "of the records of the original table left out (missing values)"
TREATED = ("rounded", "banded")  # the words of the dictionary for columns whose values are treated
DRAWING = ("report", "release", "methods", "study", "base")  # the folders with code whose sentences pages hold
BLOCK = re.compile(r'<script type="application/json" id="figures">(.*?)</script>', re.DOTALL)


def json_block(content: JsonRead) -> Markup:
    """Return figures for machines inside a page, escaped so that they cannot close their element."""
    # A value such as "</script>" in a label would end the element, and what follows would run as a page.
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def block_of(text: str) -> Any:
    """Return the figures that a page has for machines, or None.

    >>> block_of(f'<script type="application/json" id="figures">{json_block({"k": 5})}</script>')
    {'k': 5}
    """
    match = BLOCK.search(text)
    try:
        return parse_json(match[1], "the figures of the page") if match else None
    except DataError:
        return None


@cache
def templates_digest() -> str:
    """Return the SHA-256 of all that decides the words of a page: our code and templates for them, and their versions.

    Two programs with the same digest draw the same page from the same manifest, to the byte.
    """
    sha = hashlib.sha256(f"{__version__} {version('plotly')}".encode())
    package = Path(__file__).parents[1]
    for folder in DRAWING:
        for path in sorted((package / folder).rglob("*")):
            if path.suffix in (".py", ".html"):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                sha.update(f"{path.relative_to(package).as_posix()} {content}\n".encode())
    return sha.hexdigest()


def dictionary_page(dictionary: JsonRead) -> str:
    """Return the data dictionary. Values with the same label are grouped."""
    columns = []
    for column in dictionary["columns"]:
        groups: dict[str, list[str]] = {}
        for original, released in column.get("recode", {}).items():
            groups.setdefault(released, []).append(original)
        shown = {"missing": "", "note": "", "labels": [], "label": "", "values": {}} | column
        columns.append(shown | {"groups": list(groups.items())})
    return page(
        "dictionary.html",
        title="Data dictionary",
        file=dictionary["file"],
        columns=columns,
        left_out=dictionary["columns_left_out"],
        layout=_layout(dictionary),
    )


def _layout(dictionary: JsonRead) -> str:
    """Return how the cells of a text file are written, if its name does not imply it."""
    return str(dictionary.get("layout", {}).get("words", ""))


def external_page(
    facts: JsonRead,
    dictionary: JsonRead,
    notes: Sequence[str] = (),
    headline: Mapping[str, str] | None = None,
) -> str:
    """Return the report for readers of the file: what was done, the protection, the loss. `notes` come first.

    If suppressed cells match any value, `facts` have the number of source records consistent with each row (`agreeing`)
    and the result of matching attacks, and `headline` replaces k.
    """
    k, released, uncounted = facts[K.name], facts["released"], facts["columns_in_no_figure"]
    notes = [*notes, *filter(None, [_layout(dictionary)]), facts["counted_how"]]
    if facts["suppressed_share"]:
        gone = shown_share(facts["suppressed_share"])
        notes.append(
            f"Records in groups that were too small were suppressed, that is, removed before publication: {gone}."
        )
    missing = facts["left_out_share"]
    if missing:
        notes.append(
            f"Records of the original table with missing values were left out: {shown_share(missing)}. The shares of "
            "other figures are of the remaining records."
        )
    return page(
        "external.html",
        title="About this file",
        lead=f"How {dictionary['file']} was changed to protect the people it describes, and how much detail was lost.",
        tiles=[
            {"value": f"{released:,}" if isinstance(released, int) else released, "says": "records in the file"},
            headline or _smallest(k, facts["counted"]),
            {"value": shown_share(facts["suppressed_share"]), "says": "of the records removed (suppressed)"},
            *([{"value": shown_share(missing), "says": LEFT_OUT}] if missing else []),
            {"value": percent(facts["loss_share"]), "says": "of the detail in the remaining records lost"},
        ],
        k=k,
        blanked={name: facts[name] for name in ("agreeing", "matching_k", "matching_people") if name in facts},
        others=f"{k - 1:,} {'other' if k == 2 else 'others'}",
        other_persons=f"{k - 1:,} other {facts['counted']}{'' if k == 2 else 's'}",
        persons=facts["counted"] == "person",
        keys=[column["name"] for column in dictionary["columns"] if column["role"] == "quasi_identifier"],
        uncounted=uncounted,
        released_as=_released_as(uncounted, dictionary),
        unique=shown_share(facts["unique_share"])
        .removesuffix(" records")
        .removesuffix(" persons"),  # "of the …" follows
        unique_of=f"{facts['counted']}s" if facts["counted"] == "person" else "records",
        all_columns=facts["columns"],
        notes=notes,
        columns=dictionary["columns"],
        block=json_block(facts),
    )


def _smallest(k: int, noun: str) -> dict[str, str]:
    """Return the headline figure of the protection of a file."""
    return {
        "value": number(k),
        "says": f"{noun}{'' if k == 1 else 's'} in the smallest group with equal key columns (k)",
    }


def internal(
    template: str,
    manifest: JsonRead,
    *,
    lead: str,
    facts: JsonRead,
    about: Mapping[str, str] | None = None,
    **values: Any,
) -> str:
    """Return the publisher's report of any release: the common sections around the section of its method.

    `facts` are figures for machines beyond those of every release, and `about` is how the method made it.
    """
    source, unit = manifest["source"], manifest["unit"]
    names = ("records", "suppressed", "left_out", "released", "loss", "figures", "whole", "accepted")
    described = {
        "source": source["name"],
        "SHA-256 of the source": source["sha256"],
        "what was counted": unit["says"],
        **({"why every row is a person": unit["reason"]} if "reason" in unit else {}),
        "rows read": f"{source['rows_read']:,}",
        "rows left out because of missing values": f"{manifest['left_out']:,}",
    }
    block = {"point": manifest["point"]["id"]} | {name: manifest[name] for name in names}
    return page(
        template,
        manifest=manifest,
        rules=policy_sentence(manifest["policy"]),
        weaker=weaker_sentences(manifest["policy"]),
        lead=lead,
        whole=whole_sentences(whole_of(manifest), manifest["dictionary"]),
        about={**described, **(about or {}), **manifest["versions"]},
        block=json_block({**block, **facts}),
        **values,
    )


def internal_page(manifest: JsonRead) -> str:
    """Return the publisher's report of a recoding: the whole front, risk and loss before and after."""
    front, point = manifest["own"]["front"], manifest["point"]
    about = {"classes smaller than this are suppressed": str(point["suppress_below"])}
    if point.get("diversity_below", 0) > 1:
        about["classes with fewer sensitive values than this are suppressed"] = str(point["diversity_below"])
    for name, limit in point.get("limits", {}).items():
        about[f"classes that fall short of this {name} are suppressed"] = f"{limit:.6g}"
    plans = [", ".join(f"{name} {level}" for name, level in saved["plan"].items()) for saved in front["points"]]
    return recoded_page(
        manifest,
        about=about,
        how=f"{front['evaluations']:,} of {front['space']:,} plans were evaluated.",
        heading="levels",
        plans=plans,
    )


def recoded_page(
    manifest: JsonRead,
    *,
    about: Mapping[str, str],
    how: str,
    heading: str,
    plans: Sequence[str],
    sections: Sequence[JsonRead] = (),
    headline: Mapping[str, str] | None = None,
) -> str:
    """Return the publisher's report of a file with recoded columns.

    `how` is how the front was found, and `plans` what each of its points does, under a `heading`. `sections` are titles
    with sentences, and with the rows of a table if they have one. `headline` replaces k.
    """
    front, point = manifest["own"]["front"], manifest["point"]
    return internal(
        "release_internal.html",
        manifest,
        title="Release report",
        lead=f"{manifest['dictionary']['file']}: point {point['id']} of a front of {len(front['points'])}, "
        f"{'exact' if front['exact'] else 'best found'} (algorithm {front['algorithm']}).",
        facts={"exact": manifest["own"]["exact"]},
        about={**about, **_exempt(manifest["own"].get("exempt", {}))},
        tiles=[
            {"value": f"{manifest['released']:,}", "says": "rows in the file"},
            headline or {"value": number(manifest["figures"][K.name]["value"]), "says": _smallest_class(manifest)},
            {"value": f"{manifest['suppressed']:,}", "says": f"of {manifest['records']:,} records suppressed"},
            *left_out_tiles(manifest),
            {
                "value": percent(manifest["loss"]),
                "says": "loss of the whole source" if manifest["left_out"] else "loss",
            },
        ],
        sections=[
            *_compared(manifest, persons=manifest["unit"]["noun"] == "person"),
            *(Section(**section) for section in sections),
            _points(front, point["id"], plans, how, heading),
        ],
    )


def _compared(manifest: JsonRead, *, persons: bool) -> Iterator[Section]:
    """Yield the figures before and after: of the measures, of each column, and of small classes."""
    compared = manifest["own"]["comparison"]
    before = f"Before: the {manifest['records']:,} original records."
    yield Section(
        "Risk and loss before and after", [f"{before} After: measured on the written file after reading it back."]
    )
    for kind, title in (("privacy", "Disclosure"), ("loss", "Loss")):
        rows = [_measured(row, persons) for row in compared["measures"] if row["kind"] == kind]
        heads = ["measure", "better", "before", "after", "what it says"]
        yield Section(title, heads=heads, rows=rows, kinds=["", "", NUMBER, NUMBER, WHY])
    yield Section(
        "Column by column",
        [
            "Risk is how much the share of correct matches would fall if the column were left out; loss is the share "
            "of the column's detail that is lost."
        ],
        heads=["column", "what was done", "risk before", "risk after", "loss"],
        rows=[
            [row["column"], row["done"], *(percent(row[name]) for name in ("risk_before", "risk_after", "loss"))]
            for row in compared["columns"]
        ],
        kinds=["", "", NUMBER, NUMBER, NUMBER],
    )
    counted = " The size of a class is the number of its persons." if persons else ""
    yield Section(
        "Records in small classes",
        [f"Records at the highest risk, as counts only.{counted}"],
        heads=["class size", "classes before", "records before", "classes after", "records after"],
        rows=[
            [str(raw["size"]), *(f"{row[name]:,}" for row in (raw, after) for name in ("classes", "records"))]
            for raw, after in zip(compared["small_before"], compared["small_after"], strict=True)
        ],
        kinds=["", *[NUMBER] * 4],
    )


def _points(front: JsonRead, chosen: int, plans: Sequence[str], how: str, heading: str) -> Section:
    """Return the points of the front, with the chosen one marked."""
    names = [objective["name"] for objective in front["objectives"]]
    rows = [
        [
            "chosen" if saved["id"] == chosen else "",
            str(saved["id"]),
            *(number(saved["values"][name]) for name in names),
            percent(saved["loss"]),
            f"{saved['suppressed']:,}",
            plan,
        ]
        for saved, plan in zip(front["points"], plans, strict=True)
    ]
    return Section(
        "The front",
        [f"{how} The chosen point is marked."],
        heads=["choice", "point", *names, "loss", "suppressed", heading],
        rows=rows,
        kinds=["", *[NUMBER] * (len(names) + 3), WHY],
        label="Points of the front",
        marked=next(at for at, row in enumerate(rows) if row[0]),
    )


def left_out_tiles(manifest: JsonRead) -> list[dict[str, str]]:
    """Return the tile of the records that the missing rule left out, if there are any."""
    missing = manifest["left_out"]
    if not missing:
        return []
    share = percent(missing / (manifest["records"] + missing))
    return [{"value": f"{missing:,}", "says": f"records of the source left out: missing values ({share})"}]


def _smallest_class(manifest: JsonRead) -> str:
    return f"{manifest['unit']['noun']}s in the smallest class (k)"


def _exempt(columns: Mapping[str, JsonRead]) -> dict[str, str]:
    """Return what is harmless or missing in each sensitive column, and how many records ℓ, α, β and δ leave out."""
    lines = {}
    for name, about in columns.items():
        if about["harmless"]:
            lines[f"harmless values of {name}"] = ", ".join(about["harmless"])
        if about["missing"]:
            lines[f"records without a value of {name}"] = f"{about['missing']:,}"
        why = "only harmless values" if about["harmless"] else "no value"
        lines[f"records in classes with {why} of {name}, which are exempt from ℓ, α, β and δ"] = f"{about['records']:,}"
    return lines


def _released_as(names: Sequence[str], dictionary: JsonRead) -> str:
    """Return how some columns that no plan recodes are released."""
    done = {column["done"] for column in dictionary["columns"] if column["name"] in names}
    return "unchanged" if done.isdisjoint(TREATED) else "unchanged, rounded or in bands"


def whole_of(manifest: JsonRead) -> JsonRead:
    """Return the uniqueness over all columns, in persons if these are counted, otherwise in records of the file."""
    counted = manifest["own"].get("persons") or {}
    return {**manifest["whole"], **counted["whole"]} if "whole" in counted else manifest["whole"]


def whole_sentences(whole: JsonRead, dictionary: JsonRead) -> list[str]:
    """Return what a publisher should know of all columns: uniqueness, and columns that no figure includes."""
    everything, uncounted = whole["all_columns"], whole["columns_in_no_figure"]
    sentences = [
        f"Over all {everything['columns']:,} released columns together, {percent(everything['unique_share'])} of the "
        f"{whole.get('counted', 'records')} are unique, the smallest class has {everything['smallest']:,}, and someone "
        f"who knows all of a person's values is expected to match {percent(everything['expected_correct_matches'])} of "
        f"the {whole.get('counted', 'records')} correctly."
    ]
    if uncounted:
        one = len(uncounted) == 1
        known = percent(whole["quasi_identifiers_and_kept"]["unique_share"])
        sentences.append(
            f"{len(uncounted):,} {'column is' if one else 'columns are'} released "
            f"{_released_as(uncounted, dictionary)} and counted in no measure of risk ({shortened(uncounted)}); "
            f"together with {'it' if one else 'them'}, the quasi-identifiers make {known} of the "
            f"{whole.get('counted', 'records')} unique."
        )
    return sentences


def shown_share(share: float | str) -> str:
    return share if isinstance(share, str) else percent(share)


def _figure(entry: JsonRead) -> str:
    return "∞" if entry["value"] is None else number(entry["value"])


def _measured(row: JsonRead, persons: bool) -> list[str]:
    reason = row["after"].get("reason")
    shown = in_persons if persons and row["kind"] == "privacy" else str
    says = shown(row["sentence"]) + (f" ({reason[0].upper()}{reason[1:]}.)" if reason else "")
    before = "–" if row["before"] is None else _figure(row["before"])
    return [shown(row["title"]), row["better"], before, _figure(row["after"]), says]
