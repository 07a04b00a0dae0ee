"""`sfumato releases`: what the ledger knows, and releases that never left."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli.show import AsJson, emit, note, table
from sfumato.errors import counted


def command(
    withdraw: Annotated[
        str | None, typer.Option(metavar="ID", help="The id of a release that was never handed out.")
    ] = None,
    reason: Annotated[str, typer.Option(help="The reason, kept in the ledger.")] = "",
    as_json: AsJson = False,
) -> None:
    """List the releases that new ones are compared with; withdraw one that nobody outside has seen."""
    from sfumato.release.history.ledger import Ledger

    ledger = Ledger()
    if withdraw is not None:
        entry = ledger.withdraw(withdraw, reason)
        note(f"withdrawn: {entry.folder}. New releases are no longer compared with it.")
    reading = ledger.read()
    listed = [
        {
            "id": entry.id,
            "time": entry.time,
            "system": entry.description.system,
            "folder": str(entry.folder),
            "source": entry.source,
            "rows": entry.rows[0].rows if entry.rows else None,
        }
        for entry in reading.entries
    ]
    if as_json:
        emit({"ledger": str(ledger.folder), "releases": listed, "unreadable": reading.unreadable})
        return
    rows = [[str(e["id"]), str(e["time"]), str(e["system"]), f"{e['rows']:,}", str(e["folder"])] for e in listed]
    table(f"Releases in {ledger.folder}", ["id", "time", "system", "rows of the table", "folder"], rows, right={3})
    if reading.unreadable:
        note(f"{counted(reading.unreadable, 'line')} of the ledger cannot be read")
