"""The trade-off between privacy and loss: its steps, its knee, its flat and steep stretches, and a fitted curve.

The fitted curve is a polynomial of low degree. It is returned with its error, or refused with the reason.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from sfumato.algorithms.dominance import comparable, first_non_dominated
from sfumato.base.arrays import Floats
from sfumato.decide.offers import Offer, Offers
from sfumato.decide.pick import knee_place, scale_of
from sfumato.errors import counted
from sfumato.front import Objective

STEPS = 600  # a curve with more steps is thinned before its stretches are computed
STRETCH = 3.0  # a flat stretch gains three times as fast as the curve on average, a steep one a third as fast
LEAST_SHARE = 0.04  # least share of all gain (flat) or of all loss (steep) that makes a stretch


@dataclass(frozen=True, eq=False)
class Curve:
    """The highest privacy at every loss: candidates of rising loss and rising gain."""

    offers: Offers
    privacy: Objective

    @classmethod
    def of(cls, offers: Offers, privacy: Objective) -> Curve:
        """Return the non-dominated candidates in the order of their loss."""
        values = offers.values(privacy)
        known = np.flatnonzero(np.isfinite(values))
        gain = privacy.gain(values[known])
        order = np.lexsort((offers.suppressed[known], -gain, offers.loss[known]))
        price = comparable(np.stack([offers.loss[known], -gain], axis=1)[order])
        return cls(offers.some(known[order[first_non_dominated(price)]]), privacy)

    def __len__(self) -> int:
        return len(self.offers)

    @property
    def loss(self) -> Floats:
        return self.offers.loss

    @property
    def values(self) -> Floats:
        return self.offers.values(self.privacy)

    @property
    def gain(self) -> Floats:
        return self.privacy.gain(self.values)

    @property
    def rate(self) -> float:
        """The gain of the whole curve per unit of loss, which a relaxation must exceed."""
        return float(np.ptp(self.gain) / max(np.ptp(self.loss), 1e-9)) if len(self) > 1 else 0.0

    def knee(self) -> Offer | None:
        """Return the step farthest above the line between both ends, or None."""
        step = knee_place(self.gain, self.loss)
        return None if step is None else self.offers.at(step, self.privacy)

    @property
    def scale(self) -> str:
        """The scale on which the knee was found."""
        return scale_of(self.privacy, self.privacy.label)

    def flat(self, limit: int = 3) -> list[tuple[Offer, Offer]]:
        """Return the stretches that gain much for almost no loss, the most gain first."""
        return self._stretches(limit, flat=True)

    def steep(self, limit: int = 3) -> list[tuple[Offer, Offer]]:
        """Return the stretches that lose much for almost no gain, the most loss first."""
        return self._stretches(limit, flat=False)

    def _stretches(self, limit: int, flat: bool) -> list[tuple[Offer, Offer]]:
        if len(self) < 4 or not np.ptp(self.gain) or not np.ptp(self.loss):
            return []
        steps = np.unique(np.linspace(0, len(self) - 1, STEPS).astype(np.int64))
        gain, loss = self.gain[steps] / np.ptp(self.gain), self.loss[steps] / np.ptp(self.loss)
        rise, run = gain[None, :] - gain[:, None], loss[None, :] - loss[:, None]
        far, extent = (rise >= STRETCH * run, rise) if flat else (rise * STRETCH <= run, run)
        length = np.triu(np.where(far & (extent >= LEAST_SHARE), extent, 0.0), 1)
        result: list[tuple[Offer, Offer]] = []
        while len(result) < limit and length.max() > 0:
            a, b = (int(position) for position in np.unravel_index(int(np.argmax(length)), length.shape))
            low, high = (self.offers.at(int(steps[end]), self.privacy) for end in (a, b))
            result.append((low, high))
            # A stretch that overlaps an earlier one is left out.
            length[:b, a + 1 :] = 0.0
        return result


FEWEST = 12  # least number of steps for a fit
DEGREES = (1, 2, 3, 4)
TYPICAL, WORST = 1.25, 2.5  # factors by which a curve may be off, typically and at its worst step
MIDDLE = (0.05, 0.95)  # the share of the loss axis that is fitted if no curve reaches both ends
EXPLAINED = 0.9  # share of the variation that a curve must explain in steps it was not fitted to
FOLDS = 8


@dataclass(frozen=True)
class Fit:
    """A polynomial of the loss for log(value), if one fits. `error` is the factor by which it is typically off.

    The error is measured by cross-validation, on steps that the polynomial was not fitted to.
    """

    fits: bool
    reason: str = ""
    coefficients: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 0.0
    error: float | None = None
    worst: float | None = None
    explained: float | None = None

    def says(self, title: str) -> str:
        """Return the polynomial and its error in words, or why there is none."""
        if not self.fits:
            return f"No curve was fitted: {self.reason}."
        powers = ["", "·x", "·x²", "·x³", "·x⁴"]
        terms = [f"{c:+.4g}{power}" for c, power in zip(self.coefficients, powers, strict=False)]
        said = " ".join(f"{term[0]} {term[1:]}" for term in terms).removeprefix("+ ")
        return (
            f"log({title}) ≈ {said}, x the loss as a share, from {self.low * 100:.0f} % to {self.high * 100:.0f} %; "
            f"typically off by a factor of {self.error:.2f}, at worst {self.worst:.2f}."
        )

    def as_dict(self) -> dict[str, object]:
        if not self.fits:
            return {"fits": False, "reason": self.reason, "error_factor": self.error}
        form = {"fits": True, "form": "log(value) = sum of coefficients[i] * loss**i"}
        ends = {"coefficients": list(self.coefficients), "from_loss": self.low, "to_loss": self.high}
        return form | ends | {"error_factor": self.error, "worst_factor": self.worst, "explained": self.explained}


def fitted(loss: Floats, values: Floats) -> Fit:
    """Fit a curve to the steps of a trade-off.

    >>> loss = np.linspace(0.1, 0.9, 40)
    >>> found = fitted(loss, np.exp(1 + 8 * loss))
    >>> found.fits, [round(each, 6) for each in found.coefficients], round(found.error, 6)
    (True, [1.0, 8.0], 1.0)
    >>> fitted(loss[:5], loss[:5]).reason
    'the trade-off has 5 steps and a curve needs at least 12'
    """
    if len(loss) < FEWEST:
        return Fit(False, f"the trade-off has {counted(len(loss), 'step')} and a curve needs at least {FEWEST}")
    if (different := len(np.unique(values))) < FEWEST:
        return Fit(False, f"privacy takes {counted(different, 'different value')} and a curve needs at least {FEWEST}")
    if values.min() <= 0:
        return Fit(False, "some values of the privacy measure are zero or negative")
    result = _best_polynomial(loss, values)
    inside = (loss >= loss.min() + MIDDLE[0] * np.ptp(loss)) & (loss <= loss.min() + MIDDLE[1] * np.ptp(loss))
    if result.fits or np.count_nonzero(inside) < FEWEST:
        return result
    middle = _best_polynomial(loss[inside], values[inside])
    return middle if middle.fits else result


def _best_polynomial(loss: Floats, values: Floats) -> Fit:
    target = np.log(values)
    rising = [degree for degree in DEGREES if _monotone(loss, target, degree)]
    if not rising:
        return Fit(False, "no fitted polynomial is monotone")
    errors = {degree: _held_out_errors(loss, target, degree) for degree in rising}
    # A higher degree must predict clearly better, or else the simpler polynomial is kept.
    degree = min(d for d in rising if _rms(errors[d]) <= 1.05 * min(_rms(e) for e in errors.values()))
    off = errors[degree]
    factor = float(np.exp(_rms(off)))
    explained = 1.0 - float(np.mean(off**2)) / max(float(np.var(target)), 1e-12)
    worst = float(np.exp(np.max(np.abs(off))))
    if factor > TYPICAL or worst > WORST:
        why = f"the best polynomial is typically off by a factor of {factor:.2f}, at worst {worst:.2f}"
        return Fit(False, f"{why} (the limits are {TYPICAL} and {WORST})", error=factor)
    if explained < EXPLAINED:
        return Fit(False, f"the best polynomial explains only {explained * 100:.0f} % of the variation", error=factor)
    terms = tuple(_polynomial(loss, target, degree).tolist())
    return Fit(True, "", terms, float(loss.min()), float(loss.max()), factor, worst, explained)


def _polynomial(loss: Floats, target: Floats, degree: int) -> Floats:
    with warnings.catch_warnings():
        # steps with nearly equal loss can make a fold badly conditioned; its error then rules the degree out
        warnings.simplefilter("ignore")
        result = np.polynomial.Polynomial.fit(loss, target, degree).convert().coef
    return np.asarray(np.pad(result, (0, degree + 1 - len(result))))


def _monotone(loss: Floats, target: Floats, degree: int) -> bool:
    """Return whether the polynomial is monotone between the ends."""
    inside = np.linspace(loss.min(), loss.max(), 200)
    steps = np.diff(np.polynomial.polynomial.polyval(inside, _polynomial(loss, target, degree)))
    return bool(np.all(np.sign(target[-1] - target[0]) * steps >= -1e-3 * np.ptp(target)))


def _held_out_errors(loss: Floats, target: Floats, degree: int) -> Floats:
    """Return the error at each step of a polynomial fitted without it and every FOLDS-th step from it."""
    # Every FOLDS-th step is in the same fold: neighbouring steps differ little, so blocks would test extrapolation.
    errors = np.empty(len(loss))
    fold = np.arange(len(loss)) % FOLDS
    for left_out in range(FOLDS):
        out = fold == left_out
        curve = _polynomial(loss[~out], target[~out], degree)
        errors[out] = np.polynomial.polynomial.polyval(loss[out], curve) - target[out]
    return errors


def _rms(errors: Floats) -> float:
    """Return the root mean square of errors."""
    return float(np.sqrt(np.mean(errors**2)))
