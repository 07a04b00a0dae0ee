"""Sections [data] and [engine_options] of a run file, addresses of databases, and the roles of columns."""

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
IN_MEMORY = "(a table in memory)"  # the path in the settings of a table in memory
# A passfile is only the name of a file, but it has a key of its own in the run file.
REFUSED = ("password", "sslpassword", "passfile")


# Formats of other programs, whose files are converted before they are read.
STATISTICAL = ("sav", "dta", "sas7bdat")
LABELLED = (*STATISTICAL, "xlsx")
TITLES = {"sav": "SPSS", "dta": "Stata", "sas7bdat": "SAS", "sas7bcat": "SAS", "xlsx": "Excel"}
ENDINGS = {
    ".sav": "sav",
    ".zsav": "sav",
    ".dta": "dta",
    ".sas7bdat": "sas7bdat",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".xlsb": "xlsx",
    ".xls": "xlsx",
    ".ods": "xlsx",
}


def is_database(path: str) -> bool:
    """Return whether a path names a database.

    >>> is_database("sqlite:people.db"), is_database("postgresql://host/db"), is_database("people.csv")
    (True, True, False)
    """
    return path.startswith((*POSTGRESQL, SQLITE))


def located(path: str, folder: Path) -> str:
    """Return a path of a run file that is also valid in another folder.

    >>> located("sqlite:people.db", Path("/data")), located("postgresql://host/db", Path("/data"))
    ('sqlite:/data/people.db', 'postgresql://host/db')
    """
    if path == IN_MEMORY or path.startswith(POSTGRESQL):
        return path
    if path.startswith(SQLITE):
        return SQLITE + str((folder / path.removeprefix(SQLITE)).absolute())
    return str((folder / path).absolute())


def refuse_password(path: str) -> None:
    """Raise if an address holds a password. The message shows no part of the address."""
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
    """Return the address for the driver: sessions only read, use one time zone, and have a time limit to connect."""
    parts = urlsplit(path)
    given = dict(parse_qsl(parts.query))
    given.setdefault("connect_timeout", "10")
    given["options"] = f"{given.get('options', '')} -c default_transaction_read_only=on -c TimeZone=UTC".strip()
    if password_file is not None:
        given["passfile"] = str(password_file)
    return urlunsplit(parts._replace(query=urlencode(given, quote_via=quote)))


def quoted_table(name: str) -> str:
    """Return a table's name in SQL. A point separates it from its schema.

    >>> quoted_table("census.people")
    '"census"."people"'
    """
    return ".".join(quoted_name(part) for part in name.split("."))


def quoted_name(name: str) -> str:
    """Return a name in SQL."""
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
    """Settings that say where a table is and how it is read.

    Format, separator, quote and decimal mark are detected at the beginning of the file unless stated. An encoding other
    than UTF-8 and a missing header are never assumed: `sfumato inspect` detects them and writes them down.
    """

    path: str = Field(
        description="File, folder with the parts of one table, pattern such as parts/*.parquet, or address of "
        "a database. A database address must not contain a password."
    )
    table: str | None = Field(default=None, description="Table of the database that is read.")
    query: str | None = Field(
        default=None, description="Query whose result is read from the database, instead of a table."
    )
    password_file: str | None = Field(default=None, description="File with the password of the database.")
    format: Literal["csv", "parquet", "sav", "dta", "sas7bdat", "xlsx"] | None = Field(
        default=None, description="Format of the file. The ending of its name decides unless stated."
    )
    unit: Literal["row"] | None = Field(
        default=None, description="The value row states that every row is a person of its own."
    )
    unit_reason: str | None = Field(
        default=None,
        min_length=10,
        description="Reason why every row is a person. It is in the internal report, and not needed where a "
        "column has the role household.",
    )
    digest: Literal["bytes", "content"] = Field(
        default="bytes",
        description="Basis of the fingerprint of the table: the bytes of its files, or the content of a "
        "Parquet file, which equals that of the table in memory it was saved from.",
    )
    sheet: str | None = Field(default=None, description="Sheet of a workbook. The default is the first sheet.")
    header_row: int | None = Field(
        default=None,
        ge=1,
        le=1 << 20,
        description="Row of a workbook that has the names. The default is the first row that is not empty.",
    )
    codebook: str | None = Field(
        default=None,
        description="File with labels and missing codes: a data dictionary (CSV, JSON), DDI Codebook (XML) or "
        "a SAS catalogue.",
    )
    codes: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="Values that the codes of a labelled file mean, by column, where the values are to be "
        "read instead of the codes.",
    )
    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="Character between the values of a row. It is detected unless stated.",
    )
    quote: str | None = Field(
        default=None,
        max_length=1,
        description="Character around values, or an empty text for none. It is detected unless stated.",
    )
    decimal: Literal[".", ","] | None = Field(default=None, description="Decimal mark. It is detected unless stated.")
    encoding: str = Field(
        default="utf-8",
        description="Encoding of the text, such as latin-1 or cp1252, or auto to detect it. A file in another "
        "encoding is refused.",
    )
    header: bool | Literal["auto"] = Field(
        default=True, description="Whether the first row has the names of the columns, or auto to detect it."
    )
    names: tuple[str, ...] | None = Field(
        default=None, description="Names of the columns, one for each. The default is the header."
    )
    trim: bool = Field(default=True, description="Whether blanks around values are removed.")
    na: tuple[str, ...] = Field(default=(), description="Values that mean missing. An empty cell always does.")
    missing: Missing = Field(default="category", description="Rule for missing values in measured columns.")
    neutralise_formulas: bool = Field(
        default=False,
        description="Whether a released cell that a spreadsheet would take for a formula gets a mark in "
        "front, which changes the cell.",
    )
    removed: int = Field(
        default=0,
        ge=0,
        le=10**12,
        description="Number of suppressed records that a released file lacks. They remain in every sum and mean.",
    )
    left_out: int = Field(
        default=0,
        ge=0,
        le=10**12,
        description="Number of records that the missing rule left out before a release. They remain in the loss.",
    )

    @model_validator(mode="after")
    def _no_password(self) -> Self:
        refuse_password(self.path)
        return self


class EngineOptions(Settings):
    """Limits of the engine that reads the records, and settings of Spark."""

    memory_limit: str | None = Field(default=None, description="Memory that the engine may use, such as 2GB.")
    temp_folder: str | None = Field(default=None, description="Folder for temporary files of the engine.")
    threads: Threads | None = Field(default=None, description="Number of threads of the engine.")
    master: str | None = Field(
        default=None, description="Address of the Spark cluster, or local[4] for four cores of this machine."
    )
    conf: dict[str, str] = Field(
        default_factory=dict, description="Settings of Spark for memory, cores, ports and SQL."
    )

    def folder(self) -> str | None:
        """Return the folder for temporary files, if one is named. It must exist."""
        if self.temp_folder is not None and not Path(self.temp_folder).is_dir():
            raise StudyError(f"there is no folder {self.temp_folder}", expected="an existing temp_folder")
        return self.temp_folder

    @model_validator(mode="after")
    def _harmless(self) -> Self:
        """Refuse settings of Spark that can start programs, load classes or change options of the Java machine."""
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
        """Whether such a column may be in a released file. No method releases the others.

        >>> [str(role) for role in Role if not role.released]
        ['identifier', 'drop', 'vital', 'unit', 'household']
        """
        return self not in (Role.IDENTIFIER, Role.DROP, Role.VITAL, Role.UNIT, Role.HOUSEHOLD)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a column in a run file that this role reads."""
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
