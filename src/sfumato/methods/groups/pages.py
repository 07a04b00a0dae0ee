"""The pages of the groups method: an attack, and a protection with the front of cost against disclosure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from sfumato.base.text import number, percent
from sfumato.report.page import ACCENT, SECOND, Trace, figure, page, scatter
from sfumato.report.release_pages import internal, json_block, shown_share
from sfumato.version import __version__

FAINT = "#9fb3c8"
INK = "#1f2933"
MOST_RULES = 40
MOST_SIGNALS = 10
ROLES = {"known": "known: fits the plans", "fresh": "fresh: chooses the plan", "sealed": "sealed: judges it"}
WAYS = {"hinges": "Thompson τ, hinges", "mad": "Thompson τ, MAD", "rank": "top ranks"}


def attack_page(report: Mapping[str, Any]) -> str:
    """Return the page of an attack: the rules, its signal and the true one, the outliers, the adequacy."""
    areas, outliers, adequacy = report["areas"], report["outliers"], report["adequacy"]
    sensitive = set(outliers.get("sensitive", []))
    marks = {scale: set(outliers["auxiliary"][scale]["high"]) for scale in ("hinges", "mad")}
    rows = [
        {
            "area": a["area"],
            "sensitive": a["area"] in sensitive,
            "cells": [
                number(a["q"]),
                number(a["q_all_rows"]),
                f"{a['auxiliary']:.2f}",
                number(a["crisp"]),
                str(a["rank"]),
                number(a["ratio"]),
                percent(a["concentration"]),
            ],
            "outlier": ", ".join(scale for scale in marks if a["area"] in marks[scale]),
        }
        for a in areas
    ]
    ways = [] if adequacy is None else [(WAYS["hinges"], adequacy), *((WAYS[w], adequacy[w]) for w in ("mad", "rank"))]
    return page(
        "groups_attack.html",
        title="What an attacker can see",
        version=__version__,
        report=report,
        picture=signal_figure(areas, sensitive, marks["hinges"] | marks["mad"]),
        rules=[_rule(rule) for rule in report["rules"][:MOST_RULES]],
        more=max(len(report["rules"]) - MOST_RULES, 0),
        rows=rows,
        adequacy=[{"way": way, "cells": _adequacy(a)} for way, a in ways],
        spearman=None if adequacy is None else number(adequacy["spearman"]),
        spread=[_spread(line) for line in report["spread"] if "ranks" in line],
    )


def _rule(rule: Mapping[str, Any]) -> dict[str, str]:
    rcf = "∞" if rule["rcf"] is None else number(rule["rcf"])
    return {"words": rule["words"], "df": number(rule["df"]), "rcf": rcf, "support": number(rule["support"])}


def _adequacy(figures: Mapping[str, Any]) -> list[str]:
    names = ("disclosed", "undisclosed", "false", "PA", "J_printed", "J_youden", "MB")
    return [number(figures[name]) for name in names]


def _spread(line: Mapping[str, Any]) -> list[str]:
    ways = [f"{line['undisclosed'][way]} / {line['false'][way]}" for way in WAYS]
    ranks = " ".join(map(str, line["ranks"]))
    return [str(line["seed"]), number(line["spearman"]), number(line["average_precision"]), ranks, *ways]


def signal_figure(areas: Sequence[Mapping[str, Any]], sensitive: set[str], outliers: set[str]) -> Markup:
    """Return the true signal as bars and the attacker's as a line, with its outliers marked."""
    names = [a["area"] for a in areas]
    traces: list[Trace] = []
    if areas and areas[0]["q"] is not None:
        colours = [SECOND if name in sensitive else FAINT for name in names]
        traces.append(_bars("true members (red: must not be identified)", names, [a["q"] for a in areas], colours))
    traces.append(_line("attacker's signal", names, [a["auxiliary"] for a in areas], ACCENT))
    out = [a for a in areas if a["area"] in outliers]
    if out:
        traces.append(_marks("outlier for the attacker", [a["area"] for a in out], [a["auxiliary"] for a in out]))
    return figure(traces, _areas_axis(names), {"title": "people", "rangemode": "tozero"}, "signal", height=400)


def swapped_page(facts: Mapping[str, Any], dictionary: Mapping[str, Any]) -> str:
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


