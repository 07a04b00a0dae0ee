"""The choice of a point of a front: within limits, at the knee, or by its id.

Presets are limits that policies commonly set, each with the point it leads to. They are shown if no limit is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.base.arrays import Flags, Floats
from sfumato.base.notebook import card, short
from sfumato.base.text import number, percent
from sfumato.decide.limits import ALIASES, Limit, class_size, figures, limit_example, limit_names, protects, setting
from sfumato.errors import InputError, UnreachableError, counted, nearest
from sfumato.front import Front, Objective, Point
from sfumato.measures.registry import K, known_measures

CAPPED = {"epsilon": 'search with engine = "square" and a cap on epsilon under [channel]'}
TOLERANCE = 1e-9


@dataclass(frozen=True, repr=False)
class Choice:
    """A point of a front and the reason of its choice. Without a limit in `binding`, another point would be chosen."""

    front: Front
    point: Point
    reason: str
    binding: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Choice of {repr(self.point)[1:-1].lower()}: {self.reason}>"

    def _repr_html_(self) -> str:
        point, front = self.point, self.front
        rows: list[list[str]] = [[name, short(value)] for name, value in point.values.items()]
        rows += [["loss", f"{100 * point.loss:.1f} %"], ["suppressed", f"{point.suppressed:,} of {front.rows:,}"]]
        rows += [["left out: missing values", f"{front.left_out:,}"]] if front.left_out else []
        if front.recodes:
            chosen = point.recoding_plan.choices.items()
            rows += [[name, f"level {c}" if isinstance(c, int) else counted(len(c), "group")] for name, c in chosen]
        title = f"Choice: point {point.id} of {len(front)}"
        return card(title, ["figure", "value"], rows, front.picture(point.id), [f"Chosen: {self.reason}."])

    def apply(self, table: Any = None) -> Any:
        """Recode a table in memory as chosen. The result is the same kind of table, without suppressed records.

        The table is the study's own unless given. Another table is recoded by the same hierarchies, and suppressed by
        its own class sizes. Columns that are never released are left out. Rows keep their order and index, so the
        result is for internal work. `sf.publish` sorts the rows by a random key, measures the file, and checks it
        against the policy.

        Args:
            table: a table in memory; the study's own unless given.

        Returns:
            A table of the same kind.
        """
        from sfumato.release.apply_frame import recoded_frame  # the choice itself needs no releases

        return recoded_frame(self.front, self.point, table)


def pick(front: Front, *, knee: bool = False, point: int | None = None, **limits: float | None) -> Choice:
    """Choose a point: within limits, at the knee, or by its id.

    The name of a limit is `min_` or `max_` with a figure, and several limits may be given. Every front of recodings
    knows `max_loss=0.3`, `min_k=5` and `max_risk=0.2` (the prosecutor risk, 1/k). A channel knows `min_privacy`,
    `max_error` and `max_epsilon`, a protected group `max_cost` and `max_findings`. Any objective of the front can be
    limited. With a limit on privacy the cheapest point that keeps all limits is chosen, otherwise the most private one.

    Args:
        front: the front.
        knee: whether to take the knee of the curve.
        point: the id of a point to take.
        **limits: limits by name, such as `min_k=5`.

    Returns:
        The point, the reason, and the limits that bind.
    """
    given = {name: float(value) for name, value in limits.items() if value is not None}
    if not front.points:
        raise InputError("the front has no points", expected="a front with at least one point")
    if bool(given) + knee + (point is not None) > 1:
        raise InputError("more than one way of choosing is given", expected="limits, or knee, or point")
    if point is not None:
        return Choice(front, front.point(point), f"point {point} was asked for")
    if knee:
        chosen = front.points[knee_of(front)]
        return Choice(front, chosen, f"the knee {knee_scale(front)}")
    if given:
        return _within(front, [_limit(front, name, value) for name, value in given.items()])
    if "chosen" in front.details:
        return Choice(front, front.point(int(front.details["chosen"])), "the best that the search found")
    raise InputError(
        "no limit, knee or point is given",
        expected=f"a limit on a figure of this front ({', '.join(limit_names(front))}), or the knee, or a point",
        remedy=limit_example(front),
    )


def _within(front: Front, limits: Sequence[Limit]) -> Choice:
    known, privacy = figures(front), _privacy(front)
    # the cost objective of the method, otherwise the loss
    cost = next((objective.name for objective in front.objectives if objective.privacy is False), "loss")
    met = [limit.met(known[limit.figure]) for limit in limits]
    if not np.all(met, axis=0).any():
        raise _unreachable(limits, known)
    protecting = any(protects(front, limit.figure) for limit in limits)
    gain = np.zeros(len(front)) if privacy is None else privacy.sign * known[privacy.name]
    keys = [known[cost], gain] if protecting else [gain, known[cost]]

    def first(allowed: Flags) -> int:
        places = np.flatnonzero(allowed)
        return int(places[np.lexsort([key[places] for key in reversed(keys)])[0]])

    chosen = first(np.all(met, axis=0))
    binding = []
    for position, limit in enumerate(limits):
        freed = first(np.all([np.full(len(front), True), *met[:position], *met[position + 1 :]], axis=0))
        if [key[freed] for key in keys] < [key[chosen] for key in keys]:
            binding.append(limit.name)
    best = f"least {cost}" if protecting or privacy is None else f"most {privacy.name}"
    if not protecting and privacy is not None and privacy.direction == "min":
        best = f"least {privacy.name}"
    reason = f"{best} with {' and '.join(limit.clause() for limit in limits)}"
    if len(limits) > 1 and binding:
        reason += f"; binding {'limit' if len(binding) == 1 else 'limits'}: {', '.join(binding)}"
    return Choice(front, front.points[chosen], reason, tuple(binding))


def _limit(front: Front, name: str, value: float) -> Limit:
    """Return a limit, or raise InputError with the figures that the front has."""
    way, _, figure = name.partition("_")
    figure = ALIASES.get(figure, figure)
    known_figures = figures(front)
    if way not in ("min", "max") or figure not in known_figures:
        known = limit_names(front)
        remedy = nearest(name, known)
        if front.recodes and way in ("min", "max") and figure in known_measures():
            remedy = f"search with constraints = {{ {figure} = {value:g} }}, then pick"
        raise InputError(
            f'"{name}" does not limit any figure of this front',
            expected="one of: " + ", ".join(known),
            remedy=remedy,
        )
    if math.isnan(value):
        raise InputError(f"{name} is not a number", expected="a number")
    tolerance = float(front.details.get("tolerance", TOLERANCE)) if figure in front.points[0].values else TOLERANCE
    limit = Limit(name, value, tolerance)
    # A least value below 0 limits nothing. A negative largest value of a method's own figure is reported as
    # unreachable.
    if value < 0 and (limit.least or figure in known_measures()) and (known_figures[figure] >= 0).all():
        raise InputError(f"{name} is {value:g}", expected="a number from 0")
    return limit


def _privacy(front: Front) -> Objective | None:
    return next((objective for objective in front.objectives if objective.protects), None)


def _unreachable(limits: Sequence[Limit], known: Mapping[str, Floats]) -> UnreachableError:
    """Return the error that no point keeps all limits, with the value that each limit would need."""
    for limit in limits:
        values = known[limit.figure]
        if limit.met(values).any():
            continue
        best = int(np.argmin(limit.violation(values)))
        endless = not math.isfinite(values[best])
        return UnreachableError(
            f"no point has {limit.clause()}" + (": all are infinite" if endless else ""),
            expected="a limit that a point meets",
            remedy=CAPPED.get(limit.figure, "another front") if endless else _reaching([limit], known, best),
        )
    return UnreachableError(
        f"no point has {' and '.join(limit.clause() for limit in limits)}",
        expected="limits that a point meets at once",
        remedy=", or ".join(_relaxed(limits, known)),
    )


def _reaching(limits: Sequence[Limit], known: Mapping[str, Floats], best: int) -> str:
    """Return limits with the values of a point as the user writes them."""
    written = [setting(limit.name, float(known[limit.figure][best])) for limit in limits]
    return f"{', '.join(written)} reaches point {best}"


def _relaxed(limits: Sequence[Limit], known: Mapping[str, Floats]) -> list[str]:
    """Return each limit with the value that a point meets which keeps all others, or the point that misses least."""
    met = {limit: limit.met(known[limit.figure]) for limit in limits}
    missed = {limit: limit.violation(known[limit.figure]) for limit in limits}
    proposals = []
    for limit in limits:
        kept = np.flatnonzero(np.all([met[other] for other in limits if other is not limit], axis=0))
        if len(kept):
            proposals.append(_reaching([limit], known, int(kept[np.argmin(missed[limit][kept])])))
    if proposals:
        return proposals
    # Limits have different units, so a violation counts as a share of the figure's range.
    spans = {limit: float(np.ptp(known[limit.figure])) or 1.0 for limit in limits}
    near = int(np.argmin(sum(np.maximum(missed[limit], 0.0) / spans[limit] for limit in limits)))
    return [_reaching([limit for limit in limits if not met[limit][near]], known, near)]


def knee_of(front: Front) -> int:
    """Return the position of the knee among the points, with privacy on the scale of its objective.

    Another scale has another knee, and the knee reflects no policy. `presets` are therefore shown first.
    """
    privacy = _privacy(front)
    if privacy is None:
        raise InputError(
            "the front has no privacy objective", expected="k or another privacy measure among the objectives"
        )
    known = figures(front)
    return knee_place(privacy.gain(known[privacy.name]), known["loss"]) or 0


def knee_scale(front: Front) -> str:
    """Return the scale on which a front has its knee."""
    privacy = _privacy(front)
    return "" if privacy is None else f"{scale_of(privacy, privacy.name)}, both from end to end of the front"


def scale_of(privacy: Objective, title: str) -> str:
    """Return the scale of an objective and of the loss, in a clause."""
    return f"on {'a logarithmic' if privacy.logarithmic else 'an even'} scale of {title} and an even one of loss"


def knee_place(gain: Floats, loss: Floats) -> int | None:
    """Return the point farthest above the line between both ends, with both axes scaled to [0, 1].

    >>> knee_place(np.array([0.0, 0.8, 1.0]), np.array([0.0, 0.2, 1.0]))
    1
    """
    if len(gain) < 3:
        return None
    spans = [np.ptp(gain) or 1.0, np.ptp(loss) or 1.0]
    return int(np.argmax((gain - gain.min()) / spans[0] - (loss - loss.min()) / spans[1]))


def as_dict(choice: Choice) -> Mapping[str, object]:
    """Return a choice as `sfumato pick --json` prints it."""
    return {"reason": choice.reason, "binding": list(choice.binding), "point": choice.point.as_dict()}


COMMON = (*(("min_k", k) for k in (3.0, 5.0, 10.0, 20.0)), *(("max_risk", risk) for risk in (0.2, 0.09, 0.05)))


@dataclass(frozen=True)
class Preset:
    """A limit of `pick`, and the point of a front that it leads to; None if no point meets it."""

    limit: str
    value: float
    point: Point | None

    @property
    def words(self) -> str:
        """The limit in words.

        >>> Preset("max_risk", 0.09, None).words
        'prosecutor risk of at most 0.09'
        """
        return Limit(self.limit, self.value).clause().removeprefix("a ")

    @property
    def says(self) -> str:
        """The result of the limit in words."""
        if self.point is None:
            return "no point of this front"
        gone = f"{self.point.suppressed:,} suppressed" if self.point.suppressed else "nothing suppressed"
        size = number(class_size(self.point))
        return f"k {size}, loss {percent(self.point.loss)}, {gone} (point {self.point.id})"

    def as_dict(self) -> dict[str, object]:
        """Return the preset as JSON.

        Returns:
            A dictionary.
        """
        result = {"limit": self.limit, "value": self.value, "words": self.words, "says": self.says, "point": None}
        if self.point is None:
            return result
        own = {K.name: class_size(self.point), "loss": self.point.loss, "suppressed": self.point.suppressed}
        return result | {"point": self.point.id} | own


def presets(front: Front, common: Sequence[tuple[str, float]] = COMMON) -> tuple[Preset, ...]:
    """Return the point that each common limit on k or on the prosecutor risk (1/k) leads to.

    There are none if points have no k.

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
        try:
            result.append(Preset(limit, value, _within(front, [_limit(front, limit, value)]).point))
        except UnreachableError:
            result.append(Preset(limit, value, None))
    return tuple(result)
