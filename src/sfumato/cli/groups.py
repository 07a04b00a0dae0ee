"""`sfumato groups`: find the areas in which a group is concentrated, and protect them with the fewest changes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.base.files import refuse_existing, write_text
from sfumato.base.text import number, number_or_infinity
from sfumato.cli.show import AsJson, Force, Watch, emit, later, note, put, table
from sfumato.errors import StudyError, counted, nearest

with later():
    from sfumato.methods.groups.attack import attackers
    from sfumato.methods.groups.attack.attack import attack as run_attack
    from sfumato.methods.groups.attack.attack import group_of
    from sfumato.methods.groups.files import (
        auxiliary_settings,
        convert_extract,
        read_auxiliary,
        read_target,
        read_whole,
        save_microfile,
        settings_of,
        variables_for,
    )
    from sfumato.methods.groups.pages import attack_page
    from sfumato.methods.groups.revealing import ranked
    from sfumato.methods.groups.swapped import staying_columns
    from sfumato.study import groups as members
    from sfumato.study import read

app = typer.Typer(
    rich_markup_mode=None, help="Find where a group of people stands out, and protect it.", no_args_is_help=True
)
MOST_RULES = 12

Run = Annotated[Path, typer.Argument(help="The run file, with a [groups] section.")]
Auxiliary = Annotated[str | None, typer.Option(help="The auxiliary file by its name [the first].")]
Group = Annotated[str | None, typer.Option(help="The group by its name [the first].")]


@app.command()
def harmonise(
    run: Run,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the harmonised file (Parquet).")] = None,
    auxiliary: Annotated[str | None, typer.Option(help="An auxiliary file instead of the one to publish.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Map a file to the common attributes, and say what was dropped and why."""
    if output is not None:
        refuse_existing(output, overwrite=force)
    study = read(run)
    file = read_auxiliary(study, auxiliary_settings(study, auxiliary)) if auxiliary else read_target(study)
    if output is not None:
        save_microfile(file, output, overwrite=force)
    dropped = file.dropped
    if as_json:
        members = {group: int(flags.sum()) for group, flags in file.members.items()}
        emit({"file": file.name, **vars(dropped), "members": members, "areas": len(file.areas)})
        return
    areas = counted(len(file.areas), "area")
    put(f"{file.name}: {dropped.kept:,} of {dropped.rows_read:,} rows are in range, in {areas}")
    for group, flags in file.members.items():
        put(f"  group {group}: {int(flags.sum()):,} of {int(file.everyone[group].sum()):,} members are in range")
    rows = [[reason, f"{count:,}", f"{dropped.only_reason[reason]:,}"] for reason, count in dropped.reasons.items()]
    if dropped.left_out:
        rows.append(["left out by a condition", f"{dropped.left_out:,}", "–"])
    table("Dropped", ["reason", "rows", "rows left out for this reason only"], rows, right={1, 2})


@app.command()
def variables(run: Run, auxiliary: Auxiliary = None, as_json: AsJson = False) -> None:
    """Show the linguistic variables; where none are declared, terms are proposed from the auxiliary file's values."""
    study = read(run)
    linguistic = variables_for(study, read_auxiliary(study, auxiliary_settings(study, auxiliary)))
    described = {
        v.attribute: {t.name: {"kind": t.kind, "numbers": [float(f"{n:.6g}") for n in t.numbers]} for t in v.terms}
        for v in linguistic
    }
    if as_json:
        emit(described)
        return
    for name, terms in described.items():
        for word, term in terms.items():
            put(f"{name:12} {word:28} {term['kind']:10} {term['numbers']}")


