"""The manifest of a release: what every system writes down, and under `own` what only one of them knows."""

from __future__ import annotations

from typing import Any, TypedDict


class SourceEntry(TypedDict):
    """The table that a release was made from."""

    name: str
    sha256: str
    rows_read: int


class Content(TypedDict):
    """Everything that a manifest says before its files are listed.

    `unit` says what the figures count, with the publisher's reason where rows are stated to be persons. `point` is the
    chosen point with its `id`, `columns` the released columns in order, `own` the entries of the system.
    """

    format: int
    created: str
    system: str
    source: SourceEntry
    data: str
    versions: dict[str, str]
    run_file: str
    unit: dict[str, str]
    reason: str
    point: dict[str, Any]
    columns: list[str]
    records: int
    suppressed: int
    left_out: int
    released: int
    loss: float
    figures: dict[str, Any]
    whole: dict[str, Any]
    policy: dict[str, Any]
    accepted: list[dict[str, Any]]
    warnings: list[str]
    dictionary: dict[str, Any]
    hierarchies: dict[str, dict[str, Any]]
    own: dict[str, Any]


class Manifest(Content):
    """A whole manifest: the digest of every other file of the folder, and that of its own content."""

    files: dict[str, str]
    checksum: str
