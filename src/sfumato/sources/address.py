"""Where a table is: a file, or a table of a database by an address without a password."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from sfumato.errors import StudyError

POSTGRESQL = ("postgresql://", "postgres://")
SQLITE = "sqlite:"
IN_MEMORY = "(a table in memory)"  # stands for a path where a run file tells of a frame
# A passfile is only the name of a file, but it has a key of its own in the run file.
REFUSED = ("password", "sslpassword", "passfile")


def is_database(path: str) -> bool:
    """Whether a path names a database.

    >>> is_database("sqlite:people.db"), is_database("postgresql://host/db"), is_database("people.csv")
    (True, True, False)
    """
    return path.startswith((*POSTGRESQL, SQLITE))


def located(path: str, folder: Path) -> str:
    """A path of a run file as it can stand in another folder.

    >>> located("sqlite:people.db", Path("/data")), located("postgresql://host/db", Path("/data"))
    ('sqlite:/data/people.db', 'postgresql://host/db')
    """
    if path == IN_MEMORY or path.startswith(POSTGRESQL):
        return path
    if path.startswith(SQLITE):
        return SQLITE + str((folder / path.removeprefix(SQLITE)).absolute())
    return str((folder / path).absolute())


def refuse_password(path: str) -> None:
    """Raise if an address holds a password. It is not shown: neither it nor what stands around it."""
    if not path.startswith(POSTGRESQL):
        return
    try:
        parts = urlsplit(path)
        stated = parts.password is not None or any(name.lower() in REFUSED for name, _ in parse_qsl(parts.query))
    except ValueError:
        raise StudyError("the address of the database is not valid", expected='"postgresql://host:5432/name"') from None
    if stated:
        raise StudyError(
            "the address of the database holds a password, and run files are kept and shown",
            expected='an address without one, such as "postgresql://host:5432/name"',
            remedy="PGPASSWORD or PGPASSFILE in the environment, or password_file under [data]",
        )


def connectable(path: str, password_file: Path | None) -> str:
    """The address as the driver takes it: sessions that only read, in one time zone, and do not wait for ever."""
    parts = urlsplit(path)
    given = dict(parse_qsl(parts.query))
    given.setdefault("connect_timeout", "10")
    given["options"] = f"{given.get('options', '')} -c default_transaction_read_only=on -c TimeZone=UTC".strip()
    if password_file is not None:
        given["passfile"] = str(password_file)
    return urlunsplit(parts._replace(query=urlencode(given, quote_via=quote)))


def quoted_table(name: str) -> str:
    """A table's name in SQL; a point parts it from its schema.

    >>> quoted_table("census.people")
    '"census"."people"'
    """
    return ".".join(quoted_name(part) for part in name.split("."))


def quoted_name(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'
