"""A release while it is made: what its system knows of it, and what was measured on the file that was written."""

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
    """What was measured on a written file, and what it breaks of the policy.

    `columns` are those of the file in order, `own` the entries that only the system itself reads, `left_out` the
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
    """What a system supplies so that one of its plans can be published.

    `fingerprint` is that of the table the plan was made for, `data` the name of the released file in the folder,
    `inherited` what an earlier release with this plan had accepted. The methods are called once each, in this order;
    the first two and the last two without an engine, for what opens its own.
    """

    system: str
    study: Study
    source: Source
    fingerprint: str
    data: str
    inherited: Sequence[Inherited] = ()

    def foresee(self) -> Sequence[Finding]:
        """What the plan is known to break of the policy before anything is written, by its classes."""
        return ()

    def prepare(self, folder: Path) -> None:  # noqa: B027
        """Write what it takes to read the file back, as far as that needs no engine of its own."""

    @abstractmethod
    def describe(self, engine: Engine) -> Description | None:
        """Make the engine ready, with the source as `raw`; what the ledger compares, or None for a mere test."""

    @abstractmethod
    def write(self, engine: Engine, folder: Path) -> Study:
        """Write the data file, and the run file that reads it back."""

    @abstractmethod
    def compare(self, engine: Engine, own: Study) -> None:
        """Read the file back as its run file says, and raise unless it holds what was meant."""

    @abstractmethod
    def measure(self, own: Study, /) -> Measured:
        """Measure the written file, and raise unless its figures are those of the plan."""

    @abstractmethod
    def pages(self, folder: Path, manifest: Content) -> Mapping[str, str]:
        """The reports and other texts that are drawn from the manifest, by their names in the folder."""
