"""Which limit binds, and the nearest relaxations that pay, each with its price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.decide.limits import Limits, Wish
from sfumato.decide.offers import Offer, Offers
from sfumato.decide.sentences import what
from sfumato.measures.facts import Form
from sfumato.measures.standard import OF_FORM
from sfumato.runtime.arrays import Flags, Floats
from sfumato.runtime.figures import number, percent

LEAST = np.log(1.1)  # a relaxation that pays brings a tenth more privacy
SAVED = 0.005  # or spares half a point of loss
MOST = 3  # relaxations told of each limit
SLIVER = 0.005  # no price is lower than half a point, so that a step right behind the limit is not priceless


@dataclass(frozen=True)
class Relaxation:
    """A limit moved a little, and what that buys."""

    limit: str
    before: float
    after: float
    offer: Offer
    says: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "limit": self.limit,
            "from": self.before,
            "to": self.after,
            "says": self.says,
            "offer": self.offer.as_dict(),
        }


def reach(limit: float, part: float) -> float:
    """How far a limit on a share is moved at most: five points, or a part of itself if that is more.

    >>> round(reach(0.25, 0.2), 3), round(reach(0.10, 0.5), 3)
    (0.3, 0.15)
    """
    return min(limit + max(0.05, part * limit), 1.0)


def binding(offers: Offers, limits: Limits, wish: Wish, best: Offer) -> tuple[str, ...]:
    """The limits without which more could be had (or the same for less loss)."""
    result = []
    for name in limits.given():
        free = limits.without(name).met(offers)
        better = offers.loss < best.loss - 1e-9 if wish.least_loss else wish.beats(offers, best)
        if np.any(free & better):
            result.append(name)
    return tuple(result)


def relaxations(offers: Offers, limits: Limits, wish: Wish, best: Offer, rate: float) -> tuple[Relaxation, ...]:
    """The nearest relaxations that pay: each buys more than the trade-off does on the whole, by its `rate`."""
    result: list[Relaxation] = []
    if limits.max_loss is not None or wish.least_loss:
        limit = limits.max_loss if limits.max_loss is not None else best.loss
        near = limits.without("max_loss").met(offers) & (offers.loss <= reach(limit, 0.2)) & (offers.loss > limit)
        for offer in _paying(offers, near, wish, best, rate, offers.loss - limit):
            result.append(_more(offer, best, wish, "max_loss", limit, offer.loss))
    if limits.max_suppression < 1:
        limit = limits.max_suppression
        near = limits.without("max_suppression").met(offers) & (offers.suppressed > limits.allowed)
        near &= offers.suppression <= reach(limit, 0.5)
        if wish.least_loss:
            result += _cheaper(offers, near, wish, best, "max_suppression", limit)
        else:
            for offer in _paying(offers, near, wish, best, rate, offers.suppression - limit):
                result.append(_more(offer, best, wish, "max_suppression", limit, offer.suppression))
    result += _less(offers, limits, wish, best, rate)
    return tuple(result)


def _paying(offers: Offers, near: Flags, wish: Wish, best: Offer, rate: float, price: Floats) -> list[Offer]:
    """Steps up from the best answer, each the one that gains fastest from the last."""
    places = np.flatnonzero(near & wish.beats(offers, best))
    if not len(places):
        return []
    some = offers.some(places)
    gains, prices, losses = wish.gain(some), price[places], some.loss
    at = wish.gain_of(best)
    least = 0.0 if wish.privacy.form is Form.DIVERSITY and not wish.both else LEAST  # one more ℓ is never a trifle
    paid = 0.0
    result: list[Offer] = []
    while len(result) < MOST:
        ahead = np.flatnonzero((gains >= at + least) & ((prices > paid) | (not result)))
        if not len(ahead):
            break
        speed = (gains[ahead] - at) / np.maximum(prices[ahead] - paid, SLIVER)
        pick = int(ahead[np.lexsort((losses[ahead], -np.round(speed, 9)))[0]])
        if speed.max() < rate:
            break
        result.append(offers.at(int(places[pick]), wish.privacy))
        at, paid = gains[pick], float(prices[pick])
    return result


def _less(offers: Offers, limits: Limits, wish: Wish, best: Offer, rate: float) -> list[Relaxation]:
    """A little less privacy that spares much loss: the answer may stand at the end of a steep stretch."""
    inside = limits.without("min_k").without("min_l").met(offers) & (offers.loss < best.loss - SAVED)
    result = []
    for form, now in ((Form.SIZE, best.k), (Form.DIVERSITY, best.l or 0)):
        by_size = form is Form.SIZE
        floor = limits.min_k if by_size else limits.min_l
        if now <= 1 or not (wish.both or wish.privacy.form is form or (wish.least_loss and floor)):
            continue
        other = offers.l >= (best.l or -1) if by_size else offers.k >= best.k
        if not wish.both and not wish.least_loss:
            other = np.ones(len(offers), dtype=np.bool_)
        if wish.least_loss:
            other = limits.without(f"min_{form}").met(offers)
        here = offers.k if by_size else offers.l
        places = np.flatnonzero(inside & other & (here < now) & (here >= 0.75 * now if by_size else here == now - 1))
        if not len(places):
            continue
        given = np.log(now / here[places])
        spared = best.loss - offers.loss[places]
        worth = spared / np.maximum(given, 1e-9)
        pick = int(np.argmax(worth))
        if worth[pick] * rate < 2.0:  # twice what the trade-off asks for it on the whole
            continue
        offer = offers.at(int(places[pick]), wish.privacy)
        title = OF_FORM[form].label
        value = int(here[places[pick]])
        says = (
            f"{title} {value:,} instead of {now:,}: loss {percent(offer.loss, best.loss)} "
            f"instead of {percent(best.loss, offer.loss)}"
        )
        result.append(Relaxation(f"min_{form}", float(now), float(value), offer, says))
    return result


def _cheaper(offers: Offers, near: Flags, wish: Wish, best: Offer, name: str, limit: float) -> list[Relaxation]:
    """A limit moved for less loss: the step that spares most for how far it goes."""
    places = np.flatnonzero(near & (offers.loss < best.loss - SAVED))
    if not len(places):
        return []
    moved = np.maximum(offers.suppression[places] - limit, SLIVER)
    pick = int(places[np.argmax((best.loss - offers.loss[places]) / moved)])
    offer = offers.at(pick, wish.privacy)
    says = (
        f"{percent(offer.suppression, limit)} suppressed instead of {percent(limit, offer.suppression)}: "
        f"loss {percent(offer.loss, best.loss)} instead of {percent(best.loss, offer.loss)}"
    )
    return [Relaxation(name, limit, offer.suppression, offer, says)]


def _more(offer: Offer, best: Offer, wish: Wish, name: str, before: float, after: float) -> Relaxation:
    moved = f"{percent(after, before)} instead of {percent(before, after)}"
    first = (
        f"loss {moved}"
        if name == "max_loss"
        else f"{percent(after, before)} suppressed instead of {percent(before, after)}"
    )
    was = what(best, wish.privacy, wish.both) if wish.both else number(best.value)
    return Relaxation(name, before, after, offer, f"{first}: {what(offer, wish.privacy, wish.both)} instead of {was}")
