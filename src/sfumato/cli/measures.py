"""`sfumato measures`: the measures that there are. It has a module of its own because it needs little else."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli.show import AsJson, emit, later, put, table

with later():
    from sfumato.measures.registry import documented, known_measures

Markdown = Annotated[bool, typer.Option("--markdown", help="The tables of docs/measures.md.")]


def list_measures(as_json: AsJson = False, markdown: Markdown = False) -> None:
    """List every measure, with its other names, its direction and what it says."""
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
