"""The pages of the groups method: an attack, and a protection with the front of cost against disclosure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from markupsafe import Markup

from sfumato.base.text import number, number_or_infinity, percent
from sfumato.methods.groups.attack.outliers import SCALES
from sfumato.methods.groups.front import Report
from sfumato.report.page import ACCENT, SECOND, Trace, figure, page, scatter
from sfumato.report.release_pages import internal, json_block, shown_share
from sfumato.version import __version__

FAINT = "#9fb3c8"
INK = "#1f2933"
MOST_RULES = 40
MOST_SIGNALS = 10
ROLES = {"known": "known: fits the plans", "fresh": "fresh: chooses the plan", "sealed": "sealed: judges it"}
ADEQUACY = ("disclosed", "undisclosed", "false", "PA", "J_printed", "J_youden", "MB")
WAYS = {"hinges": "Thompson τ, hinges", "mad": "Thompson τ, MAD", "rank": "top ranks"}


def attack_page(report: Report) -> str:
    """Return the page of an attack: the rules, its signal and the true one, the outliers, the adequacy."""
    areas, outliers, adequacy = report["areas"], report["outliers"], report["adequacy"]
    sensitive = set(outliers.get("sensitive", []))
    marks = {scale: set(outliers["auxiliary"][scale]["high"]) for scale in SCALES}
    marked = marks["hinges"] | marks["mad"]
    ways = {} if adequacy is None else {"hinges": adequacy, "mad": adequacy["mad"], "rank": adequacy["rank"]}
    names, true, signal = ([a[name] for a in areas] for name in ("area", "q", "auxiliary"))
    words = ("true members", "attacker's signal", "outlier for the attacker")
    return page(
        "groups_attack.html",
        title="What an attacker can see",
        version=__version__,
        report=report,
        picture=areas_figure("signal", names, None if None in true else true, signal, sensitive, marked, words, 400),
        rules=[_rule(rule) for rule in report["rules"][:MOST_RULES]],
        more=max(len(report["rules"]) - MOST_RULES, 0),
        rows=[
            {
                "area": a["area"],
                "sensitive": a["area"] in sensitive,
                "cells": _cells(a),
                "outlier": ", ".join(scale for scale in marks if a["area"] in marks[scale]),
            }
            for a in areas
        ],
        adequacy=[
            {"way": WAYS[way], "cells": [number(found[name]) for name in ADEQUACY]} for way, found in ways.items()
        ],
        spearman=None if adequacy is None else number(adequacy["spearman"]),
        spread=[_spread(line) for line in report["spread"] if "ranks" in line],
    )


def _cells(area: Report) -> list[str]:
    found = [f"{area['auxiliary']:.2f}", number(area["crisp"]), str(area["rank"]), number(area["ratio"])]
    return [number(area["q"]), number(area["q_all_rows"]), *found, percent(area["concentration"])]


def _rule(rule: Report) -> dict[str, str]:
    figures = {name: number(rule[name]) for name in ("df", "support")}
    return {"words": rule["words"], "rcf": number_or_infinity(rule["rcf"])} | figures


def _spread(line: Report) -> list[str]:
    ways = [f"{line['undisclosed'][way]} / {line['false'][way]}" for way in WAYS]
    ranks = " ".join(map(str, line["ranks"]))
    return [str(line["seed"]), number(line["spearman"]), number(line["average_precision"]), ranks, *ways]


def areas_figure(
    name: str,
    areas: Sequence[str],
    bars: Sequence[float] | None,
    signal: Sequence[float],
    sensitive: Collection[str],
    outliers: Collection[str],
    words: tuple[str, str, str],
    height: int,
) -> Markup:
    """Return what is compared with a signal as bars, the signal as a line, and its outliers marked, each with words."""
    traces: list[Trace] = []
    if bars is not None:
        colours = [SECOND if area in sensitive else FAINT for area in areas]
        said = f"{words[0]} (red: must not be identified)"
        traces.append({"type": "bar", "name": said, "x": areas, "y": bars, "marker": {"color": colours}})
    line, marker = {"color": ACCENT, "width": 2}, {"color": ACCENT, "size": 6}
    traces.append(scatter(areas, signal, "lines+markers", words[1], line=line, marker=marker))
    out = [i for i, area in enumerate(areas) if area in outliers]
    if out:
        traces.append(_marks(words[2], [areas[i] for i in out], [signal[i] for i in out]))
    axis = {"title": "area", "type": "category", "showticklabels": len(areas) <= 60}
    return figure(traces, axis, {"title": "people", "rangemode": "tozero"}, name, height=height)


def swapped_page(facts: Report, dictionary: Report) -> str:
    """Return the report for readers of a swapped file. It states neither the group nor its areas."""
    released = facts["released"]
    return page(
        "groups_external.html",
        title="About this file",
        lead=f"What was done in {dictionary['file']} so that locations do not reveal a group of people, and how "
        "that affects the data.",
        version=__version__,
        tiles=[
            {"value": released if isinstance(released, str) else number(released), "says": "records in the file"},
            {
                "value": shown_share(facts["exchanged_share"]),
                "says": "of the records carry the location of another record",
            },
            {"value": percent(facts["loss_share"]), "says": "of the cells carry the location of the swapped record"},
        ],
        columns=[column for column in dictionary["columns"] if column["done"] == "exchanged"],
        all_columns=facts["columns"],
        counted_how=facts["counted_how"],
        unique=shown_share(facts["unique_share"]),
        block=json_block(facts),
    )


def protection_page(report: Report) -> str:
    """Return the publisher's page of a protection: its cost, the remaining findings, by which attacker and test."""
    return page("groups_protection.html", version=__version__, block="", **_protection(report))


