"""`sfumato reproduce`: the tables of the papers next to ours; `sfumato baselines`: the loss of other recodings."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from sfumato.base.files import refuse_existing, write_text
from sfumato.cli.show import AsJson, Force, emit, later, note, put, table

with later():
    from sfumato.measures.registry import K
    from sfumato.methods.channel.optrr import OptrrSettings
    from sfumato.methods.channel.pages import paper_page
    from sfumato.methods.registry import load_front
    from sfumato.papers import groups as reproduce
    from sfumato.papers.baselines import baselines
    from sfumato.papers.baselines_page import draw_baselines, row_cells, sentences
    from sfumato.papers.channel import Panel, reproduce_channel
    from sfumato.papers.cuts import reproduce_cuts, shown
    from sfumato.papers.lattice import Reproduced, reproduce_lattice
    from sfumato.report.page import Section, page
    from sfumato.study import read

app = typer.Typer(rich_markup_mode=None, help="Reproduce the tables of the papers.", no_args_is_help=True)
Html = Annotated[Path | None, typer.Option("--html", help="Also write a page.")]
HEADS = ["objectives", "front", "paper: RR, evals", "its algorithm here: RR, evals, CE", "our default: RR, evals, CE"]


@app.command()
def lattice(
    seeds: Annotated[int, typer.Option(min=1, help="Runs per row.")] = 20,
    html: Html = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Tables 1b and 2 of the property-based generalization paper, on the bundled Adult table."""
    _refuse_existing(html, force)
    reproduced = reproduce_lattice(seeds, progress=lambda done, total: note(f"row {done} of {total}"))
    rows = [_cells(row) for row in reproduced]
    _write_page(html, force, title=f"The lattice paper, {seeds} runs a row", heads=HEADS, rows=rows, lead=LEAD)
    if as_json:
        emit({"seeds": seeds, "rows": [row.as_dict() for row in reproduced]})
    else:
        table(f"Lattice paper, {seeds} runs a row", HEADS, rows, right={1, 2, 3, 4})


