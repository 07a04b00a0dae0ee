"""The words of answers: candidates, recodings, warnings, relaxed limits, and the four questions of a data publisher.

The questions are those of section 1 of the cuts paper. A relaxation of a limit is listed if it is worth its loss.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sfumato.base.arrays import Flags, Floats
from sfumato.base.text import number, percent
from sfumato.data.settings import Role
from sfumato.decide.curve import Curve
from sfumato.decide.limits import Aim, Limits, choices
from sfumato.decide.offers import Offer, Offers, offers_of, points_of
from sfumato.errors import SfumatoError, UnreachableError, counted, shortened
from sfumato.front import Front, Objective
from sfumato.hierarchies.recipes import HierarchyFile, HierarchyPaths
from sfumato.measures.fast_paths import Form
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, OF_FORM, WEIGHTED_K, K
from sfumato.plans.boxes import BoxPlan
from sfumato.study.methods import METHODS
from sfumato.tables.frequency import FrequencyTable


def k_and_l(offer: Offer) -> str:
    """Return the k and ℓ of a candidate in words."""
    return f"{K.label} {offer.k:,}" + (f" and {DISTINCT_L.label} {offer.l}" if offer.l is not None else "")


def objective_clause(offer: Offer, aim: Aim) -> str:
    """Return the candidate's value of the objective in words."""
    return k_and_l(offer) if aim.both else f"{aim.privacy.label} {number(offer.value)}"


def cost_clause(offer: Offer) -> str:
    """Return the loss and the suppression of a candidate in words."""
    gone = f"{percent(offer.suppression)} suppressed" if offer.suppressed else "nothing suppressed"
    return f"loss {percent(offer.loss)}, {gone}"


def candidate_clause(offer: Offer, aim: Aim) -> str:
    """Return a candidate in one clause: the known privacy figures, then its costs."""
    parts, form = [objective_clause(offer, aim)], aim.privacy.form
    if not aim.both and form is not Form.SIZE and offer.k > 0:
        parts.append(f"{K.label} {offer.k:,}")
    if not aim.both and form is not Form.DIVERSITY and offer.l is not None:
        parts.append(f"{DISTINCT_L.label} {offer.l}")
    if form not in (None, Form.MEAN_SIZE) and offer.weighted_k is not None:
        parts.append(f"{WEIGHTED_K.label} {number(offer.weighted_k)}")
    return f"{', '.join(parts)}; {cost_clause(offer)} (point {offer.point})"


class NothingWithinError(UnreachableError):
    """No release is within the limits of a question. `nearest` are values of single limits that can be met."""

    def __init__(self, what: str, nearest: dict[str, float], *, expected: str = "", remedy: str = "") -> None:
        super().__init__(what, expected=expected, remedy=remedy)
        self.nearest = nearest


ROUNDED = {"max_loss": 1000, "max_suppression": 10000}  # limits on shares are stated in steps of one part in so many


def unreachable(front: Front, limits: Limits, aim: Aim) -> NothingWithinError:
    """Return the error that no release keeps the limits, with the nearest value of each that the others allow."""
    offers = offers_of(front, front.persons) if aim.privacy.form is not None else points_of(front)
    near: dict[str, float] = {}
    for name in limits.given():
        free = limits.without(name).met(offers)
        values = getattr(offers, name.partition("_")[2])[free]
        if name in ROUNDED and len(values):
            near[name] = float(np.ceil(values.min() * ROUNDED[name]) / ROUNDED[name])
        elif len(values) and values.max() >= 1:
            near[name] = float(values.max())
    says = ", or ".join(f"{name} = {value:g}" for name, value in near.items())
    return NothingWithinError(
        f"no recoding of the front has {limits.says()}",
        near,
        expected="limits that at least one release meets",
        remedy=says or "relax two limits at once, or search again with other settings",
    )


def table_of(front: Front) -> FrequencyTable | None:
    """Return the table of a front, or None if it can no longer be read."""
    try:
        return front.study.table()
    except SfumatoError:
        return None


