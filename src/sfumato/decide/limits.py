"""The limits of a question, and the best candidate within them.

The figures of a front's points that can be limited, and the names of such limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.base.text import number, percent
from sfumato.decide.offers import Offer, Offers
from sfumato.errors import InputError
from sfumato.front import Front, Objective, Point
from sfumato.measures.registry import DISTINCT_L, K, known_measures
from sfumato.measures.suppression import budget

NAMES = ("max_loss", "max_suppression", "min_k", "min_l")
SHARES = ("loss", "suppression", "suppressed", "risk")  # figures that are shares, by their name in a limit
SIZES = (K.name, "l", DISTINCT_L.name)  # figures that are at least 1
ALIASES = {"error": "mse"}
COSTS = ("loss", "suppressed")  # figures that are costs without being measures
SAID = {"loss": "a loss", "mse": "an error", "cost": "a cost", "suppressed": "a share of suppressed records"}
SAID |= {"risk": "a prosecutor risk", "epsilon": "ε", "findings": "findings"}
ROUNDING = 1e-12
NOTHING = "nothing suppressed"


@dataclass(frozen=True)
class Limit:
    """A figure with its better direction and the limit that it must keep: `min_k` of 5, `max_loss` of 0.3.

    A value may miss the limit by the `tolerance`, a share of it.
    """

    name: str
    limit: float
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Raise if the limit is impossible: a share above 1, a k below 1. The error suggests what was meant."""
        name, value, figure = self.name, self.limit, self.name.partition("_")[2]
        if figure in SHARES and not 0 <= value <= 1:
            guess = f"{name} = {value / 100:g}" if 1 < value <= 100 else ""
            raise InputError(f"{name} is {value:g}", expected="a share from 0 to 1", remedy=guess)
        if figure in SIZES and not 1 <= value < math.inf:
            raise InputError(f"{name} is {value:g}", expected="a number from 1")

    @property
    def figure(self) -> str:
        """The name of the figure."""
        figure = self.name.partition("_")[2]
        return ALIASES.get(figure, figure)

    @property
    def least(self) -> bool:
        """Whether the limit is the least value, not the largest one."""
        return self.name.startswith("min_")

    def violation(self, values: Floats | Counts64) -> Floats:
        """Return by how much values miss the limit; at most 0 where it is met."""
        return np.asarray((self.limit - values) * (1.0 if self.least else -1.0))

    def met(self, values: Floats | Counts64) -> Flags:
        # the absolute part: an error is far below 1
        return np.asarray(self.violation(values) <= self.tolerance * abs(self.limit) + ROUNDING)

    def clause(self) -> str:
        shown = percent(self.limit, 0.0) if self.figure in COSTS else f"{self.limit:g}"
        return f"{SAID.get(self.figure, self.figure)} of at {'least' if self.least else 'most'} {shown}"


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
                Limit(name, value)  # raises if it is impossible

    @property
    def allowed(self) -> int:
        """The number of records that may be suppressed."""
        return self.rows if self.max_suppression >= 1 else budget(self.max_suppression, self.rows)

    def without(self, *names: str) -> Limits:
        """Return the same limits without some of them."""
        rest = self.as_dict() | dict.fromkeys(names)
        allowed = 1.0 if "max_suppression" in names else self.max_suppression
        return Limits(self.rows, rest["max_loss"], allowed, rest["min_k"], rest["min_l"])

    def given(self) -> list[str]:
        """Return the names of the limits that are set."""
        return [name for name, value in self.as_dict().items() if value not in (None, 1.0)]

    def met(self, offers: Offers) -> Flags:
        """Return which candidates keep every limit."""
        result = np.asarray(offers.suppressed <= self.allowed)
        for name, value in self.as_dict().items():
            if value is not None and name != "max_suppression":
                limit = Limit(name, value)
                result &= limit.met(getattr(offers, limit.figure))
        return result

    def as_dict(self) -> dict[str, float | None]:
        return {name: getattr(self, name) for name in NAMES}

    def says(self) -> str:
        """Return the limits in words."""
        allowed = f"at most {percent(self.max_suppression, 0.0)} suppressed"
        allowed = "any suppression" if self.max_suppression >= 1 else allowed if self.max_suppression else NOTHING
        parts = [] if self.max_loss is None else [f"loss of at most {percent(self.max_loss, 0.0)}"]
        least = ((K.label, self.min_k), (DISTINCT_L.label, self.min_l))
        parts += [allowed, *(f"{title} of at least {number(value)}" for title, value in least if value is not None)]
        return ", ".join(parts)


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
            return np.asarray(sum(_logs(offers)))
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

    def best(self, offers: Offers, within: Flags) -> Offer | None:
        """Return the best candidate among some, or None if there is none."""
        places = np.flatnonzero(within & np.isfinite(self.gain(offers)))
        if not len(places):
            return None
        some = offers.some(places)
        balance = (logs / max(logs.max(), 1e-9) for logs in _logs(some))
        gain = np.asarray(sum(balance)) if self.both else self.gain(some)
        # Losses equal to 12 digits are ties, because the same loss may be summed in another order.
        # Ties go to a point that the search evaluated, then to the first.
        loss = np.round(some.loss, 12)
        other = np.zeros(len(some)) if self.second is None else -some.values(self.second)
        keys = (-gain, other, loss) if self.least_loss else (loss, other, -gain)
        return some.at(int(np.lexsort((some.point, ~some.searched, some.suppressed, *keys))[0]), self.privacy)


