"""What the interface answers where programs count on it: the figures over all released columns, releases, verdicts.

What the page may send. Unknown keys are refused, numbers have ranges, names have lengths.

Answers and errors of a worker as JSON knows them.
"""

from __future__ import annotations

import math
import os
import traceback
from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from sfumato.base.json_types import Json
from sfumato.base.wording import on_page
from sfumato.errors import MemoryLimitError, SfumatoError
from sfumato.web.workspace import UnversionedError


class Answer(BaseModel):
    """A body of an answer; anything that is not listed would be a mistake of ours."""

    model_config = ConfigDict(extra="forbid")


class Uniqueness(Answer):
    """Records that share the same values in some columns of a file."""

    columns: int = Field(description="How many columns are compared.")
    records: int
    classes: int = Field(description="Different combinations of values.")
    unique: int = Field(description="Records whose combination no other record has.")
    smallest: int = Field(description="Records of the smallest class.")
    unique_share: float
    expected_correct_matches: float = Field(
        description="The share of records that someone who knows all these columns of everybody matches correctly."
    )


class OwnValues(Answer):
    """A column by itself: how many records have a value that no other record has."""

    kind: str = Field(description="number, date or text")
    category: bool = Field(description="Whether its values are few texts, of which one may be rare.")
    records: int
    distinct: int
    unique: int
    unique_share: float


class Whole(Answer):
    """A file over all its released columns, counted in some other figure or not."""

    all_columns: Uniqueness
    quasi_identifiers_and_kept: Uniqueness = Field(description="Without the sensitive columns.")
    columns_in_no_figure: list[str]
    own_values: dict[str, OwnValues] = Field(
        description="Released columns, quasi-identifiers left out, in which some record has a value of its own."
    )


class Verdict(Answer):
    """What a verification found."""

    verified: bool
    differences: list[str]
    not_compared: list[str]


class Published(Verdict):
    """A release that was just written: measured on the written file, and verified."""

    release: str
    folder: str
    figures: dict[str, Json]
    warnings: list[str]
    released: int
    suppressed: int
    left_out: int
    whole: Whole


class About(BaseModel):
    """What the page remembers about a release."""

    job: str
    point: int
    reason: str
    verified: bool | None = Field(default=None, description="What the last verification said.")
    checked: float | None = Field(default=None, description="When that was, in seconds since 1970.")


class Listed(Answer):
    """A release of a study."""

    name: str
    folder: str
    point: Json
    records: int
    released: int
    suppressed: int
    left_out: int = Field(description="Records of the source that the missing rule left out.")
    loss: float | None
    data: str
    reports: list[str]
    about: About
    says: str
    whole: Whole
    created: str = Field(description="When it was written, in UTC.")
    sha256: str = Field(description="The digest of the released file.")
    accepted: int = Field(description="How many rules of the policy it breaks, each accepted with a reason.")


