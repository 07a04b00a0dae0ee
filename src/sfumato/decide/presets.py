"""Limits that policies commonly set, and the point that each leads to: what is offered where no limit is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.decide.pick import class_size, pick
from sfumato.errors import UnreachableError
from sfumato.front import Front, Point
from sfumato.measures.standard import K
from sfumato.runtime.figures import number, percent

COMMON = (
    ("min_k", 3.0),
    ("min_k", 5.0),
    ("min_k", 10.0),
    ("min_k", 20.0),
    ("max_risk", 0.2),
    ("max_risk", 0.09),
    ("max_risk", 0.05),
)


@dataclass(frozen=True)
class Preset:
    """A limit of `pick`, and the point of a front that it leads to; None where no point meets it."""

    limit: str
    value: float
    point: Point | None

    @property
    def words(self) -> str:
        """The limit in words.

        >>> Preset("max_risk", 0.09, None).words
        'prosecutor risk of at most 0.09'
        """
        least, _, figure = self.limit.partition("_")
        title = {"risk": "prosecutor risk"}.get(figure, figure)
        return f"{title} of at {'least' if least == 'min' else 'most'} {self.value:g}"

    @property
    def says(self) -> str:
        """What the limit leads to, in words."""
        if self.point is None:
            return "no point of this front"
        gone = f"{self.point.suppressed:,} suppressed" if self.point.suppressed else "nothing suppressed"
        size = number(class_size(self.point))
        return f"k {size}, loss {percent(self.point.loss)}, {gone} (point {self.point.id})"

    def as_dict(self) -> dict[str, Any]:
        """The preset as JSON knows it.

        Returns:
            A dictionary.
        """
        result = {"limit": self.limit, "value": self.value, "words": self.words, "says": self.says, "point": None}
        if self.point is None:
            return result
        own = {K.name: class_size(self.point), "loss": self.point.loss, "suppressed": self.point.suppressed}
        return result | {"point": self.point.id} | own


def presets(front: Front, common: Sequence[tuple[str, float]] = COMMON) -> tuple[Preset, ...]:
    """The point that each common limit on k or on the prosecutor risk (1/k) leads to; none where points have no k.

    Args:
        front: the front.
        common: limits of `pick` with their values.

    Returns:
        A preset for each limit.

    >>> import sfumato as sf
    >>> front = sf.search(sf.read(sf.sample("adult")))
    >>> [(each.limit, each.value, each.point.id) for each in presets(front)[:2]]
    [('min_k', 3.0, 2), ('min_k', 5.0, 4)]
    """
    if not front.tells_k or not front.points:
        return ()
    result = []
    for limit, value in common:
        asked: dict[str, Any] = {limit: value}
        try:
            result.append(Preset(limit, value, pick(front, **asked).point))
        except UnreachableError:
            result.append(Preset(limit, value, None))
    return tuple(result)