def order_warning(front: Front, table: FrequencyTable | None) -> list[str]:
    """Return a warning if the values of a column without an order or hierarchy were grouped alphabetically."""
    if table is None or not METHODS[front.system].neighbours:
        return []
    given = front.study.columns
    result = []
    for domain in table.domains:
        column, tree = given[domain.name], (str, HierarchyFile, HierarchyPaths)
        flat = domain.spans is None and len(domain.labels) > 2 and domain.hierarchy.height < 2
        declared = column.order is not None or isinstance(column.hierarchy, tree)
        if flat and not declared and column.role is Role.QUASI_IDENTIFIER:
            result.append(domain.name)
    said = f"{shortened(result)} {'has' if len(result) == 1 else 'have'} no order and no hierarchy"
    return (
        []
        if not result
        else [f"{said}, so values are ordered alphabetically: set order = [...] or a hierarchy for a meaningful order."]
    )


def words_of(front: Front, offer: Offer, table: FrequencyTable | None) -> tuple[str, ...]:
    """Return the recoding in words, with the labels if the table can be read."""
    point = front.point(offer.point)
    if isinstance(point.plan, BoxPlan):
        return (f"{counted(len(point.plan.labels), 'class', 'classes')}, each with labels of its own",)
    plan = point.recoding_plan
    if table is not None:
        return tuple(plan.words(table))
    return tuple(
        f"{name} at level {choice}" if isinstance(choice, int) else f"{name} in {counted(len(choice), 'group')}"
        for name, choice in plan.choices.items()
    )


def uniqueness_warning(offers: Offers, limits: Limits, best: Offer) -> list[str]:
    """Return a warning if k is 1, with the least loss at which no record is alone in its class."""
    if best.k != 1:
        return []
    pairs = Aim(Objective.of(Form.SIZE), least_loss=True)
    offer = pairs.best(offers, replace(limits, max_loss=None, min_k=2).met(offers))
    way = f" The lowest loss with k = 2 is {percent(offer.loss)} (point {offer.point})." if offer is not None else ""
    return [f"k = 1: unique records remain identifiable.{way}"]


def notes_of(front: Front, limits: Limits, best: Offer, usual: float, searched: bool = False) -> tuple[str, ...]:
    """Return notes on an answer. The advice to search is left out if a search is run anyway."""
    notes = []
    if not best.searched:
        below = [f"classes below {best.suppress_below:,} records"] * (best.suppress_below > 1)
        below += [f"classes with fewer than {best.diversity_below} sensitive values"] * (best.diversity_below > 1)
        goes = " and ".join(below) or "nothing"
        notes.append(f"This is the recoding of point {best.point} with a different suppression: {goes} suppressed.")
    if limits.max_suppression != usual and not searched:
        notes.append(
            f"The recodings were searched with {'any suppression' if usual >= 1 else percent(usual) + ' suppressed'}; "
            "a search with the requested limit may find better ones."
        )
    names = {objective.name for objective in front.objectives} | set(front.study.search.constraints)
    if limits.min_l is not None and DISTINCT_L.name not in names and METHODS[front.system].levels and not searched:
        wanted = json.dumps([K.name, DISTINCT_L.name, GENERAL_LOSS.name])
        notes.append(
            f"The recodings were not searched for ℓ: objectives = {wanted} under [search] finds the best ones."
        )
    if not front.exact:
        notes.append("The front is the best found, not proven optimal: a longer search may improve it.")
    return tuple(notes)


def publish_command(folder: Path | None, best: Offer) -> str:
    """Return the command that publishes a candidate."""
    if folder is None:
        return "sf.publish(answer.choice, 'release')"
    extra = ""
    if not best.searched:
        extra = f" --suppress-below {best.suppress_below}"
        extra += f" --diversity-below {best.diversity_below}" if best.diversity_below else ""
    return f"sfumato publish {shlex.quote(str(folder))} --point {best.point}{extra} -o release"


LEAST_GAIN = np.log(1.1)  # a relaxation must gain a tenth more privacy
LEAST_SAVING = 0.005  # or save half a percentage point of loss
MOST_RELAXATIONS = 3  # relaxations that are listed of each limit
LEAST_PRICE = 0.005  # the least price of a relaxation, so that a step just beyond the limit has a finite rate


@dataclass(frozen=True)
class Relaxation:
    """A relaxed limit and the release that it allows."""

    limit: str
    before: float
    after: float
    offer: Offer
    says: str

    def as_dict(self) -> dict[str, object]:
        moved = {"limit": self.limit, "from": self.before, "to": self.after}
        return moved | {"says": self.says, "offer": self.offer.as_dict()}


def reach(limit: float, part: float) -> float:
    """Return the farthest relaxation of a limit on a share: by 0.05, or by a part of the limit if that is more.

    >>> round(reach(0.25, 0.2), 3), round(reach(0.10, 0.5), 3)
    (0.3, 0.15)
    """
    return min(limit + max(0.05, part * limit), 1.0)


