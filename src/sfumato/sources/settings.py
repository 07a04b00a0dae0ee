"""How a table is to be read: the [data] section of a run file, frozen and checked."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sfumato.errors import StudyError
from sfumato.runtime.settings import Settings
from sfumato.sources.address import refuse_password

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
