"""The limits of a question, and the best candidate within them.

The figures of a front's points that can be limited, and the names of such limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.base.arrays import Flags, Floats
from sfumato.base.text import number, percent
from sfumato.decide.offers import Offer, Offers
from sfumato.errors import InputError
from sfumato.front import Front, Objective, Point
from sfumato.measures.registry import DISTINCT_L, K, known_measures
from sfumato.measures.suppression import budget

NAMES = ("max_loss", "max_suppression", "min_k", "min_l")
SHARES = ("loss", "suppression", "suppressed", "risk")  # figures that are shares, by their name in a limit
SIZES = (K.name, "l", DISTINCT_L.name)  # figures that are at least 1
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Limits:
    """The limits that a release must keep. `max_suppression` of 1 is no limit."""

    rows: int
    max_loss: float | None = None
    max_suppression: float = 0.0
    min_k: float | None = None
    min_l: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.as_dict().items():
            if value is not None:
                check_limit(name, value)

    @property
    def allowed(self) -> int:
        """The number of records that may be suppressed."""
        return self.rows if self.max_suppression >= 1 else budget(self.max_suppression, self.rows)

    def without(self, name: str) -> Limits:
        """Return the same limits without one of them."""
        let_go: dict[str, Any] = {name: 1.0 if name == "max_suppression" else None}
        return replace(self, **let_go)

    def given(self) -> list[str]:
        """Return the names of the limits that are set."""
        return [name for name in NAMES if getattr(self, name) is not None and getattr(self, name) != 1.0]

    def met(self, offers: Offers) -> Flags:
        """Return which candidates keep every limit."""
        result = offers.suppressed <= self.allowed
        if self.max_loss is not None:
            result &= offers.loss <= self.max_loss + TOLERANCE
        if self.min_k is not None:
            result &= offers.k >= math.ceil(self.min_k)
        if self.min_l is not None:
            result &= offers.l >= math.ceil(self.min_l)
        return np.asarray(result)

    def as_dict(self) -> dict[str, float | None]:
        return {name: getattr(self, name) for name in NAMES}

    def says(self) -> str:
        """Return the limits in words."""
        parts = [
            f"at most {percent(self.max_suppression, 0.0)} suppressed"
            if self.max_suppression < 1
            else "any suppression"
        ]
        if self.max_suppression == 0:
            parts = ["nothing suppressed"]
        if self.max_loss is not None:
            parts.insert(0, f"loss of at most {percent(self.max_loss, 0.0)}")
        for name, title in (("min_k", K.label), ("min_l", DISTINCT_L.label)):
            if getattr(self, name) is not None:
                parts.append(f"{title} of at least {number(getattr(self, name))}")
        return ", ".join(parts)


def check_limit(name: str, value: float) -> None:
    """Raise if a limit is impossible: a share above 1, a k below 1. The error suggests the value that was meant."""
    figure = name.partition("_")[2]
    if figure in SHARES and not 0 <= value <= 1:
        guess = f"{name} = {value / 100:g}" if 1 < value <= 100 else ""
        raise InputError(f"{name} is {value:g}", expected="a share from 0 to 1", remedy=guess)
    if figure in SIZES and not 1 <= value < math.inf:
        raise InputError(f"{name} is {value:g}", expected="a number from 1")


@dataclass(frozen=True)
class Aim:
    """The objective within limits: most of one measure, a balance of k and ℓ, or least loss.

    With `both` the objective is the sum of log k and log ℓ, each as a share of its highest value. `second` decides
    between candidates that are equal in the first measure.
    """

    privacy: Objective
    both: bool = False
    least_loss: bool = False
    second: Objective | None = None

    def gain(self, offers: Offers) -> Floats:
        """Return the privacy of candidates on a scale where equal steps have equal worth."""
        if self.both:
            return np.asarray(np.log(np.maximum(offers.k, 1)) + np.log(np.maximum(offers.l, 1)))
        return self.privacy.gain(offers.values(self.privacy))

    def gain_of(self, offer: Offer) -> float:
        """Return the privacy of one candidate on the same scale."""
        if self.both:
            return math.log(max(offer.k, 1)) + math.log(max(offer.l or 1, 1))
        return float(self.privacy.gain(np.array([offer.value]))[0])

    def beats(self, offers: Offers, than: Offer) -> Flags:
        """Return which candidates have more privacy than one of them, and not less in any measure of the objective."""
        if self.both:
            level = than.l or 0
            more = (offers.k > than.k) | (offers.l > level)
            return np.asarray(more & (offers.k >= than.k) & (offers.l >= level))
        better = offers.values(self.privacy) - than.value
        return np.asarray(better > 1e-12 if self.privacy.direction == "max" else better < -1e-12)

    def best(self, offers: Offers, within: Flags) -> int | None:
        """Return the position of the best candidate among some, or None if there is none."""
        places = np.flatnonzero(within & np.isfinite(self.gain(offers)))
        if not len(places):
            return None
        some = offers.some(places)
        gain = _balance(some) if self.both else self.gain(some)
        # Losses equal to 12 digits are ties, because the same loss may be summed in another order.
        # Ties go to a point that the search evaluated, then to the first.
        loss = np.round(some.loss, 12)
        other = np.zeros(len(some)) if self.second is None else -some.values(self.second)
        keys = (-gain, other, loss) if self.least_loss else (loss, other, -gain)
        return int(places[np.lexsort((some.point, ~some.searched, some.suppressed, *keys))[0]])


def _balance(offers: Offers) -> Floats:
    size, level = np.log(np.maximum(offers.k, 1)), np.log(np.maximum(offers.l, 1))
    return np.asarray(size / max(size.max(), 1e-9) + level / max(level.max(), 1e-9))


def choices(offers: Offers, within: Flags, privacy: Objective) -> list[Offer]:
    """Return the maximal pairs (k, ℓ) within limits, with rising ℓ: for each ℓ the largest k, then the least loss."""
    places = np.flatnonzero(within & (offers.l > 0))
    order = places[np.lexsort((np.round(offers.loss[places], 12), -offers.k[places], -offers.l[places]))]
    result, limit = [], 0
    for position in order.tolist():
        if offers.k[position] > limit:
            limit = int(offers.k[position])
            result.append(offers.at(position, privacy))
    return result[::-1]


ALIASES = {"error": "mse"}
COSTS = ("loss", "suppressed")  # figures that are costs without being measures


def figures(front: Front) -> dict[str, Callable[[Point], float]]:
    """Return every figure that can be limited."""

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
    """Return the class size that a recoding guarantees."""
    known = point.values.get(K.name)
    return float(point.recoding_plan.suppress_below if known is None else known)


def protects(front: Front, figure: str) -> bool:
    """Return whether a figure measures privacy, not its cost."""
    own = {objective.name: objective.protects for objective in front.objectives}
    registered = known_measures()
    if figure in own:
        return own[figure]
    return registered[figure].kind == "privacy" if figure in registered else figure not in COSTS


def larger_is_better(front: Front, figure: str) -> bool:
    """Return whether the larger value of a figure is the better one."""
    own = {objective.name: objective.direction for objective in front.objectives}
    registered = known_measures()
    if figure in own:
        return own[figure] == "max"
    return figure in registered and registered[figure].direction == "max"


def limit_names(front: Front) -> list[str]:
    """Return the names of the limits of a front, each in the direction in which it protects or saves loss.

    >>> import sfumato as sf
    >>> limit_names(sf.search(sf.read(sf.sample("adult"))))
    ['min_k', 'max_general_loss', 'max_loss', 'max_suppressed', 'max_risk']
    """
    titles = {figure: alias for alias, figure in ALIASES.items()}
    return [f"{'min' if larger_is_better(front, one) else 'max'}_{titles.get(one, one)}" for one in figures(front)]


def limit_example(front: Front) -> str:
    """Return a limit that points of a front meet: the first figure's at the point in the middle."""
    middle = front.points[len(front.points) // 2]
    for name, read in zip(limit_names(front), figures(front).values(), strict=True):
        if math.isfinite(read(middle)):
            return setting(name, read(middle))
    return ""


def setting(name: str, value: float) -> str:
    """Return a limit with a value as the user writes it, rounded so that the value still meets it.

    >>> setting("max_loss", 0.123456), setting("min_k", 5.0)
    ('max_loss = 0.1235', 'min_k = 5')
    """
    if value == int(value):
        return f"{name} = {int(value)}"
    digits = 10.0 ** (3 - math.floor(math.log10(abs(value)))) if value and math.isfinite(value) else 1.0
    least = name.startswith("min_")
    rounded = math.floor(value * digits + 1e-9) if least else math.ceil(value * digits - 1e-9)
    return f"{name} = {rounded / digits:g}"
