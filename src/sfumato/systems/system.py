"""What a system offers. Everything that works for all systems is written against this, and nothing else of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sfumato.data.frequency import FrequencyTable
from sfumato.data.policy import Acceptance
from sfumato.decide import Choice
from sfumato.front import Front
from sfumato.plans.plan import Plan
from sfumato.release.publish import Release
from sfumato.study import Study
from sfumato.systems.run import Progress, Run


@dataclass(frozen=True)
class Verdict:
    """What a search achieved: sentences for its user, and whether the request was met."""

    sentences: tuple[str, ...] = ()
    met: bool = True


@dataclass(frozen=True)
class Publishing:
    """How a release is to be made: the reason of the choice, rules that may be broken, the name of the file, the
    folder of the ledger (the user's own unless given), and who is told how far it is."""

    reason: str = ""
    accept: Mapping[str, str] | Sequence[Acceptance] = ()
    name: str | None = None
    state: str | Path | None = None
    progress: Progress | None = None


@dataclass(frozen=True)
class Table:
    """Figures of a release for a terminal: a title, and rows of a name and a value."""

    title: str
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Figures:
    """What was measured on the file of a release, for a terminal: tables, and sentences about the whole file."""

    tables: Sequence[Table]
    sentences: Sequence[str] = ()


class System(Protocol):
    """What a system offers: a search that gives a front, how its plans are read back, and its words for them."""

    name: str
    plan: type[Plan]
    plans: str  # what its plans are called
    not_applied: str  # why its plans cannot be used on another table; empty where they can
    verified_with: str  # what verify needs to compare everything; empty where it needs only the release

    def unit(self, study: Study) -> str:
        """What the progress of its search counts."""

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:
        """Find the front of a study; `table` is the frequency table, where the system works on one and has it."""

    def verdict(self, front: Front) -> Verdict:
        """What the search achieved, in sentences, and whether it did what it was to do."""

    def publish(self, choice: Choice, folder: str | Path, how: Publishing) -> Release:
        """Write the plan of a point as a release."""

    def measured(self, manifest: Mapping[str, Any]) -> Figures:
        """What was measured on the file of a release, for a terminal."""

    def page(self, front: Front, chosen: int | None, compare: tuple[int, int] | None) -> str:
        """The front as a page."""

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        """The points as columns of a table for a terminal, beyond their ids and objectives."""