@app.command()
def cuts(
    seeds: Annotated[int, typer.Option(min=1, help="Runs per problem and algorithm.")] = 5,
    generations: Annotated[int, typer.Option(min=1, help="Generations of each run.")] = 250,
    html: Html = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """The questions of the privacy-versus-data-quality paper, on the bundled Adult table."""
    _refuse_existing(html, force)
    reproduced = reproduce_cuts(
        seeds, progress=lambda done, total: note(f"search {done} of {total}"), generations=generations
    )
    heads = ["question", "paper, its trees", "its algorithm here", "our default", "best known before", "CPU s a run"]
    rows = [
        [
            row.question.words,
            row.question.paper,
            shown(row.plain),
            shown(row.ours),
            row.question.known,
            f"{row.plain_seconds:.0f}, {row.our_seconds:.0f}",
        ]
        for row in reproduced
    ]
    title = f"The cuts paper, medians of {seeds} runs"
    _write_page(html, force, title=title, heads=heads, rows=rows, lead=CUTS_LEAD)
    if as_json:
        emit({"seeds": seeds, "generations": generations, "rows": [row.as_dict() for row in reproduced]})
    else:
        table(f"Cuts paper, medians of {seeds} runs (range)", heads, rows, right={5})


def _refuse_existing(html: Path | None, force: bool) -> None:
    """Refuse a page that exists before the hours of work begin."""
    if html is not None:
        refuse_existing(html, overwrite=force)


def _write_page(html: Path | None, force: bool, title: str, heads: list[str], rows: list[list[str]], lead: str) -> None:
    if html is not None:
        section = Section("", heads=heads, rows=rows, label=title)
        write_text(html, page("sections.html", title=title, lead=lead, sections=[section]), overwrite=force)


CUTS_LEAD = (
    "Adult, 30,162 complete rows, nine attributes; at most 10 % suppressed in problems 2 and 4. The trees are not "
    "printed and differ from ours, so its figures are a guide. Problem 4 is answered by the rule that makes the file "
    "(k, ℓ)-safe, not by the printed one. For pairs the first seed is shown."
)

LEAD = (
    "Adult, 30,162 complete rows, 1 % suppression. RR is the share of the true front's non-dominated boxes that hold "
    "an archive member, CE the printed sum of distances to it, evaluations are unique nodes. The paper's trees "
    "are not printed, so its figures are comparable in shape. S_ℓ is maximised as in the paper."
)


def _cells(row: Reproduced) -> list[str]:
    paper = f"{_shown(row.row.paper_rr, '.2f')}, {_shown(row.row.paper_evaluations, ',')}"
    return [
        row.row.name,
        f"{row.front} of {row.space:,}",
        paper,
        f"{row.paper_setting.rr:.3f}, {row.paper_setting.evaluations:,.0f}, {row.paper_setting.ce:.1e}",
        f"{row.default.rr:.3f}, {row.default.evaluations:,.0f}, {row.default.ce:.1e}",
    ]


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


@app.command()
def channel(
    generations: Annotated[int | None, typer.Option(min=1, help="Generations of OptRR [as in the paper].")] = None,
    sweeps: Annotated[int, typer.Option(min=0, help="Sweeps of the square engine.")] = 2,
    seed: Annotated[int, typer.Option(help="The seed of the searches.")] = 1,
    html: Html = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Figures 4 and 5 of the OptRR paper: Warner, OptRR, square matrices, and the certified bound."""
    generations = generations or OptrrSettings.generations
    _refuse_existing(html, force)
    reproduced = list(
        reproduce_channel(generations, sweeps, seed, progress=lambda done, total: note(f"panel {done} of {total}"))
    )
    if html is not None:
        title = f"The OptRR paper, {generations:,} generations"
        panels = [
            {
                "title": f"Figure {p.case.figure}: {p.case.name}",
                "words": _panel_words(p),
                "heads": _panel_heads(p),
                "rows": _panel_rows(p),
                "curves": p.curves,
            }
            for p in reproduced
        ]
        write_text(html, paper_page(title, CHANNEL_LEAD, panels), overwrite=force)
    if as_json:
        emit({"generations": generations, "seed": seed, "panels": [panel.as_dict() for panel in reproduced]})
        return
    for panel in reproduced:
        put(_panel_words(panel))
        title = f"Figure {panel.case.figure}: {panel.case.name}, δ = {panel.case.delta:g}"
        heads = _panel_heads(panel)
        table(title, heads, _panel_rows(panel), right=set(range(len(heads))))


CHANNEL_HEADS = ["privacy", "Warner", "OptRR", "square", "certified", "OptRR/cert.", "square/cert."]
EM_HEADS = ["EM: Warner", "EM: OptRR"]
CHANNEL_LEAD = (
    "Mean squared error against privacy for 10,000 records; further right and further down is better. Certified is the "
    "least error that any channel can have at that privacy, whatever its number of outputs; it is proven."
)


def _panel_words(panel: Panel) -> str:
    case, worst = panel.case, panel.worst_against_warner
    paper = (
        "" if case.paper_optrr is None else f" (paper: Warner {case.paper_warner:g}, OptRR about {case.paper_optrr:g})"
    )
    return (
        f"Lowest privacy: Warner {panel.warner[0, 0]:.3f}, OptRR {panel.archive.privacy[0]:.3f}{paper}. "
        f"OptRR's archive leaves {panel.uncovered * 100:.1f} % of Warner's matrices uncovered"
        + (f"; elsewhere its error is at most {worst:.3f} times Warner's." if worst is not None else ".")
    )


def _panel_heads(panel: Panel) -> list[str]:
    return CHANNEL_HEADS + (EM_HEADS if panel.case.with_em else [])


def _panel_rows(panel: Panel) -> list[list[str]]:
    def ratio(error: float | None, bound: float) -> str:
        return "–" if error is None else f"{error / bound:.3f}"

    return [
        [
            f"{level.privacy:.4f}",
            *(_shown(error, ".3e") for error in (level.warner, level.optrr, level.square, level.certified)),
            ratio(level.optrr, level.certified),
            ratio(level.square, level.certified),
            *(_shown(error, ".3e") for error in (level.em_warner, level.em_optrr) if panel.case.with_em),
        ]
        for level in panel.levels
    ]


@app.command()
def groups(
    data: Annotated[
        Path | None, typer.Option(help="The folder of the American Community Survey files, for the Hawaii experiment.")
    ] = None,
    records: Annotated[int, typer.Option(min=0, help="Records of the synthetic census; 0 leaves it out.")] = 3_205_478,
    census_seed: Annotated[int, typer.Option(help="The seed of the synthetic census.")] = 11,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each attacker on Hawaii.")] = 5,
    html: Html = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """The numbers of the group anonymity paper; its experiment on Hawaii and on a synthetic census."""
    _refuse_existing(html, force)
    rows = reproduce.golden_rows()
    lines = [] if data is None else reproduce.hawaii_lines(data, range(1, seeds + 1), note)
    rows += [row for line in lines for row in reproduce.hawaii_rows(line)]
    runs = []
    if records:
        with tempfile.TemporaryDirectory() as folder:
            share = records / reproduce.PAPER_RECORDS
            size = (
                records,
                max(round(reproduce.PAPER_MEMBERS * share), 50),
                max(round(reproduce.PAPER_AREAS * min(1.0, share * 2)), 40),
            )
            planted = reproduce.make_census(Path(folder) / "census", *size, census_seed)
            runs = reproduce.census_runs(planted, ("exact", "evolutionary", "boosted"), note)
        rows += [row for run in runs for row in reproduce.census_rows(run)]
    cells = [list(row) for row in rows]
    heads = ["figure", "paper", "here"]
    _write_page(html, force, title="The groups paper", heads=heads, rows=cells, lead=GROUPS_LEAD)
    if as_json:
        emit({"rows": [dict(zip(heads, row, strict=True)) for row in cells], "census": [run.as_dict() for run in runs]})
    else:
        table("Groups paper", heads, cells, right={1, 2})


GROUPS_LEAD = (
    "The paper's census files cannot be shipped. Its formulas are computed from its printed confusions; its experiment "
    "is repeated on American Community Survey files of Hawaii and on a synthetic census with planted installations. "
    "On the census the truth is what was planted; outliers that an area's size and chance explain are set aside, "
    "in place of the paper's expert, and the figures without that are given too."
)


def baselines_command(
    run: Annotated[Path, typer.Argument(help="The run file.")],
    front: Annotated[
        list[Path] | None,
        typer.Option(help="The folder of a front to compare with them; may be repeated, once per system."),
    ] = None,
    k: Annotated[list[int] | None, typer.Option("--k", help="A required k; may be repeated.")] = None,
    l: Annotated[int, typer.Option("--l", help="Minimum number of different sensitive values in every class.")] = 1,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these methods: lattice_optimum, datafly, mondrian_strict, mondrian_relaxed, mondrian_even."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A page to write.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Compare with Mondrian, Datafly and the best node of the lattice: what each kind of recoding costs."""
    if output is not None:
        refuse_existing(output, overwrite=force)
    fronts = [load_front(folder) for folder in front or []]
    costs = baselines(read(run), k or None, l=l, fronts=fronts, methods=method or None)
    if output is not None:
        draw_baselines(costs, output, fronts, overwrite=force)
    if as_json:
        emit(costs.as_dict())
        return
    rows = sorted(costs.rows, key=lambda row: (row.asked, costs.methods.index(row.method)))
    heads = ["method", "k required", K.label, "l", "loss", "suppressed", "classes", "labels", ""]
    table("What each kind of recoding costs", heads, [row_cells(row) for row in rows], right=set(range(1, 8)))
    for sentence in sentences(costs):
        put(sentence)
    for remark in costs.notes:
        note(remark)
    if output is not None:
        note(f"page: {output}")
