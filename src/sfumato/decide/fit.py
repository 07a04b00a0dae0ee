"""A curve through a trade-off: a polynomial of low degree, offered with its error or refused with the reason."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import counted
from sfumato.runtime.arrays import Floats

FEWEST = 12  # steps of a curve
DEGREES = (1, 2, 3, 4)
TYPICAL, WORST = 1.25, 2.5  # the factors by which a curve may be off, typically and at its worst step
MIDDLE = (0.05, 0.95)  # where a curve does not reach the ends of the loss, it may still fit between
EXPLAINED = 0.9  # the share of the variation that a curve must explain for steps it was not fitted to
FOLDS = 8


@dataclass(frozen=True)
class Fit:
    """log(value) as a polynomial of the loss, if it fits: `error` is the factor it is typically off by.

    The error is that of steps the curve was not fitted to (cross-validation).
    """

    fits: bool
    reason: str = ""
    coefficients: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 0.0
    error: float | None = None
    worst: float | None = None
    explained: float | None = None

    def value(self, loss: float) -> float:
        """What the curve says at a loss."""
        return float(np.exp(np.polynomial.polynomial.polyval(loss, self.coefficients)))

    def says(self, title: str) -> str:
        if not self.fits:
            return f"No curve was fitted: {self.reason}."
        powers = ["", "·x", "·x²", "·x³", "·x⁴"]
        terms = [f"{c:+.4g}{power}" for c, power in zip(self.coefficients, powers, strict=False)]
        said = " ".join(f"{term[0]} {term[1:]}" for term in terms).removeprefix("+ ")
        return (
            f"log({title}) ≈ {said}, x the loss as a share, from {self.low * 100:.0f} % to {self.high * 100:.0f} %; "
            f"typically off by a factor of {self.error:.2f}, at worst {self.worst:.2f}."
        )

    def as_dict(self) -> dict[str, Any]:
        if not self.fits:
            return {"fits": False, "reason": self.reason, "error_factor": self.error}
        return {
            "fits": True,
            "form": "log(value) = sum of coefficients[i] * loss**i",
            "coefficients": list(self.coefficients),
            "from_loss": self.low,
            "to_loss": self.high,
            "error_factor": self.error,
            "worst_factor": self.worst,
            "explained": self.explained,
        }


def fitted(loss: Floats, values: Floats) -> Fit:
    """Fit a curve to the steps of a trade-off.

    >>> loss = np.linspace(0.1, 0.9, 40)
    >>> found = fitted(loss, np.exp(1 + 8 * loss))
    >>> found.fits, round(found.value(0.5)), round(found.error, 6)
    (True, 148, 1.0)
    >>> fitted(loss[:5], loss[:5]).reason
    'the trade-off has 5 steps and a curve needs at least 12'
    """
    if len(loss) < FEWEST:
        return Fit(False, f"the trade-off has {counted(len(loss), 'step')} and a curve needs at least {FEWEST}")
    if len(np.unique(values)) < FEWEST:
        different = counted(len(np.unique(values)), "different value")
        return Fit(False, f"privacy takes {different} and a curve needs at least {FEWEST}")
    if values.min() <= 0:
        return Fit(False, "some values of the privacy measure are zero or negative")
    result = _fitted(loss, values)
    inside = (loss >= loss.min() + MIDDLE[0] * np.ptp(loss)) & (loss <= loss.min() + MIDDLE[1] * np.ptp(loss))
    if result.fits or np.count_nonzero(inside) < FEWEST:
        return result
    middle = _fitted(loss[inside], values[inside])
    return middle if middle.fits else result


def _fitted(loss: Floats, values: Floats) -> Fit:
    target = np.log(values)
    rising = [degree for degree in DEGREES if _one_way(loss, target, degree)]
    if not rising:
        return Fit(False, "no fitted polynomial is monotone")
    errors = {degree: _unseen(loss, target, degree) for degree in rising}
    # A higher degree must predict clearly better, or the simpler curve is kept.
    degree = min(d for d in rising if _size(errors[d]) <= 1.05 * min(_size(e) for e in errors.values()))
    off = errors[degree]
    factor = float(np.exp(_size(off)))
    explained = 1.0 - float(np.mean(off**2)) / max(float(np.var(target)), 1e-12)
    worst = float(np.exp(np.max(np.abs(off))))
    if factor > TYPICAL or worst > WORST:
        why = f"the best polynomial is typically off by a factor of {factor:.2f}, at worst {worst:.2f}"
        return Fit(False, f"{why} (the limits are {TYPICAL} and {WORST})", error=factor)
    if explained < EXPLAINED:
        return Fit(False, f"the best polynomial explains only {explained * 100:.0f} % of the variation", error=factor)
    coefficients = _polynomial(loss, target, degree)
    terms = tuple(float(c) for c in coefficients)
    return Fit(True, "", terms, float(loss.min()), float(loss.max()), factor, worst, explained)


def _polynomial(loss: Floats, target: Floats, degree: int) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # neighbours may stand so close that a fold is badly conditioned: it loses then
        result = np.polynomial.Polynomial.fit(loss, target, degree).convert().coef
    return np.asarray(np.pad(result, (0, degree + 1 - len(result))))


def _one_way(loss: Floats, target: Floats, degree: int) -> bool:
    """Whether the curve never turns back between the ends."""
    inside = np.linspace(loss.min(), loss.max(), 200)
    steps = np.diff(np.polynomial.polynomial.polyval(inside, _polynomial(loss, target, degree)))
    return bool(np.all(np.sign(target[-1] - target[0]) * steps >= -1e-3 * np.ptp(target)))


def _unseen(loss: Floats, target: Floats, degree: int) -> Floats:
    """The error at each step of a curve fitted without it and every FOLDS-th step from it."""
    errors = np.empty(len(loss))
    fold = np.arange(len(loss)) % FOLDS
    for left_out in range(FOLDS):
        out = fold == left_out
        curve = _polynomial(loss[~out], target[~out], degree)
        errors[out] = np.polynomial.polynomial.polyval(loss[out], curve) - target[out]
    return errors


def _size(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))
