"""The interface of a system. Code for all systems uses this interface and nothing else of a system.

The module also has the checks of what a search is asked for: objectives, weights, algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sfumato.errors import StudyError, nearest, shortened
from sfumato.measures.measure import Goal
from sfumato.measures.registry import K, measure, names
from sfumato.study import ALGORITHMS, SearchSettings, Study
from sfumato.tables.frequency import FrequencyTable

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.base.progress import Progress
    from sfumato.data.settings import EngineOptions
    from sfumato.decide.pick import Choice
    from sfumato.front import Front
    from sfumato.methods.run import Run
    from sfumato.plans.recodings import Plan
    from sfumato.release.draft import Draft, Verifier
    from sfumato.release.manifest import Manifest
    from sfumato.study.sections import Acceptance


@dataclass(frozen=True)
class Verdict:
    """The result of a search in sentences, and whether the request was met."""

    sentences: tuple[str, ...] = ()
    met: bool = True


@dataclass(frozen=True)
class Publishing:
    """How a release is made: rules that may be broken, name and format of the file, and the listener for progress."""

    accept: Mapping[str, str] | Sequence[Acceptance] = ()
    name: str | None = None
    progress: Progress | None = None
    format: str | None = None


@dataclass(frozen=True)
class Applying:
    """A request to apply a plan: its folder, the point if that is a front, the new table and how to read it."""

    folder: Path
    point: int | None
    table: object
    unseen: str
    accept: Mapping[str, str] | Sequence[Acceptance]
    engine: str
    options: EngineOptions
    run: str | Path | None


@dataclass(frozen=True)
class Abilities:
    """What a method can do beyond what all of them can. Other folders ask for this, and not for the name."""

    resumable: bool = False  # its search keeps a state on disk, from which it can be continued
    space: str | None = None  # what the size of its search space counts, where the cost is estimated beforehand
    bounded: bool = False  # a search can try the whole space, so that its size bounds the cost
    proves_floor: bool = False  # its points prove what no front of the same study loses less than
    draws: bool = False  # it can exchange records between classes by a draw


class System(Protocol):
    """The interface of a system: a search that returns a front, how its plans are read back, and its words for them."""

    name: str
    abilities: Abilities
    plan: type[Plan]
    plans: str  # what its plans are called
    apply: Callable[[Applying], Draft] | None  # applies its plans to another table, if it has its own way

    @property
    def verifier(self) -> Verifier:
        """How its releases are verified."""

    def unit(self, study: Study) -> str:
        """Return what the progress of its search counts."""

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:
        """Find the front of a study; `table` is the frequency table, if the system uses one and it was read before."""

    def verdict(self, front: Front) -> Verdict:
        """Return what the search achieved, in sentences, and whether the request was met."""

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        """Return the draft of a point, to be written, read back and measured."""

    def figures(self, manifest: Manifest) -> Mapping[str, list[list[str]]]:
        """Return the figures measured on a released file, as rows of tables by their titles."""

    def page(
        self,
        front: Front,
        chosen: int | None,
        compare: tuple[int, int] | None,
        table: FrequencyTable | None = None,
    ) -> str:
        """Return the front as a page."""

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        """Return the points as columns of a table for a terminal, in addition to their ids and objectives."""


def goal_of(study: Study, name: str, direction: str | None, limit: float | None = None) -> Goal:
    """Return a measure as an objective or a constraint, by name or alias, with the parameters of the run file."""
    if name not in names():
        raise StudyError(f'unknown objective "{name}"', expected="a measure", remedy=nearest(name, names()))
    chosen = measure(name).with_settings(study.measures)
    return Goal(chosen, direction or chosen.direction, limit)


def demanded_size(settings: SearchSettings) -> int:
    """Return the class size below which exactly all classes are suppressed; 0 if k is an objective or has no limit."""
    if K.name not in settings.constraints or K.name in [objective.name for objective in settings.named]:
        return 0
    return math.ceil(settings.constraints[K.name])


def check_measures(study: Study) -> None:
    """Raise unless every measure with parameters is known and accepts them."""
    for name, given in study.measures.items():
        measure(name).with_parameters(given)


def check_algorithm(settings: SearchSettings, system: str) -> None:
    """Raise unless the algorithm belongs to the system."""
    known = ALGORITHMS[system]
    if settings.method not in known:
        raise StudyError(
            f'algorithm = "{settings.method}" for {system}',
            expected="one of: " + ", ".join(known),
            remedy=f"leave algorithm out to take {known[0]}",
        )


def check_weights(settings: SearchSettings, table: FrequencyTable) -> None:
    """Raise unless all weights are for quasi-identifiers and one is above 0."""
    unknown = [name for name in settings.weights if name not in table.columns]
    if unknown:
        raise StudyError(
            f"weights for {shortened(unknown)}",
            expected="quasi-identifiers",
            remedy=nearest(unknown[0], table.columns),
        )
    if not any(settings.weights.get(name, 1.0) for name in table.columns):
        raise StudyError("every weight is 0", expected="at least one quasi-identifier with a weight above 0")


def number(value: float) -> float:
    """Return a float as an integer if it is a whole number."""
    return int(value) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else float(value)
