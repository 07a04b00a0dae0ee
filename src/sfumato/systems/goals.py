"""A measure as a goal of a search, by the name a run file gives it."""

from __future__ import annotations

from sfumato.errors import StudyError, nearest
from sfumato.measures.lattice import Goal
from sfumato.measures.registry import known_measures, measure
from sfumato.study import Study


def goal_of(study: Study, name: str, direction: str | None, limit: float | None = None) -> Goal:
    if name not in known_measures():
        raise StudyError(f'unknown objective "{name}"', expected="a measure", remedy=nearest(name, known_measures()))
    found = measure(name).with_parameters(study.measures.get(name, {}))
    return Goal(found, direction or found.direction, limit)