def protection_page(report: Mapping[str, Any]) -> str:
    """Return the publisher's page of a protection: its cost, the remaining findings, by which attacker and test."""
    return page("groups_protection.html", version=__version__, block="", **_protection(report))


def protected_page(manifest: Mapping[str, Any]) -> str:
    """Return the same page of a release, with the figures of the written file and the accepted findings."""
    own = manifest["own"]
    return internal(
        "groups_internal.html", manifest, facts={"attacks": own["attacks"]}, **_protection(own["protection"])
    )


def _protection(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part that both pages share."""
    chosen = report["points"][report["chosen"]]
    names = [a["area"] for a in report["areas"]]
    pictures = [
        before_after(f"signal-{i}", names, signal, report["sensitive"])
        for i, signal in enumerate(report["signals"][:MOST_SIGNALS])
    ]
    holds = "no sealed attack identifies the sensitive areas any more"
    still = "some sealed attacks still identify sensitive areas"
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
                "says": f"findings, over {sealed['attacks']} sealed attacks",
            },
        ],
        "report": report,
        "front": front_figure(report),
        "points": [_point(point, report["chosen"]) for point in report["points"]],
        "signals": [{"name": s["name"], "picture": p} for s, p in zip(report["signals"], pictures, strict=False)],
        "residual": [_residual(row) for row in chosen["residual"]],
        "areas": report["areas"],
    }


def _point(point: Mapping[str, Any], chosen: int) -> dict[str, Any]:
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


def _residual(row: Mapping[str, Any]) -> dict[str, Any]:
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


def front_figure(report: Mapping[str, Any]) -> Markup:
    """Return cost against sensitive areas still identified, over known and fresh attacks."""
    points = [{"cost": 0.0, "found": report["planned_before"], "text": "nothing swapped"}] + [
        {"cost": p["cost"], "found": p["found"], "text": f"point {p['id']}: {p['swaps']} swaps"}
        for p in report["points"]
    ]
    x, y, text = ([p[key] for p in points] for key in ("cost", "found", "text"))
    hover = "%{text}<br>cost %{x}, still identified %{y}<extra></extra>"
    line = scatter(
        x,
        y,
        "lines+markers",
        "plans",
        text,
        line={"color": ACCENT, "width": 1.5},
        marker={"color": ACCENT, "size": 8},
        hovertemplate=hover,
    )
    chosen = report["points"][report["chosen"]]
    mark = _marks("chosen", [chosen["cost"]], [chosen["found"]])
    up = {"title": "sensitive areas identified, known and fresh attacks", "rangemode": "tozero"}
    return figure([line, mark], {"title": "cost: cells changed by swaps", "rangemode": "tozero"}, up, "front")


def before_after(name: str, names: Sequence[str], signal: Mapping[str, Any], sensitive: Sequence[str]) -> Markup:
    """Return one signal per area, before and after."""
    colours = [SECOND if area in sensitive else FAINT for area in names]
    traces = [
        _bars("before (red: must not be identified)", names, signal["before"], colours),
        _line("after", names, signal["after"], ACCENT),
    ]
    out = [i for i, area in enumerate(names) if area in signal["outliers_after"]]
    if out:
        traces.append(_marks("outlier after", [names[i] for i in out], [signal["after"][i] for i in out]))
    return figure(traces, _areas_axis(names), {"title": "people", "rangemode": "tozero"}, name, height=300)


def _areas_axis(names: Sequence[str]) -> Trace:
    return {"title": "area", "type": "category", "showticklabels": len(names) <= 60}


def _bars(name: str, x: Sequence[str], y: Sequence[float], colours: Sequence[str]) -> Trace:
    return {"type": "bar", "name": name, "x": list(x), "y": list(y), "marker": {"color": list(colours)}}


def _line(name: str, x: Sequence[str], y: Sequence[float], colour: str) -> Trace:
    line, marker = {"color": colour, "width": 2}, {"color": colour, "size": 6}
    return scatter(x, y, "lines+markers", name, line=line, marker=marker)


def _marks(name: str, x: Sequence[object], y: Sequence[float]) -> Trace:
    marker = {"color": "rgba(0,0,0,0)", "size": 15, "line": {"color": INK, "width": 2}}
    return scatter(x, y, "markers", name, marker=marker)
