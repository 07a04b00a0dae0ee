"""The figures of a front's points that can be limited, and what such limits are called."""

from __future__ import annotations

import math
from collections.abc import Callable

from sfumato.front import Front, Point
from sfumato.measures.registry import known_measures
from sfumato.measures.standard import K

ALIASES = {"error": "mse"}
COSTS = ("loss", "suppressed")  # of figures that are no measures, those that are paid


def figures(front: Front) -> dict[str, Callable[[Point], float]]:
    """Every figure that can be limited."""

    def reader(name: str) -> Callable[[Point], float]:
        return lambda point: float(point.values[name])

    result = {name: reader(name) for name in front.points[0].values}
    result["loss"] = lambda point: point.loss
    if front.recodes:
        result["suppressed"] = lambda point: front.suppressed_share(point)
        result[K.name] = class_size
        result["risk"] = lambda point: 1.0 / max(class_size(point), 1.0)
    elif K.name in result:
        result["suppressed"] = lambda point: front.suppressed_share(point)
        result["risk"] = lambda point: 1.0 / max(float(point.values[K.name]), 1.0)
    return result


def class_size(point: Point) -> float:
    """The class size that a recoding guarantees."""
    known = point.values.get(K.name)
    return float(point.recoding_plan.suppress_below if known is None else known)


def protects(front: Front, figure: str) -> bool:
    own = {objective.name: objective.protects for objective in front.objectives}
    registered = known_measures()
    if figure in own:
        return own[figure]
    return registered[figure].kind == "privacy" if figure in registered else figure not in COSTS


def larger_is_better(front: Front, figure: str) -> bool:
    own = {objective.name: objective.direction for objective in front.objectives}
    registered = known_measures()
    if figure in own:
        return own[figure] == "max"
    return figure in registered and registered[figure].direction == "max"


def limit_names(front: Front) -> list[str]:
    """The limits that a front knows, each on the side on which it protects or spares.

    >>> import sfumato as sf
    >>> limit_names(sf.search(sf.read(sf.sample("adult"))))
    ['min_k', 'max_general_loss', 'max_loss', 'max_suppressed', 'max_risk']
    """
    titles = {figure: alias for alias, figure in ALIASES.items()}
    return [f"{'min' if larger_is_better(front, one) else 'max'}_{titles.get(one, one)}" for one in figures(front)]


def limit_example(front: Front) -> str:
    """A limit that points of a front meet, as it is given: the first figure's at the point in the middle."""
    middle = front.points[len(front.points) // 2]
    for name, read in zip(limit_names(front), figures(front).values(), strict=True):
        if math.isfinite(read(middle)):
            return setting(name, read(middle))
    return ""


def setting(name: str, value: float) -> str:
    """A limit with a value, as it is given; rounded so that the value still meets it.

    >>> setting("max_loss", 0.123456), setting("min_k", 5.0)
    ('max_loss = 0.1235', 'min_k = 5')
    """
    if value == int(value):
        return f"{name} = {int(value)}"
    digits = 10.0 ** (3 - math.floor(math.log10(abs(value)))) if value and math.isfinite(value) else 1.0
    least = name.startswith("min_")
    rounded = math.floor(value * digits + 1e-9) if least else math.ceil(value * digits - 1e-9)
    return f"{name} = {rounded / digits:g}"
