"""What a search is asked for: measures as goals, by the names a run file gives them; and what can be checked of it."""

from __future__ import annotations

import math

from sfumato.errors import StudyError, nearest, shortened
from sfumato.measures.goal import Goal
from sfumato.measures.registry import measure, names
from sfumato.measures.standard import K
from sfumato.study import ALGORITHMS, SearchSettings, Study
from sfumato.tables.frequency import FrequencyTable


def goal_of(study: Study, name: str, direction: str | None, limit: float | None = None) -> Goal:
    """A measure to seek or to limit, by its name or an alias, with the parameters that the run file gives it."""
    if name not in names():
        raise StudyError(f'unknown objective "{name}"', expected="a measure", remedy=nearest(name, names()))
    chosen = measure(name).with_settings(study.measures)
    return Goal(chosen, direction or chosen.direction, limit)


def demanded_size(settings: SearchSettings) -> int:
    """The class size that is demanded and not sought: exactly the classes below it are suppressed; 0 for none."""
    if K.name not in settings.constraints or K.name in [objective.name for objective in settings.named]:
        return 0
    return math.ceil(settings.constraints[K.name])


def check_measures(study: Study) -> None:
    """Raise unless every measure that is given parameters is known and has them."""
    for name, given in study.measures.items():
        measure(name).with_parameters(given)


def check_algorithm(settings: SearchSettings, system: str) -> None:
    """Raise unless the algorithm is one of the system's."""
    known = ALGORITHMS[system]
    if settings.method not in known:
        raise StudyError(
            f'algorithm = "{settings.method}" for {system}',
            expected="one of: " + ", ".join(known),
            remedy=f"leave algorithm out to take {known[0]}",
        )


def check_weights(settings: SearchSettings, table: FrequencyTable) -> None:
    """Raise unless weights are of quasi-identifiers."""
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
    """A whole number as one."""
    return int(value) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else float(value)