def _logs(offers: Offers) -> tuple[Floats, Floats]:
    return np.log(np.maximum(offers.k, 1)), np.log(np.maximum(offers.l, 1))


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


def figures(front: Front) -> dict[str, Floats]:
    """Return every figure that can be limited, with its value at each point."""
    points = front.points
    result = {name: np.array([float(point.values.get(name, np.nan)) for point in points]) for name in points[0].values}
    result["loss"] = np.array([point.loss for point in points])
    if front.recodes or K.name in result:
        result["suppressed"] = np.array([front.suppressed_share(point) for point in points])
        result[K.name] = np.array([class_size(point) for point in points])
        result["risk"] = 1.0 / np.maximum(result[K.name], 1.0)
    return result


def class_size(point: Point) -> float:
    """Return the class size that a recoding guarantees."""
    known = point.values.get(K.name)
    return float(point.recoding_plan.suppress_below if known is None else known)


def protects(front: Front, figure: str) -> bool:
    """Return whether a figure measures privacy, not its cost."""
    own = {objective.name: objective.protects for objective in front.objectives}
    registered = known_measures().get(figure)
    return own.get(figure, figure not in COSTS if registered is None else registered.kind == "privacy")


def _way(front: Front, figure: str) -> str:
    """Return the better direction of a figure."""
    own = {objective.name: objective.direction for objective in front.objectives}
    registered = known_measures().get(figure)
    return own.get(figure, "min" if registered is None else registered.direction)


def limit_names(front: Front) -> list[str]:
    """Return the names of the limits of a front, each in the direction in which it protects or saves loss.

    >>> import sfumato as sf
    >>> limit_names(sf.search(sf.read(sf.sample("adult"))))
    ['min_k', 'max_general_loss', 'max_loss', 'max_suppressed', 'max_risk']
    """
    titles = {figure: alias for alias, figure in ALIASES.items()}
    least = {"max": "min", "min": "max"}  # the limit of a figure is on its worse side
    return [f"{least[_way(front, one)]}_{titles.get(one, one)}" for one in figures(front)]


def limit_example(front: Front) -> str:
    """Return a limit that points of a front meet: the first figure's at the point in the middle."""
    values = [float(each[len(front.points) // 2]) for each in figures(front).values()]
    known = zip(limit_names(front), values, strict=True)
    return next((setting(name, value) for name, value in known if math.isfinite(value)), "")


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
