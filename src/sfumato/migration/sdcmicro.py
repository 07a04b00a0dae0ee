"""Scripts of sdcMicro: the key variables, the weight and the sensitive variables of `createSdcObj`, as a run file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sfumato.errors import DataError, InputError, nearest, shortened
from sfumato.migration.arx import Imported
from sfumato.migration.r_script import arguments_of
from sfumato.runtime.json_files import read_limited
from sfumato.runtime.toml import Noted, toml_text
from sfumato.sources.opening import open_source
from sfumato.sources.roles import Role
from sfumato.sources.settings import DataSettings
from sfumato.study import write_run_file

CALL = "createSdcObj"
EXPECTED = "an R script that calls createSdcObj with names of columns in quotes"
MOST_SCRIPT = 4 << 20
FLAT = {"build": "flat"}
GIVEN: dict[str, tuple[Role, str]] = {  # arguments of the call that say what a column is
    "keyVars": (Role.QUASI_IDENTIFIER, "a key variable"),
    "weightVar": (Role.WEIGHT, "the sampling weight"),
    "sensibleVar": (Role.SENSITIVE, "a sensitive variable"),
    "excludeVars": (Role.DROP, "excluded in the script"),
    "hhId": (Role.IDENTIFIER, "the household: risks within households are not measured here"),
}
OPEN = {"numVars": "a numeric key: sdcMicro perturbs it; here decide whether it is recoded, sensitive or withheld"}
OPEN |= {
    "pramVars": "PRAM in sdcMicro; the channel system is the like of it",
    "strataVar": "a stratum",
    "ghostVars": "",
}


def import_sdcmicro(
    script: str | Path, table: str | Path, run_file: str | Path, *, overwrite: bool = False
) -> Imported:
    """Write a run file from a script and the table that it is about.

    Args:
        script: the R script.
        table: the table, as a file that can be read here.
        run_file: the run file to write.
        overwrite: whether it may replace another file.

    Returns:
        The run file, and what is left to decide.
    """
    text = read_limited(Path(script), MOST_SCRIPT, expected=EXPECTED).decode("utf-8", errors="replace")
    result = arguments_of(text, CALL)
    if result is None:
        raise DataError(f"{script} does not call {CALL}", expected=EXPECTED)
    if not result.get("keyVars"):
        raise DataError(f"the keyVars of {script} are not names in quotes", expected=EXPECTED)
    names = list(open_source(DataSettings(path=str(Path(table).absolute()))).names)
    columns, notes = _columns(result, names)
    there = os.path.relpath(Path(table).absolute(), Path(run_file).absolute().parent)
    settings = {
        "version": 1,
        "data": {
            "path": Path(there).as_posix(),
            "missing": Noted("wildcard", "as sdcMicro counts: a missing key matches anything"),
        },
        "columns": columns,
    }
    head = [f"From {Path(script).name}, a script of sdcMicro.", *notes]
    written = write_run_file(Path(run_file), toml_text(settings, head), overwrite=overwrite)
    return Imported(written, len(names), tuple(notes))


def _columns(result: dict[str, list[str] | None], names: list[str]) -> tuple[dict[str, Any], list[str]]:
    """What each column of the table is, and what is left to decide."""
    columns: dict[str, Any] = {}
    notes = []
    for argument, (role, why) in GIVEN.items():
        given = result.get(argument)
        if argument in result and given is None:
            notes.append(f"{argument} is not written as names in quotes: it was left out")
        for name in given or []:
            if name not in names:
                raise InputError(
                    f"{argument} names {name!r}, which is no column of the table",
                    expected="columns of the table",
                    remedy=nearest(name, names),
                )
            if name not in columns:
                keys = {"hierarchy": FLAT} if role is Role.QUASI_IDENTIFIER else {}
                columns[name] = Noted({"role": role.value, **keys}, why)
    hints = {name: why for argument, why in OPEN.items() for name in result.get(argument) or []}
    undecided = [name for name in names if name not in columns]
    for name in undecided:
        columns[name] = Noted({"role": ""}, hints.get(name) or "not in the script: decide", active=False)
    notes.append("every key is kept or hidden as a whole until it gets a hierarchy of its own")
    if undecided:
        notes.append(f"nothing runs until each of these has a role: {shortened(undecided, 12)}")
    return {name: columns[name] for name in names}, notes
