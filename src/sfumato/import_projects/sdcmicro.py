"""Scripts of sdcMicro: the key variables, the weight and the sensitive variables of `createSdcObj`, as a run file.

As much of R as it takes to read the arguments of one call: texts, vectors of texts, and names given to them.

Nothing is run. What is not a text, a vector of texts or a name that was given one is None.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from sfumato.base.formats import read_limited
from sfumato.base.settings import Noted, toml_text
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings, Role
from sfumato.errors import DataError, InputError, nearest, shortened
from sfumato.import_projects.arx import Imported
from sfumato.study import write_run_file

TOKEN = re.compile(
    r"""\s+ | \#[^\n]* | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*') | (?P<name>[A-Za-z.][\w.]*)
    | (?P<assign><-|<<-|=(?!=)) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
Token = tuple[str, str]
OPEN_BRACKETS, CLOSE_BRACKETS = "([{", ")]}"


def tokens(script: str) -> list[Token]:
    """The tokens of a script without blanks and comments: kind and text.

    >>> tokens("k <- c('a')  # keys")
    [('name', 'k'), ('assign', '<-'), ('name', 'c'), ('other', '('), ('text', 'a'), ('other', ')')]
    """
    found = [(match.lastgroup, match[0]) for match in TOKEN.finditer(script)]
    return [(kind, re.sub(r"\\(.)", r"\1", text[1:-1]) if kind == "text" else text) for kind, text in found if kind]


def arguments_of(script: str, function: str) -> dict[str, list[str] | None] | None:
    """The named arguments of the first call of a function, None if it is not called.

    >>> script = "keys <- c('a', 'b')\\nsdc <- createSdcObj(dat = d, keyVars = keys, weightVar = 'w', seed = 1)"
    >>> arguments_of(script, "createSdcObj")
    {'dat': None, 'keyVars': ['a', 'b'], 'weightVar': ['w'], 'seed': None}
    """
    listed = tokens(script)
    for position in range(len(listed) - 1):
        if listed[position] == ("name", function) and listed[position + 1] == ("other", "("):
            known = _assigned(listed[:position])
            inside = _until_closed(listed[position + 2 :])
            return {name: _texts(value, known) for name, value in _named(inside)}
    return None


def _with_depth(listed: list[Token]) -> Iterator[tuple[int, Token]]:
    """Yield the tokens with the number of brackets around them; a closing bracket is outside of its pair."""
    depth = 0
    for kind, text in listed:
        depth -= kind == "other" and text in CLOSE_BRACKETS
        yield depth, (kind, text)
        depth += kind == "other" and text in OPEN_BRACKETS


def _until_closed(listed: list[Token]) -> list[Token]:
    """Return the tokens up to the bracket that closes one opened before them."""
    return [token for _, token in itertools.takewhile(lambda one: one[0] >= 0, _with_depth(listed))]


def _named(inside: list[Token]) -> Iterator[tuple[str, list[Token]]]:
    """Yield the named arguments: name and tokens of the value."""
    parts: list[list[Token]] = [[]]
    for depth, token in _with_depth(inside):
        if depth == 0 and token == ("other", ","):
            parts.append([])
        else:
            parts[-1].append(token)
    for part in parts:
        if len(part) > 2 and part[0][0] == "name" and part[1] == ("assign", "="):
            yield part[0][1], part[2:]


def _assigned(listed: list[Token]) -> dict[str, list[str]]:
    """The names that were given texts before."""
    known: dict[str, list[str]] = {}
    for position in range(len(listed) - 2):
        (kind, name), (assign, _) = listed[position : position + 2]
        if kind == "name" and assign == "assign":
            value = listed[position + 2 : position + 4]
            if value == [("name", "c"), ("other", "(")]:
                value += [*_until_closed(listed[position + 4 :]), ("other", ")")]
            else:
                value = value[:1]
            if (result := _texts(value, known)) is not None:
                known[name] = result
    return known


def _texts(value: list[Token], known: dict[str, list[str]]) -> list[str] | None:
    """The texts that a value is, None if it is something else."""
    if len(value) == 1:
        kind, text = value[0]
        return [text] if kind == "text" else known.get(text) if kind == "name" else None
    if value[:2] == [("name", "c"), ("other", "(")] and value[-1:] == [("other", ")")]:
        inside = [one for one in value[2:-1] if one != ("other", ",")]
        if inside and all(kind == "text" for kind, _ in inside):
            return [text for _, text in inside]
    return None


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
OPEN = {
    "numVars": "a numeric key: sdcMicro perturbs it; here decide whether it is recoded, sensitive or withheld",
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


def _columns(result: dict[str, list[str] | None], names: list[str]) -> tuple[dict[str, Noted], list[str]]:
    """What each column of the table is, and what is left to decide."""
    columns: dict[str, Noted] = {}
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