IDENTIFIER = r"^[a-z0-9][a-z0-9-]{0,63}$"
StudyId = Annotated[str, Path(pattern=IDENTIFIER, description="The id of a study.")]
JobId = Annotated[str, Path(pattern=IDENTIFIER, description="The id of a job.")]
ReleaseId = Annotated[str, Path(pattern=IDENTIFIER, description="The name of a release.")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Least = Annotated[float, Field(ge=1, le=1e12, allow_inf_nan=False)]


class Body(BaseModel):
    """A body of a request."""

    model_config = ConfigDict(extra="forbid")


class KeyGiven(Body):
    """A key that is good for one use."""

    key: str = Field(min_length=1, max_length=200)


class TicketFor(Body):
    """The file that a ticket is for: a path of this interface, without a query."""

    path: str = Field(pattern=r"^/api/studies/[a-z0-9-]{1,64}/(releases|disguised)/[a-z0-9./-]{1,140}$")


class Opened(Body):
    """Open a table, a run file or a sample. `settings` are those of [data], without its path."""

    path: str | None = Field(default=None, min_length=1, max_length=1000)
    sample: Literal["adult"] | None = None
    table: str | None = Field(default=None, min_length=1, max_length=400, description="Of a database: its table.")
    separator: str | None = Field(default=None, min_length=1, max_length=1)
    encoding: str | None = Field(default=None, max_length=40)
    header: bool | None = None
    names: list[Annotated[str, Field(min_length=1, max_length=400)]] | None = Field(
        default=None, min_length=1, max_length=10_000, description="Of a file without a header: its columns."
    )
    decimal: Literal[".", ","] | None = None


class Changes(Body):
    """What is declared; a section that is left out stays as it is."""

    name: str | None = Field(default=None, max_length=200)
    reviewed: bool | None = None
    accept_table: bool | None = Field(default=None, description="The table as it is now is the one of this study.")
    data: Json | None = None
    columns: dict[str, Json] | None = None
    population: Json | None = Field(default=None, description="As [data]; {} for none.")
    search: Json | None = None
    measures: dict[str, dict[str, float | str]] | None = None
    groups: Json | None = Field(default=None, description="The group, its areas and what attackers know.")


class Recipe(Body):
    """A recipe of a hierarchy, as in a run file: {"build": "interval", "widths": [5, 10]}."""

    column: str = Field(max_length=1000)
    recipe: Json


class Edit(Body):
    """One change of a hierarchy's paths."""

    column: str = Field(max_length=1000)
    paths: list[list[str]] = Field(min_length=1, max_length=200_000)
    do: Literal["rename", "join", "move", "add_level", "remove_level"]
    level: int = Field(ge=0, le=64)
    labels: list[str] = Field(default_factory=list, max_length=100_000)
    to: str = Field(default="", max_length=400)


class Imported(Body):
    """The text of a hierarchy file."""

    column: str = Field(max_length=1000)
    text: str = Field(min_length=1, max_length=20_000_000)


class Kept(Body):
    """A hierarchy to declare: a recipe, or paths."""

    column: str = Field(max_length=1000)
    recipe: Json | None = None
    paths: list[list[str]] | None = Field(default=None, max_length=200_000)


class Search(Body):
    """Start a search of the study as it is declared; `seconds` is when to stop and keep the best so far."""

    name: str = Field(default="", max_length=100)
    seconds: float | None = Field(default=None, gt=0, le=1e6)


class ChannelSearch(Body):
    """Randomized response for one sensitive column: δ bounds the posterior probability of any category.

    What is not given is as the run file has it. `keep` are columns that are released beside the reports.
    """

    column: str = Field(max_length=1000)
    delta: float | None = Field(default=None, gt=0, le=1)
    gain: float | None = Field(default=None, gt=1, le=10**6)
    engine: Literal["exact", "square", "optrr"] | None = None
    points: int | None = Field(default=None, ge=1, le=200)
    epsilon: float | None = Field(default=None, gt=0, le=50)
    keep: list[Annotated[str, Field(max_length=1000)]] | None = Field(default=None, max_length=1000)


class GroupsSearch(Body):
    """Attack the areas of a group, then protect it; `attacker` instead of the run file's."""

    protect: bool = True


class Limits(Body):
    """A publisher's question: the best release within these limits."""

    max_loss: Share | None = None
    max_suppression: Share | None = None
    min_k: Least | None = None
    min_l: Least | None = None


class Look(Body):
    """What to look at before it is published: a point of a front, or with limits the answer to a question."""

    job: str = Field(pattern=IDENTIFIER)
    point: int = Field(ge=0, le=10**9)
    keep: list[Annotated[str, Field(max_length=1000)]] | None = Field(default=None, max_length=1000)
    limits: Limits | None = None


class Publication(Look):
    """Publish a point of a front, with limits the answer to a question, or a protected or disguised file; and why.

    `keep` are plain columns that go along with a disguised one, those of its search unless given; `accept` the rules of
    the policy it may break.
    """

    reason: str = Field(default="", max_length=4000)
    accept: dict[str, str] = Field(default_factory=dict, max_length=200)


def limits(
    max_loss: Annotated[Share | None, Query()] = None,
    max_suppression: Annotated[Share | None, Query()] = None,
    min_k: Annotated[Least | None, Query()] = None,
    min_l: Annotated[Least | None, Query()] = None,
) -> dict[str, float]:
    """Return the limits of a question, those that were given."""
    given = {"max_loss": max_loss, "max_suppression": max_suppression, "min_k": min_k, "min_l": min_l}
    return {name: value for name, value in given.items() if value is not None}


Limited = Annotated[dict[str, float], Depends(limits)]


def version(
    if_match: Annotated[str | None, Header(max_length=100, description="The ETag of the study as it was read.")] = None,
) -> str:
    """Return the version of a study that a change is meant for."""
    if if_match is None:
        raise UnversionedError(
            "the request does not state which version of the study it changes",
            expected="the header If-Match with the ETag that GET gave",
            remedy="read the study first",
        )
    return if_match.strip().removeprefix("W/").strip('"')


Version = Annotated[str, Depends(version)]


def explained(error: BaseException) -> dict[str, str]:
    """Return an error as a sentence with a remedy."""
    if isinstance(error, MemoryError | MemoryLimitError):
        return {
            "what": "the work needs more memory than a worker may use",
            "expected": "a table or a search that fits",
            "try": "sfumato serve --memory 16 gives each worker 16 GB",
        }
    if isinstance(error, SfumatoError):
        return {name: on_page(text) if isinstance(text, str) else text for name, text in error.as_dict().items()}
    if isinstance(error, OSError):
        return {
            "what": f"a file cannot be used: {error.strerror}",
            "expected": "paths that can be read and written",
            "try": "check the folder and the free space on its disk",
        }
    if os.environ.get("SFUMATO_DEBUG"):
        traceback.print_exception(error)
    return {
        "what": f"internal error: {type(error).__name__}",
        "expected": "",
        "try": "sfumato serve --debug prints the trace; please report it",
    }


def plain(given: Any) -> Any:
    """The same as JSON knows it: arrays as lists, infinities as null."""
    if isinstance(given, dict):
        return {str(name): plain(value) for name, value in given.items()}
    if isinstance(given, list | tuple):
        return [plain(value) for value in given]
    if isinstance(given, float):
        return given if math.isfinite(given) else None
    if hasattr(given, "tolist"):
        return plain(given.tolist())
    return given
