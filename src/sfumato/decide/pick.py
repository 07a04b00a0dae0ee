"""Choose a point of a front: by privacy, by loss, by its knee, or by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.data.arrays import Floats
from sfumato.errors import InputError, UnreachableError
from sfumato.front import Front, Objective, Point
from sfumato.measures.registry import known_measures
from sfumato.measures.standard import K


@dataclass(frozen=True)
class Choice:
    """A point of a front and why it was chosen."""

    front: Front
    point: Point
    reason: str


def pick(
    front: Front,
    *,
    max_loss: float | None = None,
    min_k: float | None = None,
    max_risk: float | None = None,
    knee: bool = False,
    point: int | None = None,
) -> Choice:
    """Choose a point: most privacy within a loss limit, least loss within a k or risk limit, the knee, or by id.

    `max_risk` is the highest prosecutor risk that is allowed: 0.2 asks for k of 5.
    """
    given = [max_loss is not None, min_k is not None or max_risk is not None, knee, point is not None]
    if sum(given) != 1:
        raise InputError(
            "nothing to choose by" if not any(given) else "several ways to choose at once",
            expected="one of: max_loss, min_k or max_risk, knee, point",
            remedy="--max-loss 0.3",
        )
    if point is not None:
        return Choice(front, front.point(point), f"point {point} was asked for")
    if knee:
        return Choice(front, front.points[knee_of(front)], "the knee: beyond it, each step of privacy costs more loss")
    if max_loss is not None:
        return _most_privacy(front, max_loss)
    least = 1.0 / max_risk if max_risk is not None and max_risk > 0 else (min_k if min_k is not None else float("inf"))
    return _least_loss(front, max(least, min_k or 0.0))


def knee_of(front: Front) -> int:
    """The point farthest from the line between the ends, with privacy on a logarithmic scale.

    >>> from sfumato.decide import distances_to_chord
    >>> int(np.argmax(distances_to_chord(np.array([0.0, 0.8, 1.0]), np.array([0.0, 0.2, 1.0]))))
    1
    """
    if len(front.points) < 3:
        return 0
    privacy = _privacy_objective(front)
    sign = 1.0 if privacy.direction == "max" else -1.0
    gain = sign * np.log1p(np.array([abs(point.values[privacy.name]) for point in front.points], dtype=np.float64))
    loss = np.array([point.loss for point in front.points])
    return int(np.argmax(distances_to_chord(gain, loss)))


def distances_to_chord(gain: Floats, loss: Floats) -> Floats:
    """How far each point lies on the good side of the line between the ends, both axes scaled to [0, 1]."""
    spans = [np.ptp(gain) or 1.0, np.ptp(loss) or 1.0]
    return np.asarray((gain - gain.min()) / spans[0] - (loss - loss.min()) / spans[1])


def _privacy_objective(front: Front) -> Objective:
    for objective in front.objectives:
        if known_measures()[objective.name].kind == "privacy":
            return objective
    raise InputError(
        "the front has no privacy objective",
        expected="k or another privacy measure among the objectives",
        remedy="--point ID",
    )


def _most_privacy(front: Front, max_loss: float) -> Choice:
    privacy = _privacy_objective(front)
    within = [point for point in front.points if point.loss <= max_loss + 1e-12]
    if not within:
        nearest = min(front.points, key=lambda point: point.loss)
        raise UnreachableError(
            f"no point loses at most {max_loss:.1%}",
            expected="a loss limit that a point meets",
            remedy=f"--max-loss {np.ceil(nearest.loss * 1000) / 1000:g} reaches point {nearest.id}",
        )
    sign = 1.0 if privacy.direction == "max" else -1.0
    best = max(within, key=lambda point: (sign * point.values[privacy.name], -point.loss))
    return Choice(front, best, f"most {privacy.name} with a loss of at most {max_loss:.1%}")


def _least_loss(front: Front, least: float) -> Choice:
    kept = [point for point in front.points if _k(point) >= least - 1e-9]
    if not kept:
        most = max(front.points, key=_k)
        raise UnreachableError(
            f"no point has k of {least:g}", expected="a k that a point has", remedy=f"--min-k {_k(most):g} is the most"
        )
    chosen = min(kept, key=lambda point: (point.loss, -_k(point)))
    return Choice(front, chosen, f"least loss with k of at least {least:g}")


def _k(point: Point) -> float:
    """The class size that a point guarantees."""
    return float(point.values.get(K.name, point.plan.suppress_below))