def protected_page(manifest: Report) -> str:
    """Return the same page of a release, with the figures of the written file and the accepted findings."""
    own = manifest["own"]
    return internal(
        "groups_internal.html", manifest, facts={"attacks": own["attacks"]}, **_protection(own["protection"])
    )


def _protection(report: Report) -> dict[str, Any]:
    """Return the part that both pages share."""
    chosen = report["points"][report["chosen"]]
    names = [a["area"] for a in report["areas"]]
    pictures = [
        areas_figure(
            f"signal-{i}",
            names,
            signal["before"],
            signal["after"],
            report["sensitive"],
            signal["outliers_after"],
            ("before", "after", "outlier after"),
            300,
        )
        for i, signal in enumerate(report["signals"][:MOST_SIGNALS])
    ]
    holds = "no held-out attack identifies the sensitive areas any more"
    still = "some held-out attacks still identify sensitive areas"
    sealed = chosen["sealed"]
    return {
        "title": "Protection of a group",
        "lead": f"{report['file']}: {holds if report['holds'] else still}. "
        "This page is for the publisher only: it shows which areas are sensitive.",
        "tiles": [
            {"value": str(chosen["swaps"]), "says": "pairs of records swapped"},
            {"value": f"{chosen['cost']:g}", "says": "cells changed by swaps"},
            {"value": percent(chosen["loss"]), "says": "of all cells"},
            {
                "value": f"{report['found_before']} → {sealed['areas']}",
                "says": f"findings, over {sealed['attacks']} held-out attacks",
            },
        ],
        "report": report,
        "front": front_figure(report),
        "points": [_point(point, report["chosen"]) for point in report["points"]],
        "signals": [{"name": s["name"], "picture": p} for s, p in zip(report["signals"], pictures, strict=False)],
        "residual": [_residual(row) for row in chosen["residual"]],
        "areas": report["areas"],
    }


def _point(point: Report, chosen: int) -> dict[str, object]:
    after = point["found_after"]
    return {
        "chosen": point["id"] == chosen,
        "cells": [
            str(point["id"]),
            percent(point["level"]),
            number(point["swaps"]),
            number(point["cost"]),
            "–" if point["bound"] is None else number(round(point["bound"], 1)),
            percent(point["loss"]),
            number(point["found"]),
            number(point["sealed"]["areas"]),
            *(number(after[way]) for way in WAYS),
            number(point["sealed"]["low"]),
            percent(point["shift"]["rate"]),
            f"{point['shift']['bias']:.4f}",
            f"{point['shift']['entropy_change']:+.4f}",
        ],
    }


def _residual(row: Report) -> dict[str, object]:
    shown = {when: " / ".join(str(row[f"found_{when}"][way]) for way in WAYS) for when in ("before", "after")}
    ranks = {when: " ".join(map(str, row[f"ranks_{when}"])) for when in ("before", "after")}
    return {
        "who": f"{row['attacker']}, {row['auxiliary']}, seed {row['seed']}",
        "kind": ROLES[row["role"]],
        "before": shown["before"],
        "after": shown["after"] + (f", {row['low_after']} from below" if row["low_after"] else ""),
        "ranks": f"{ranks['before']} → {ranks['after']}",
        "holds": "hidden" if row["protected"] else "still identified",
        "bad": not row["protected"],
    }


def front_figure(report: Report) -> Markup:
    """Return cost against sensitive areas still identified, over known and fresh attacks."""
    points = report["points"]
    line = scatter(
        [0.0, *(p["cost"] for p in points)],
        [report["planned_before"], *(p["found"] for p in points)],
        "lines+markers",
        "plans",
        ["nothing swapped", *(f"point {p['id']}: {p['swaps']} swaps" for p in points)],
        line={"color": ACCENT, "width": 1.5},
        marker={"color": ACCENT, "size": 8},
        hovertemplate="%{text}<br>cost %{x}, still identified %{y}<extra></extra>",
    )
    chosen = report["points"][report["chosen"]]
    mark = _marks("chosen", [chosen["cost"]], [chosen["found"]])
    up = {"title": "sensitive areas identified, known and fresh attacks", "rangemode": "tozero"}
    return figure([line, mark], {"title": "cost: cells changed by swaps", "rangemode": "tozero"}, up, "front")


def _marks(name: str, x: Sequence[object], y: Sequence[float]) -> Trace:
    marker = {"color": "rgba(0,0,0,0)", "size": 15, "line": {"color": INK, "width": 2}}
    return scatter(x, y, "markers", name, marker=marker)