def binding(offers: Offers, limits: Limits, aim: Aim, best: Offer) -> tuple[str, ...]:
    """Return the limits without which more privacy, or the same with less loss, would be possible."""
    better = offers.loss < best.loss - 1e-9 if aim.least_loss else aim.beats(offers, best)
    return tuple(name for name in limits.given() if np.any(limits.without(name).met(offers) & better))


def relaxations(offers: Offers, limits: Limits, aim: Aim, best: Offer, rate: float) -> tuple[Relaxation, ...]:
    """Return the nearest relaxations that gain more per unit of loss than the trade-off does on average (`rate`)."""
    result: list[Relaxation] = []
    if limits.max_loss is not None or aim.least_loss:
        limit = limits.max_loss if limits.max_loss is not None else best.loss
        near = limits.without("max_loss").met(offers) & (offers.loss <= reach(limit, 0.2)) & (offers.loss > limit)
        steps = _steps_up(offers, near, aim, best, rate, offers.loss - limit)
        result += [_relaxation(offer, best, aim, "max_loss", limit, offer.loss) for offer in steps]
    if limits.max_suppression < 1:
        limit = limits.max_suppression
        near = limits.without("max_suppression").met(offers) & (offers.suppressed > limits.allowed)
        near &= offers.suppression <= reach(limit, 0.5)
        if aim.least_loss:
            result += _less_loss(offers, near, aim, best, "max_suppression", limit)
        else:
            steps = _steps_up(offers, near, aim, best, rate, offers.suppression - limit)
            result += [_relaxation(offer, best, aim, "max_suppression", limit, offer.suppression) for offer in steps]
    result += _less_privacy(offers, limits, aim, best, rate)
    return tuple(result)


def _steps_up(offers: Offers, near: Flags, aim: Aim, best: Offer, rate: float, price: Floats) -> list[Offer]:
    """Return steps up from the best answer, each the one with the largest gain per unit from the last."""
    places = np.flatnonzero(near & aim.beats(offers, best))
    if not len(places):
        return []
    some = offers.some(places)
    gains, prices, losses = aim.gain(some), price[places], some.loss
    at = aim.gain_of(best)
    # one more ℓ is always a relevant gain
    least = 0.0 if aim.privacy.form is Form.DIVERSITY and not aim.both else LEAST_GAIN
    paid = 0.0
    result: list[Offer] = []
    while len(result) < MOST_RELAXATIONS:
        ahead = np.flatnonzero((gains >= at + least) & ((prices > paid) | (not result)))
        if not len(ahead):
            break
        speed = (gains[ahead] - at) / np.maximum(prices[ahead] - paid, LEAST_PRICE)
        pick = int(ahead[np.lexsort((losses[ahead], -np.round(speed, 9)))[0]])
        if speed.max() < rate:
            break
        result.append(offers.at(int(places[pick]), aim.privacy))
        at, paid = gains[pick], float(prices[pick])
    return result


def _less_privacy(offers: Offers, limits: Limits, aim: Aim, best: Offer, rate: float) -> list[Relaxation]:
    """Return relaxations to less privacy that save much loss, for an answer at the end of a steep stretch."""
    inside = limits.without("min_k", "min_l").met(offers) & (offers.loss < best.loss - LEAST_SAVING)
    result = []
    for form, now in ((Form.SIZE, best.k), (Form.DIVERSITY, best.l or 0)):
        by_size = form is Form.SIZE
        floor = limits.min_k if by_size else limits.min_l
        if now <= 1 or not (aim.both or aim.privacy.form is form or (aim.least_loss and floor)):
            continue
        other = offers.l >= (best.l or -1) if by_size else offers.k >= best.k
        if not aim.both and not aim.least_loss:
            other = np.ones(len(offers), dtype=np.bool_)
        if aim.least_loss:
            other = limits.without(f"min_{form}").met(offers)
        here = offers.k if by_size else offers.l
        places = np.flatnonzero(inside & other & (here < now) & (here >= 0.75 * now if by_size else here == now - 1))
        if not len(places):
            continue
        worth = (best.loss - offers.loss[places]) / np.maximum(np.log(now / here[places]), 1e-9)
        pick = int(np.argmax(worth))
        if worth[pick] * rate < 2.0:  # twice the loss reduction that the trade-off gives on average
            continue
        offer = offers.at(int(places[pick]), aim.privacy)
        value = int(here[places[pick]])
        less = _moved("max_loss", offer.loss, best.loss)
        says = f"{OF_FORM[form].label} {value:,} instead of {now:,}: {less}"
        result.append(Relaxation(f"min_{form}", float(now), float(value), offer, says))
    return result


