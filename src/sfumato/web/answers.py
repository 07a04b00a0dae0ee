"""What the interface answers where programs count on it: the figures over all released columns, releases, verdicts."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


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
    figures: dict[str, dict[str, Any]]
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
    point: dict[str, Any]
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
