"""`sfumato audit`: every figure of a table as it stands; `sfumato measures`: what there is to measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.show import AsJson, Force, emit, note, put, table
from sfumato.errors import counted
from sfumato.runtime.figures import number, percent

if TYPE_CHECKING:
    from sfumato.auditing.audit import Audit, Figure


def command(
    run: Annotated[Path, typer.Option("--run", "-r", help="The run file that declares the columns.")],
    file: Annotated[Path | None, typer.Argument(help="Another file to measure, read with the same settings.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Also write a page with pictures.")] = None,
    removed: Annotated[int, typer.Option(min=0, help="Number of suppressed records that are not in the file.")] = 0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Measure a table: k, ℓ, t, risks, uniques, losses, and which columns make the risk."""
    from sfumato.auditing.audit import audit
    from sfumato.runtime.atomic import refuse_existing, write_text
    from sfumato.study import read

    if html is not None:
        refuse_existing(html, overwrite=force)
    study = read(run)
    if removed:
        study = study.with_data(removed=removed)
    audited = audit(study, file)
    if html is not None:
        from sfumato.report.audit_page import audit_page

        write_text(html, audit_page(audited, (file or Path(study.data.path)).name), overwrite=force, private=True)
    if as_json:
        emit(audited.as_dict())
    else:
        _print(audited)
        if html is not None:
            note(f"page: {html}")


Markdown = Annotated[bool, typer.Option("--markdown", help="The tables of docs/measures.md.")]


def list_measures(as_json: AsJson = False, markdown: Markdown = False) -> None:
    """List every measure, with its other names, its direction and what it says."""
    from sfumato.measures.registry import documented, known_measures

    measures = known_measures()
    if as_json:
        emit({name: each.as_dict() for name, each in measures.items()})
        return
    if markdown:
        put("\n\n".join("\n".join(rows) for rows in documented().values()))
        return
    for kind in ("privacy", "loss"):
        rows = [
            [", ".join(m.names), "more" if m.direction == "max" else "less", m.sentence]
            for m in measures.values()
            if m.kind == kind
        ]
        table(f"{kind}: {len(rows)} measures", ["name", "better", "what it says"], rows)


def _print(audited: Audit) -> None:
    from sfumato.measures.in_persons import title_of

    classes = audited.classes
    released = classes.records - classes.suppressed_rows
    missing = f", {classes.table.left_out:,} left out (missing values)" if classes.table.left_out else ""
    held = counted(int(classes.kept.sum()), "class", "classes")
    persons = audited.persons is not None
    of = f" of {counted(audited.persons, 'person')}" if audited.persons is not None else ""
    put(f"{counted(released, 'record')}{of} in {held}; {classes.suppressed_rows:,} suppressed{missing}\n")
    for kind, title in (("privacy", "Disclosure"), ("loss", "Loss")):
        rows = []
        for figure in audited.figures.values():
            measure = figure.measure
            if measure.kind != kind:
                continue
            better = "↑" if measure.direction == "max" else "↓"
            rest = figure.reason or _by_column(figure)
            shown = title_of(measure, persons)
            rows.append([measure.name, shown, better, number(figure.value), number(figure.mean), rest])
        mean = "mean per person" if persons and kind == "privacy" else "mean per record"
        table(title, ["name", "measure", "better", "value", mean, ""], rows, right={3, 4})
    rows = [
        [c.column, percent(c.uniques), percent(c.marketer_risk), number(c.k_without)]
        for c in sorted(audited.contributions, key=lambda c: -c.marketer_risk)
    ]
    heads = ["column", f"fewer unique {'persons' if persons else 'records'}", "fewer correct matches", "k without it"]
    table("Contribution of each quasi-identifier to the risk", heads, rows, right={1, 2, 3})
    for text in audited.notes:
        note(f"note: {text}")


def _by_column(figure: Figure) -> str:
    """The value of each sensitive column; of many, the worst."""
    columns = figure.columns or {}
    if len(columns) <= 3:
        return ", ".join(f"{name} {number(value)}" for name, value in columns.items())
    worst = next(name for name, value in columns.items() if value == figure.value)
    return f"worst of {len(columns)} columns: {worst}"