def _less_loss(offers: Offers, near: Flags, aim: Aim, best: Offer, name: str, limit: float) -> list[Relaxation]:
    """Return the relaxation of a limit with the best loss reduction per unit."""
    places = np.flatnonzero(near & (offers.loss < best.loss - LEAST_SAVING))
    if not len(places):
        return []
    moved = np.maximum(offers.suppression[places] - limit, LEAST_PRICE)
    pick = int(places[np.argmax((best.loss - offers.loss[places]) / moved)])
    offer = offers.at(pick, aim.privacy)
    says = f"{_moved(name, offer.suppression, limit)}: {_moved('max_loss', offer.loss, best.loss)}"
    return [Relaxation(name, limit, offer.suppression, offer, says)]


def _relaxation(offer: Offer, best: Offer, aim: Aim, name: str, before: float, after: float) -> Relaxation:
    was = objective_clause(best, aim) if aim.both else number(best.value)
    says = f"{_moved(name, after, before)}: {objective_clause(offer, aim)} instead of {was}"
    return Relaxation(name, before, after, offer, says)


def _moved(name: str, after: float, before: float) -> str:
    """Return a loss or a suppression in words, and the one that it replaces."""
    now = f"loss {percent(after, before)}" if name == "max_loss" else f"{percent(after, before)} suppressed"
    return f"{now} instead of {percent(before, after)}"


SIZE, MEAN_SIZE = Objective.of(Form.SIZE), Objective.of(Form.MEAN_SIZE)
MOST_PAIRS = 5  # pairs (k, ℓ) that are listed


@dataclass(frozen=True)
class Question:
    """A question, its answer in words, and the search for exactly this; empty if the front's search was for it."""

    number: int
    asks: str
    answered: bool
    says: str
    offers: tuple[Offer, ...] = ()
    relaxed: tuple[str, ...] = ()
    command: str = ""

    def as_dict(self) -> dict[str, object]:
        stated = {"number": self.number, "asks": self.asks, "answered": self.answered, "says": self.says}
        offers = [offer.as_dict() for offer in self.offers]
        return stated | {"offers": offers, "relaxations": list(self.relaxed), "command": self.command or None}


