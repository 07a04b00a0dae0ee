"""The pages of a release: the data dictionary, the publisher's report, and the one for readers of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from sfumato.report.figures import number, percent
from sfumato.report.page import page
from sfumato.version import __version__

BLOCK = re.compile(r'<script type="application/json" id="figures">(.*?)</script>', re.DOTALL)


def json_block(found: Mapping[str, Any]) -> Markup:
    """Figures inside a page, for machines; nothing in them can end the element they stand in."""
    text = json.dumps(found, ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def block_of(text: str) -> Any:
    """The figures that a page carries for machines, or None.

    >>> block_of(f'<script type="application/json" id="figures">{json_block({"k": 5})}</script>')
    {'k': 5}
    """
    found = BLOCK.search(text)
    try:
        return json.loads(found[1]) if found else None
    except ValueError:
        return None


def dictionary_page(dictionary: Mapping[str, Any]) -> str:
    """The data dictionary; values that became the same label stand together."""
    columns = []
    for column in dictionary["columns"]:
        groups: dict[str, list[str]] = {}
        for original, released in column.get("recode", {}).items():
            groups.setdefault(released, []).append(original)
        shown = {"missing": "", "note": "", "labels": []} | column
        columns.append(shown | {"groups": list(groups.items())})
    return page(
        "dictionary.html",
        title="Data dictionary",
        file=dictionary["file"],
        columns=columns,
        left_out=dictionary["columns_left_out"],
        version=__version__,
    )


def external_page(facts: Mapping[str, Any], dictionary: Mapping[str, Any]) -> str:
    """The report for readers of the file: what was done, how well it protects, what it costs."""
    starred = facts["suppressed_rows"] == "starred"
    notes = []
    if facts["suppressed_share"]:
        how = "are in the file with these columns hidden" if starred else "are not in the file"
        notes.append(f"Records that too few others look like {how}: {_share(facts['suppressed_share'])}.")
    if facts["dropped_share"]:
        notes.append(f"Records with missing values were left out: {_share(facts['dropped_share'])}.")
    released = facts["released"]
    return page(
        "external.html",
        title="About this file",
        file=dictionary["file"],
        tiles=[
            {"value": f"{released:,}" if isinstance(released, int) else released, "says": "records in the file"},
            {"value": number(facts["k"]), "says": "records at least look alike (k)"},
            {"value": _share(facts["suppressed_share"]), "says": "suppressed"},
            {"value": percent(facts["loss_share"]), "says": "of the detail of these records is lost"},
        ],
        others=f"{facts['k'] - 1:,}",
        starred=starred,
        notes=notes,
        columns=dictionary["columns"],
        block=json_block(facts),
        version=__version__,
    )


def internal_page(facts: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """The publisher's report: every setting, the whole front, risk and loss before and after."""
    front, point = about["front"], about["point"]
    groups = [
        {"title": title, "rows": [_measured(row) for row in about["measures"] if row["kind"] == kind]}
        for kind, title in (("privacy", "Disclosure"), ("loss", "Loss"))
    ]
    small = [
        {"size": raw["size"]}
        | {f"{name}_{when}": f"{row[name]:,}" for name in ("classes", "records") for when, row in rows}
        for raw, *rest in zip(about["small_before"], about["small_after"], strict=True)
        for rows in [[("before", raw), ("after", rest[0])]]
    ]
    return page(
        "internal.html",
        title="Release report",
        file=about["file"],
        point=point,
        exact=front["exact"],
        algorithm=front["algorithm"],
        evaluations=f"{front['evaluations']:,}",
        space=f"{front['space']:,}",
        objectives=[objective["name"] for objective in front["objectives"]],
        points=[_point(found, front["objectives"], point["id"]) for found in front["points"]],
        records=f"{facts['records']:,}",
        tiles=[
            {"value": f"{facts['released']:,}", "says": "rows in the file"},
            {"value": number(facts["figures"]["k"]["value"]), "says": "smallest class (k)"},
            {"value": f"{facts['suppressed']:,}", "says": f"of {facts['records']:,} records suppressed"},
            {"value": percent(facts["loss"]), "says": "loss"},
        ],
        reason=about["reason"],
        warnings=about["warnings"],
        groups=groups,
        columns=[_column(row) for row in about["columns"]],
        small=small,
        run=about["run"],
        about=list(about["about"].items()),
        block=json_block(facts),
        version=__version__,
    )


def _share(share: float | str) -> str:
    return share if isinstance(share, str) else percent(share)


def _figure(entry: Mapping[str, Any]) -> str:
    return "∞" if entry["value"] is None else number(entry["value"])


def _measured(row: Mapping[str, Any]) -> dict[str, str]:
    reason = row["after"].get("reason")
    says = row["sentence"] + (f" ({reason[0].upper()}{reason[1:]}.)" if reason else "")
    return {
        "title": row["title"],
        "better": row["better"],
        "before": number(row["before"]),
        "after": _figure(row["after"]),
        "says": says,
    }


def _column(row: Mapping[str, Any]) -> dict[str, str]:
    shares = {name: percent(row[name]) for name in ("risk_before", "risk_after", "loss")}
    return {"column": row["column"], "done": row["done"]} | shares


def _point(found: Mapping[str, Any], objectives: Sequence[Mapping[str, Any]], chosen: int) -> dict[str, Any]:
    return {
        "id": found["id"],
        "chosen": found["id"] == chosen,
        "figures": [number(found["values"][objective["name"]]) for objective in objectives],
        "loss": percent(found["loss"]),
        "suppressed": f"{found['suppressed']:,}",
        "levels": ", ".join(f"{name} {level}" for name, level in found["plan"].items()),
    }
