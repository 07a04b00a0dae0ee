"""What the page may send. Unknown keys are refused, numbers have ranges, names have lengths."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from sfumato.web.places import UnversionedError

StudyId = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="The id of a study.")]
JobId = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="The id of a job.")]
ReleaseId = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="The name of a release.")]
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
    data: dict[str, Any] | None = None
    columns: dict[str, dict[str, Any]] | None = None
    population: dict[str, Any] | None = Field(default=None, description="As [data]; {} for none.")
    search: dict[str, Any] | None = None
    measures: dict[str, dict[str, float | str]] | None = None
    groups: dict[str, Any] | None = Field(default=None, description="The group, its areas and what attackers know.")


class Recipe(Body):
    """A recipe of a hierarchy, as in a run file: {"build": "interval", "widths": [5, 10]}."""

    column: str = Field(max_length=1000)
    recipe: dict[str, Any]


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
    recipe: dict[str, Any] | None = None
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

    job: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    point: int = Field(ge=0, le=10**9)
    keep: list[Annotated[str, Field(max_length=1000)]] | None = Field(default=None, max_length=1000)
    limits: Limits | None = None


class Publication(Body):
    """Publish a point of a front, with limits the answer to a question, or a protected or disguised file; and why.

    `keep` are plain columns that go along with a disguised one, those of its search unless given; `accept` the rules of
    the policy it may break.
    """

    job: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    point: int = Field(ge=0, le=10**9)
    reason: str = Field(default="", max_length=4000)
    accept: dict[str, str] = Field(default_factory=dict, max_length=200)
    keep: list[Annotated[str, Field(max_length=1000)]] | None = Field(default=None, max_length=1000)
    limits: Limits | None = None


def limits(
    max_loss: Annotated[Share | None, Query()] = None,
    max_suppression: Annotated[Share | None, Query()] = None,
    min_k: Annotated[Least | None, Query()] = None,
    min_l: Annotated[Least | None, Query()] = None,
) -> dict[str, float]:
    """The limits of a question, those that were given."""
    given = {"max_loss": max_loss, "max_suppression": max_suppression, "min_k": min_k, "min_l": min_l}
    return {name: value for name, value in given.items() if value is not None}


Limited = Annotated[dict[str, float], Depends(limits)]


def version(
    if_match: Annotated[str | None, Header(max_length=100, description="The ETag of the study as it was read.")] = None,
) -> str:
    """The version of a study that a change is meant for."""
    if if_match is None:
        raise UnversionedError(
            "the request does not state which version of the study it changes",
            expected="the header If-Match with the ETag that GET gave",
            remedy="read the study first",
        )
    return if_match.strip().removeprefix("W/").strip('"')


Version = Annotated[str, Depends(version)]
