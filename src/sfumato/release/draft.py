"""The draft of a release: what its method supplies, and what was measured on the written file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.auditing.uniqueness import WholeFile
from sfumato.data.engine import Engine
from sfumato.data.source import Source
from sfumato.release.history.description import Description
from sfumato.release.manifest import Content
from sfumato.release.policy import Finding, Inherited
from sfumato.study import Study


@dataclass(frozen=True)
class Measured:
    """The measurements of a written file, and what violates the policy.

    `columns` are those of the file in order, `own` the entries that only the method itself reads, and `left_out` the
    records of the source that the missing rule left out.
    """

    columns: Sequence[str]
    rows_read: int
    records: int
    suppressed: int
    loss: float
    figures: Mapping[str, Any]
    whole: WholeFile
    point: Mapping[str, Any]
    dictionary: Mapping[str, Any]
    own: Mapping[str, Any]
    findings: Sequence[Finding] = ()
    warnings: Sequence[str] = ()
    left_out: int = 0
    hierarchies: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(eq=False, kw_only=True)
class Draft(ABC):
    """The part of publishing that a method supplies.

    `fingerprint` belongs to the table that the plan was made for, `data` is the name of the released file in the
    folder, and `inherited` holds the acceptances of an earlier release with this plan. The methods are called once
    each, in this order. The first two and the last two get no engine, because they may open one themselves.
    """

    system: str
    study: Study
    source: Source
    fingerprint: str
    data: str
    inherited: Sequence[Inherited] = ()

    def foresee(self) -> Sequence[Finding]:
        """Return the policy findings that follow from the classes, before anything is written."""
        return ()

    def prepare(self, folder: Path) -> None:  # noqa: B027
        """Write the files that are needed to read the released file, as far as they need no shared engine."""

    @abstractmethod
    def describe(self, engine: Engine) -> Description | None:
        """Prepare the engine, with the source as `raw`. Return what the ledger compares, or None for a mere test."""

    @abstractmethod
    def write(self, engine: Engine, folder: Path) -> Study:
        """Write the data file, and the run file that reads it back."""

    @abstractmethod
    def compare(self, engine: Engine, own: Study) -> None:
        """Read the file by its run file, and raise unless it holds the intended rows."""

    @abstractmethod
    def measure(self, own: Study, /) -> Measured:
        """Measure the written file, and raise unless its figures are those of the plan."""

    @abstractmethod
    def pages(self, folder: Path, manifest: Content) -> Mapping[str, str]:
        """Return the reports and other texts that are made from the manifest, by their names in the folder."""
