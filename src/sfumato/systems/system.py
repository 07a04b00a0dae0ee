"""What a system offers. Everything that works for all systems is written against this, and nothing else of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a search waits for nothing that only a release needs
    from sfumato.decide import Choice
    from sfumato.front import Front
    from sfumato.plans.plan import Plan
    from sfumato.release.draft import Draft
    from sfumato.release.manifest import Manifest
    from sfumato.release.verify import Verifier
    from sfumato.runtime.stages import Progress
    from sfumato.study import Study
    from sfumato.study.policy import Acceptance
    from sfumato.systems.applying import Applying
    from sfumato.systems.run import Run
    from sfumato.tables.frequency import FrequencyTable


@dataclass(frozen=True)
class Verdict:
    """What a search achieved: sentences for its user, and whether the request was met."""

    sentences: tuple[str, ...] = ()
    met: bool = True


@dataclass(frozen=True)
class Publishing:
    """How a release is to be made: rules that may be broken, name and format of the file, who is told how far it is."""

    accept: Mapping[str, str] | Sequence[Acceptance] = ()
    name: str | None = None
    progress: Progress | None = None
    format: str | None = None


class System(Protocol):
    """What a system offers: a search that gives a front, how its plans are read back, and its words for them."""

    name: str
    plan: type[Plan]
    plans: str  # what its plans are called
    apply: Callable[[Applying], Draft] | None  # how its plans are applied to another table, where that is its own way

    @property
    def verifier(self) -> Verifier:
        """How its releases are checked again."""

    def unit(self, study: Study) -> str:
        """What the progress of its search counts."""

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:
        """Find the front of a study; `table` is the frequency table, where the system works on one and has it."""

    def verdict(self, front: Front) -> Verdict:
        """What the search achieved, in sentences, and whether it did what it was to do."""

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        """The release of a point, to be written, read back and measured."""

    def figures(self, manifest: Manifest) -> Mapping[str, list[list[str]]]:
        """What was measured on a released file, as rows of tables by their titles."""

    def page(
        self,
        front: Front,
        chosen: int | None,
        compare: tuple[int, int] | None,
        table: FrequencyTable | None = None,
    ) -> str:
        """The front as a page."""

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        """The points as columns of a table for a terminal, beyond their ids and objectives."""
