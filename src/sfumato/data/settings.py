"""How a table is to be read: the [data] section of a run file, frozen and checked.

Where a table is: a file, or a table of a database by an address without a password.

What a column is to the publisher. Every column has exactly one role before anything runs.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from pydantic import Field, model_validator

from sfumato.base.settings import Settings
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


SECRET = re.compile(r"secret|passw|token|credential|access[._-]?key|private[._-]?key", re.IGNORECASE)
FOREIGN = "(not opened: the folder that names it was not made here)"
SPARK = re.compile(
    r"spark\.(sql\.(?!extensions$|warehouse\.dir$|catalog\.|hive\.|queryExecutionListeners$|streaming\.)[A-Za-z0-9._-]+"
    r"|executor\.(memory|memoryOverhead|cores|instances)|driver\.(memory|cores|maxResultSize|host|bindAddress|port)"
    r"|(cores|task)\.(max|cpus|maxFailures)|blockManager\.port|port\.maxRetries|default\.parallelism|memory\.(fraction|storageFraction)"
    r"|network\.timeout|rpc\.(message\.maxSize|askTimeout)|serializer\.objectStreamReset|ui\.enabled|app\.name"
    r"|deploy\.maxExecutorRetries|dynamicAllocation\.[A-Za-z.]+|locality\.wait|shuffle\.(partitions|compress|spill\.compress))"
)
Missing = Literal["drop", "category", "wildcard"]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Threads = Annotated[int, Field(ge=1, le=1024)]


class DataSettings(Settings):
    """Where the table is and how its text is to be understood.

    What is left out is detected from the file's head (format, separator, quote, decimal mark). An encoding other
    than UTF-8 and a missing header are never assumed: `sfumato inspect` detects them and writes them down.
    With `neutralise_formulas` a release writes a mark before kept cells that a spreadsheet would run.
    `removed` is how many suppressed records a release lacks, so that they stay in every measurement, and `left_out` how
    many records of its source the missing rule left out, so that they stay in the loss.
    `digest` is what a fingerprint is of: the bytes of a file, or the content of a Parquet file, which is that of the
    table in memory it was written from.
    `unit = "row"` states that every row is one person, and `unit_reason` why; it goes into the report of a release.
    Of a database, `table` or `query` says what is read, and `password_file` where its password is.
    Of a workbook, `sheet` is the sheet (the first unless given) and `header_row` the row of its names. `codebook` is a
    file with labels and missing codes: a data dictionary (CSV, JSON) or DDI Codebook (XML). `codes` says of columns of
    a labelled file which value each code stands for, where the value and not the code is to be read.
    """

    path: str
    table: str | None = None
    query: str | None = None
    password_file: str | None = None
    format: Literal["csv", "parquet", "sav", "dta", "sas7bdat", "xlsx"] | None = None
    unit: Literal["row"] | None = None
    unit_reason: str | None = Field(default=None, min_length=10)
    digest: Literal["bytes", "content"] = "bytes"
    sheet: str | None = None
    header_row: int | None = Field(default=None, ge=1, le=1 << 20)
    codebook: str | None = None
    codes: dict[str, dict[str, str]] = Field(default_factory=dict)
    separator: str | None = Field(default=None, min_length=1, max_length=1)
    quote: str | None = Field(default=None, max_length=1)
    decimal: Literal[".", ","] | None = None
    encoding: str = "utf-8"
    header: bool | Literal["auto"] = True
    names: tuple[str, ...] | None = None
    trim: bool = True
    na: tuple[str, ...] = ()
    missing: Missing = "category"
    neutralise_formulas: bool = False
    removed: int = Field(default=0, ge=0, le=10**12)
    left_out: int = Field(default=0, ge=0, le=10**12)

    @model_validator(mode="after")
    def _no_password(self) -> Self:
        refuse_password(self.path)
        return self


class EngineOptions(Settings):
    """Limits of the engine that touches the raw rows; for Spark also its master and settings of its own."""

    memory_limit: str | None = None
    temp_folder: str | None = None
    threads: Threads | None = None
    master: str | None = None
    conf: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _harmless(self) -> Self:
        """Settings of Spark can name programs that it starts, classes that it loads and options of its machine."""
        refused = [name for name in self.conf if not SPARK.fullmatch(name) and not SECRET.search(name)]
        if refused:
            raise StudyError(
                f"{refused[0]} may not be set under [engine_options] conf",
                expected="settings of memory, cores, ports and SQL; docs/scale.md lists them",
                remedy="put it into spark-defaults.conf, where only you and your administrator write",
            )
        return self

    @model_validator(mode="after")
    def _no_secrets(self) -> Self:
        secret = [name for name in self.conf if SECRET.search(name)]
        if secret:
            raise StudyError(
                f"{secret[0]} under [engine_options] conf looks like a secret, and run files are kept and shown",
                expected="settings that anyone may read",
                remedy="put it into spark-defaults.conf, or into the environment of the cluster",
            )
        return self


class Role(StrEnum):
    """The role of a column.

    >>> Role("sensitive").meaning
    'confidential: must not be learned about a person'
    """

    QUASI_IDENTIFIER = "quasi_identifier"
    SENSITIVE = "sensitive"
    LABEL = "label"
    IDENTIFIER = "identifier"
    WEIGHT = "weight"
    OTHER = "other"
    DROP = "drop"
    VITAL = "vital"
    UNIT = "unit"
    HOUSEHOLD = "household"

    @property
    def meaning(self) -> str:
        return MEANINGS[self]

    @property
    def released(self) -> bool:
        """Whether such a column may be in a released file. No system releases the others.

        >>> [str(role) for role in Role if not role.released]
        ['identifier', 'drop', 'vital', 'unit', 'household']
        """
        return self not in (Role.IDENTIFIER, Role.DROP, Role.VITAL, Role.UNIT, Role.HOUSEHOLD)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a column in a run file that do something in this role, beside `role` itself."""
        return KEYS.get(self, ())

    @property
    def measured(self) -> bool:
        """Whether a missing value in such a column is subject to the missing rule."""
        return self in (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.LABEL, Role.WEIGHT)


MEANINGS = {
    Role.QUASI_IDENTIFIER: "known to outsiders; together such columns can identify a person",
    Role.SENSITIVE: "confidential: must not be learned about a person",
    Role.LABEL: "the class an analyst wants to predict",
    Role.IDENTIFIER: "identifies a person directly; never released",
    Role.WEIGHT: "number of people in the population that a record represents",
    Role.OTHER: "released unchanged and not counted in any privacy measure",
    Role.DROP: "left out of the release",
    Role.VITAL: "defines the group to protect (groups system); never released",
    Role.UNIT: "number of the person that a record belongs to; classes count persons; never released",
    Role.HOUSEHOLD: "number of the household that a person belongs to; never released",
}

KEYS: dict[Role, tuple[str, ...]] = {
    Role.QUASI_IDENTIFIER: ("hierarchy", "missing", "constrained", "order", "breaks"),
    Role.SENSITIVE: ("hierarchy", "missing", "distance", "round", "bands", "harmless"),
    Role.LABEL: ("missing", "round", "bands"),
    Role.WEIGHT: ("round",),
    Role.OTHER: ("round", "bands"),
}
