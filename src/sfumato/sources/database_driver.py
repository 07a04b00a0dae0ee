"""The drivers of databases: where they come from, how a password file is checked, and our words for their errors."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sfumato.errors import DataError, InputError
from sfumato.runtime.inputs import note_input
from sfumato.sources.address import SQLITE, connectable

# Words of a driver's message or its SQLSTATE; what we say of it; what was expected; what to try.
FAILURES = (
    (
        r"28\w{3}|password authentication failed|no password supplied|role .* does not exist|pg_hba\.conf",
        "the database refused the user or the password",
        "a user who may read it",
        "PGUSER and PGPASSWORD in the environment, or password_file under [data]",
    ),
    (
        r"42501|permission denied",
        "the user has no right to read it",
        "a user who may read it",
        "ask for the right to SELECT",
    ),
    (
        r"3D000|database .* does not exist",
        "there is no such database",
        "a database of the server",
        "check the address",
    ),
    (
        r"Connection refused|could not translate host|timeout expired|No route|No such file or directory|Is the server",
        "no server answers at this address",
        "a running server that can be reached from this machine",
        "check the host and the port in the address",
    ),
    (r"08\w{3}|57P0\d|server closed the connection|terminating connection|SSL", "the connection was lost", "", ""),
    (
        r"unable to open|failed to open|failed to allocate",
        "the file cannot be opened",
        "an existing SQLite file that you may read",
        "check the path; it is relative to the run file",
    ),
    (
        r"file is not a database|malformed|encrypted",
        "the file is not an SQLite database",
        "an SQLite file",
        "check the path",
    ),
    (
        r"42703|42601|no such column|syntax error",
        "the database did not understand the query",
        "a valid SELECT statement",
        "",
    ),
    (r"25006|readonly", "the query would write, and only reading is allowed", "a SELECT statement", ""),
    (
        r"[Tt]ype mismatch|cannot be cast|INVALID_DATA",
        "a column changed its type while it was being read",
        "columns of one type",
        "run it again",
    ),
)


def explained(error: Exception, title: str) -> InputError:
    """Our words for a driver's error; its own may quote rows, names and addresses."""
    state, text = getattr(error, "sqlstate", None) or "", str(error)
    if isinstance(error, OSError):
        return broke_off(title)
    for words, what, expected, remedy in FAILURES:
        if re.search(words, text) or re.fullmatch(words, state):
            return DataError(f"{title}: {what}", expected=expected, remedy=remedy)
    return DataError(
        f"{title} cannot be read" + (f" (SQLSTATE {state})" if state else ""),
        expected="a table or query that the database can read completely",
    )


def broke_off(title: str) -> DataError:
    return DataError(
        f"{title}: the connection was lost before the last row",
        expected="a stable connection",
        remedy="run it again; nothing was saved",
    )


def driver(path: str) -> tuple[Callable[..., Any], type[Exception]]:
    """What connects to a database, and what it raises."""
    try:
        from adbc_driver_manager import Error

        if path.startswith(SQLITE):
            from adbc_driver_sqlite.dbapi import connect
        else:
            from adbc_driver_postgresql.dbapi import connect
    except ImportError:
        raise InputError(
            "reading from a database needs a driver that is not installed",
            expected="the extra db",
            remedy="pip install 'sfumato[db]'",
        ) from None
    return connect, Error


def address_of(path: str, password_file: str | None, folder: Path) -> str:
    """The address as the driver takes it."""
    if path.startswith(SQLITE):
        file = (folder / path.removeprefix(SQLITE)).absolute()
        if not file.is_file():
            raise DataError(
                f"there is no file {file}",
                expected="an SQLite file",
                remedy="check the path; it is relative to the run file",
            )
        return f"file:{quote(str(note_input(file)))}?mode=ro"
    if password_file is None:
        return connectable(path, None)
    named = (folder / password_file).absolute()
    if not named.is_file():
        raise InputError(f"there is no password file {named}", expected="a file in the format of PostgreSQL's pgpass")
    if named.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            f"the password file {named} can be read by others",
            expected="a file that only you can read",
            remedy=f"chmod 600 {named}",
        )
    return connectable(path, note_input(named))
