"""What a search over cuts is asked for: one of the four problems, or any objectives under a rule of suppression."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import StudyError
from sfumato.front import Objective
from sfumato.measures.facts import Form
from sfumato.measures.measure import Measure
from sfumato.measures.registry import names
from sfumato.measures.standard import (
    DISTINCT_L,
    GENERAL_LOSS,
    GENERALIZATION_LOSS,
    SUPPRESSION_LOSS,
    WEIGHTED_K,
    WEIGHTED_L,
    K,
)
from sfumato.study import SearchSettings
from sfumato.systems.goals import demanded_size


@dataclass(frozen=True)
class Asked:
    """A problem in plain words: the rule of suppression, whether it goes by diversity, and the objectives."""

    rule: str
    by_diversity: bool
    objectives: tuple[Objective, ...]

    @classmethod
    def of(cls, settings: SearchSettings) -> Asked:
        """The four problems of the paper, their ℓ versions (prefer = "l" in 1 to 3), or any objectives."""
        diverse = Form(settings.prefer) is Form.DIVERSITY
        if settings.problem is None:
            known = names()  # what is unknown is refused with the goals
            named = tuple(Objective(known.get(o.name, o.name), o.direction or "") for o in settings.named)
            usual = "within" if settings.max_suppression else "none"
            if demanded_size(settings):
                usual = "demanded"  # as on a lattice: what is too small goes, and nothing else
            rule: str = settings.suppression or usual
            return cls(rule, diverse and rule != "safe", named)
        _refuse_mixed(settings)
        if settings.problem == 4:
            rule = f"printed_{settings.prefer}" if settings.reproduction else "safe"
            return cls(rule, False, _sought(K, DISTINCT_L, GENERAL_LOSS))
        mean = WEIGHTED_L if diverse else WEIGHTED_K
        if settings.problem == 1:
            return cls("none", diverse, _sought(mean, GENERAL_LOSS))
        if settings.problem == 2:
            return cls("within", diverse, _sought(DISTINCT_L if diverse else K, GENERAL_LOSS))
        first = Objective(mean.name, mean.direction, "before suppression")
        return cls("below_mean", diverse, (first, *_sought(GENERALIZATION_LOSS, SUPPRESSION_LOSS)))


def _sought(*measures: Measure) -> tuple[Objective, ...]:
    return tuple(Objective(measure.name, measure.direction) for measure in measures)


def _refuse_mixed(settings: SearchSettings) -> None:
    given = settings.model_fields_set
    if "objectives" in given and settings.named != SearchSettings().named:
        raise StudyError(
            f"problem = {settings.problem} and objectives",
            expected="only one of them: a problem has its own objectives",
            remedy="leave problem out",
        )
    if settings.suppression is not None:
        raise StudyError(
            f'problem = {settings.problem} and suppression = "{settings.suppression}"',
            expected="only one of them: a problem has its own rule of suppression",
            remedy="leave suppression out, or problem",
        )
    if settings.problem == 1 and settings.max_suppression:
        raise StudyError(
            f"problem = 1 with max_suppression = {settings.max_suppression}",
            expected="no suppression: that is problem 1",
            remedy="problem = 2, or max_suppression = 0",
        )