@app.command()
def attack(
    run: Run,
    attacker: Annotated[
        str | None,
        typer.Option(help="exact, evolutionary, boosted, forest, logistic; with _all on all columns and rows."),
    ] = None,
    auxiliary: Auxiliary = None,
    group: Group = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Also write a page with pictures.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> int:
    """Learn the group from an auxiliary file, and show which areas it reveals."""
    if attacker is not None and attacker not in members.ATTACKERS:
        raise StudyError(
            f'unknown attacker "{attacker}"', expected="an attacker", remedy=nearest(attacker, members.ATTACKERS)
        )
    if html is not None:
        refuse_existing(html, overwrite=force)
    study = read(run)
    everything = (attacker or settings_of(study).attack.attacker).endswith(attackers.ALL)
    columns = staying_columns(study) if everything else ()
    with Watch("seeds") as watch:
        attacks = run_attack(study, attacker, auxiliary, group, seeds, watch, columns)
    report = attacks[0].as_dict() | {"spread": [one.line() for one in attacks]}
    if html is not None:
        write_text(html, attack_page(report), overwrite=force, private=True)
    if as_json:
        emit(report)
    else:
        _print_attack(report)
        if html is not None:
            note(f"page: {html}")
    return 130 if watch.interrupted else 0


@app.command()
def columns(
    run: Run,
    group: Group = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Number of columns.")] = 25,
    as_json: AsJson = False,
) -> None:
    """Rank the released columns by how well they identify the group, also if they are withheld or coarsened."""
    study = read(run)
    settings, name = settings_of(study), group_of(study, group)
    listed = ranked(read_whole(study, staying_columns(study)), name, count, settings.attack.seed)
    if as_json:
        emit({"group": name, "naming": settings.naming, "columns": [vars(one) for one in listed]})
        return
    heads = ["column", "alone", "coarsening takes", "withholding takes from all"]
    rows = [
        [one.column, *(f"{share:.3f}" for share in (one.alone, one.coarsening_takes, one.withholding_takes))]
        for one in listed
    ]
    table(f"Columns that tell {name}, by average precision", heads, rows, right={1, 2, 3})
    note(f"a column that reaches more than {settings.naming:g} alone is refused (naming under [groups])")


def _print_attack(report: dict[str, Any]) -> None:
    model = report["model"]
    limits = f", γ = {model['gamma']:g}, κ = {model['kappa']:g}" if "gamma" in model else ""
    how = f" ({model['chosen']})" if "chosen" in model else ""
    put(f"{report['attacker']} attacker, group {report['group']}, learned from {report['auxiliary']}{limits}{how}\n")
    rules = report["rules"]
    if rules:
        shown = rules[:MOST_RULES]
        rows = [[r["words"], number(r["df"]), number_or_infinity(r["rcf"]), number(r["support"])] for r in shown]
        some = f", {MOST_RULES} of {len(rules)} shown" if len(rules) > MOST_RULES else ""
        table(f"Rules{some}", ["rule", "DF", "RCF", "support"], rows, right={1, 2, 3})
    outliers = report["outliers"]
    sensitive = outliers.get("sensitive", [])
    rows = [
        [
            area["area"] + (" !" if area["area"] in sensitive else ""),
            number(area["q"]),
            f"{area['auxiliary']:.2f}",
            number(area["crisp"]),
            str(area["rank"]),
            "–" if area["ratio"] is None else f"{area['ratio']:.2f}",
            f"{area['concentration']:.4f}",
            " ".join(s for s in ("hinges", "mad") if area["area"] in outliers["auxiliary"][s]["high"]),
        ]
        for area in report["areas"][:60]
    ]
    heads = ["area", "true q", "auxiliary", "crisp", "rank", "over median", "share of records", "outlier by"]
    some = f", 60 of {len(report['areas'])} shown" if len(report["areas"]) > 60 else ""
    table(f"Areas (! must not be identified{some})", heads, rows, right={1, 2, 3, 4, 5, 6})
    if report["adequacy"] is None:
        note("the file lacks the vital columns, so the attack cannot be compared with the truth")
        return
    if not sensitive:
        nobody = not any(area["q"] for area in report["areas"])
        why = "no record in range is in the group" if nobody else "no area stands out in the true signal"
        note(f"{why}: nothing can be disclosed")
    _print_adequacy(report)


def _print_adequacy(report: dict[str, Any]) -> None:
    adequacy = report["adequacy"]
    ways = {"Thompson τ, hinges": adequacy, "Thompson τ, MAD": adequacy["mad"], "top ranks": adequacy["rank"]}
    rows = [
        [way, *(str(a[n]) for n in ("disclosed", "undisclosed", "false")), *(number(a[n]) for n in FIGURES)]
        for way, a in ways.items()
    ]
    heads = ["sensitive areas by", "disclosed", "undisclosed", "false", "PA", "J as printed", "Youden J", "MB"]
    table(f"Adequacy (Spearman {number(adequacy['spearman'])})", heads, rows, right=set(range(1, 8)))
    rows = [
        [
            str(line["seed"]),
            number(line["spearman"]),
            number(line["average_precision"]),
            " ".join(map(str, line["ranks"])),
            *(str(line["undisclosed"][way]) for way in ("hinges", "mad", "rank")),
            *(str(line["false"][way]) for way in ("hinges", "mad", "rank")),
        ]
        for line in report["spread"]
    ]
    heads = ["seed", "Spearman", "average precision", "ranks of the sensitive"]
    heads += [f"{word}, {way}" for word in ("undisclosed", "false") for way in ("hinges", "MAD", "rank")]
    table("Over the seeds", heads, rows, right=set(range(len(heads))))


FIGURES = ("PA", "J_printed", "J_youden", "MB")


@app.command()
def ipums(
    ddi: Annotated[Path, typer.Argument(help="The codebook of an IPUMS extract (.xml).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The Parquet file to write.")],
    data: Annotated[Path | None, typer.Option(help="The extract (.dat.gz) [as the codebook names it].")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Convert an IPUMS extract to Parquet, a chunk at a time, for recipe = "ipums"."""
    refuse_existing(output, overwrite=force)
    rows, columns = convert_extract(ddi, output, data, overwrite=force)
    if as_json:
        emit({"file": str(output), "rows": rows, "columns": columns})
    else:
        note(f"{counted(rows, 'row')}, {counted(columns, 'column')}: {output}")