@dataclass(frozen=True)
class Asker:
    """The setting of the four questions: the candidates, two limits, and the commands of better searches."""

    offers: Offers
    max_loss: float
    max_suppression: float
    commands: dict[int, str]
    has_sensitive: bool

    def four(self) -> tuple[Question, ...]:
        loss = f"a loss of at most {percent(self.max_loss, 0.0)}"
        suppressed = replace(self._limits, max_loss=None).says()
        nothing = replace(self._limits, max_suppression=0.0)
        # The class sizes are unknown if each class has its own labels. Then only k is known.
        known = np.isfinite(self.offers.weighted_k[nothing.without("max_loss").met(self.offers)]).any()
        first = f"What privacy without suppressing anyone, with {loss}?"
        return (
            self._one(1, first, nothing, Aim(MEAN_SIZE if known else SIZE)),
            self._one(2, f"What k with {suppressed} and {loss}?", self._limits, Aim(SIZE)),
            self._third("Can k-anonymity and ℓ-diversity be achieved together?"),
            self._fourth(f"High k and high ℓ with {suppressed} and {loss}?"),
        )

    @property
    def _limits(self) -> Limits:
        return Limits(self.offers.front.persons, self.max_loss, self.max_suppression)

    def _one(self, place: int, asks: str, limits: Limits, aim: Aim) -> Question:
        command = self.commands.get(place, "")
        if self.offers.front.classes is None and command:
            says = "This front was not searched for this, and was saved without its classes."
            return Question(place, asks, False, says, command=command)
        best = aim.best(self.offers, limits.met(self.offers))
        if best is None:
            return Question(place, asks, False, self._none(limits), command=command)
        says = candidate_clause(best, aim) + "."
        if aim.privacy == MEAN_SIZE:
            says += (
                f" The average record is in a class of {number(best.value)} records; the smallest class has {best.k:,}."
            )
        near = self._relaxed(limits, aim, best)
        if place == 1:  # this question allows no suppression
            near = [each for each in near if each.limit != "max_suppression"]
        return Question(place, asks, True, says, (best,), tuple(each.says for each in near), command)

    def _third(self, asks: str) -> Question:
        aim, limits, command = Aim(SIZE, both=True), self._limits, self.commands.get(4, "")
        if unknown := self._without_diversity(3, asks):
            return unknown
        result = choices(self.offers, limits.met(self.offers), SIZE)
        best = aim.best(self.offers, limits.met(self.offers))
        if best is None or not any((offer.l or 0) >= 2 and offer.k >= 2 for offer in result):
            reached = f"the best are {'; '.join(map(k_and_l, result))}" if result else "no release meets them"
            says = f"Not within these limits ({limits.says()}): {reached}. {self._nearest_pair()}".rstrip()
            return Question(3, asks, True, says, tuple(result[-1:]), (), command)
        alone = max(result, key=lambda offer: offer.k)
        price = (
            f"k alone reaches {alone.k:,} with ℓ {alone.l}, so the higher ℓ lowers k by {alone.k - best.k:,}"
            if alone.k > best.k
            else "k alone reaches no higher value"
        )
        says = f"Yes: {k_and_l(best)}, with {cost_clause(best)} (point {best.point}); {price}."
        return Question(3, asks, True, says, (best,), (), command)

    def _fourth(self, asks: str) -> Question:
        aim, limits, command = Aim(SIZE, both=True), self._limits, self.commands.get(4, "")
        if unknown := self._without_diversity(4, asks):
            return unknown
        best = aim.best(self.offers, limits.met(self.offers))
        if best is None:
            return Question(4, asks, False, self._none(limits), command=command)
        if best.k < 2 or (best.l or 0) < 2:
            says = f"No: {k_and_l(best)} is the best that this front has within these limits. {self._nearest_pair()}"
            return Question(4, asks, True, says.rstrip(), (best,), (), command)
        result = choices(self.offers, limits.met(self.offers), SIZE)
        others = [k_and_l(offer) for offer in result if (offer.k, offer.l) != (best.k, best.l)]
        if len(others) > MOST_PAIRS:
            others = [others[round(i * (len(others) - 1) / (MOST_PAIRS - 1))] for i in range(MOST_PAIRS)]
        rest = f"; also {', '.join(others)}" if others else ""
        says = f"{k_and_l(best)} is the best balance, with {cost_clause(best)} (point {best.point}){rest}."
        near = self._relaxed(limits, aim, best)
        return Question(4, asks, True, says, tuple(result), tuple(each.says for each in near), command)

    def _relaxed(self, limits: Limits, aim: Aim, best: Offer) -> Sequence[Relaxation]:
        rate = Curve.of(self.offers.some(limits.without("max_loss").met(self.offers)), aim.privacy).rate
        return relaxations(self.offers, limits, aim, best, rate)

    def _without_diversity(self, place: int, asks: str) -> Question | None:
        if np.any(self.offers.l > 0):
            return None
        if not self.has_sensitive:
            says = "No column is sensitive, so there is no ℓ: "
            return Question(place, asks, False, says + 'give one role = "sensitive" in the run file and search again.')
        says = "This front was saved without the diversity of its classes."
        if not self.offers.front.recodes:
            says = f"The points of this front do not state ℓ: search again with a constraint on {DISTINCT_L.name}."
        return Question(place, asks, False, says, command=self.commands.get(4, ""))

    def _nearest_pair(self) -> str:
        """Return the least loss with k and ℓ of at least 2, in words."""
        pairs = replace(self._limits, max_loss=None, min_k=2, min_l=2)
        offer = Aim(SIZE, least_loss=True).best(self.offers, pairs.met(self.offers))
        if offer is None:
            return ""
        least = f"The lowest loss with k and ℓ of at least 2 is {percent(offer.loss)}"
        return f"{least}: {k_and_l(offer)} (point {offer.point})."

    def _none(self, limits: Limits) -> str:
        """Return that no release answers, and which limit is the reason: the loss, or the suppression."""
        within = limits.without("max_loss").met(self.offers)
        if not within.any():
            return "No release of this front does: all suppress more."
        lowest = percent(float(self.offers.loss[within].min()), limits.max_loss or 0.0)
        return f"No release of this front does: the lowest loss with that suppression is {lowest}."
