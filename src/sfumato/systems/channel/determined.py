"""What the plain columns of a file determine of a disguised one: the rule `dependence`.

The rule `response` limits what a report adds to the other columns. Where these determine the value by themselves, no
report adds anything, and the disguise has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.release.dependences import findings_of, first_records
from sfumato.release.policy import Finding
from sfumato.sources.cells import cleaned
from sfumato.study import Study
from sfumato.systems.channel.readback import Rows
from sfumato.tables.dependence import Protected, dependences
from sfumato.tables.missing import present


def determined_findings(rows: Rows, study: Study, hidden: Sequence[str], kept: Sequence[str]) -> list[Finding]:
    """The plain columns, alone or in pairs, from which a disguised one follows in nearly all records.

    Rows of a person that are alike in these columns count once: the others would only repeat what the first one shows.
    """
    if not kept:
        return []
    source, engine = rows.source, rows.engine
    complete, view = present(cleaned(source, source.column(name)) for name in rows.complete), rows.view
    if rows.unit is not None:
        alike = ", ".join(
            f"coalesce({cleaned(source, source.column(name))}, '')" for name in (rows.unit, *hidden, *kept)
        )
        view = first_records(engine, view, alike, complete)
    protected = [Protected(name, "disguised") for name in hidden]
    searched = dependences(engine, source, kept, protected, rows=complete, raw=view)
    return findings_of(searched, study, kept)
