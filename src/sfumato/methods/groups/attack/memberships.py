"""Membership functions of fuzzy sets: the degree, from 0 to 1, to which a value belongs to a term.

If a shoulder has no width the plateau takes precedence (docs/readings.md, 4.6). As printed in the paper, the value at
which a shoulder both starts and ends would have degree 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Floats
from sfumato.errors import StudyError, nearest


def gaussian(x: Floats, a: float, b: float) -> Floats:
    """Return the bell of width a around b.

    >>> gaussian(np.array([27.5, 29.5]), 2.0, 27.5).round(4).tolist()
    [1.0, 0.6065]
    """
    grades: Floats = np.exp(-((x - b) ** 2) / (2 * a * a))
    return grades


def trapezoid(x: Floats, a: float, b: float, c: float, d: float) -> Floats:
    """Return straight shoulders a–b and c–d around the plateau b–c.

    >>> trapezoid(np.array([8.0, 9.0, 10.0, 11.0]), 8, 10, 11, 11).tolist()
    [0.0, 0.5, 1.0, 1.0]
    """
    return _plateau(x, a, b, c, d, lambda u: u)


def pi(x: Floats, a: float, b: float, c: float, d: float) -> Floats:
    """Return smooth shoulders a–b and c–d around the plateau b–c.

    >>> pi(np.array([530.0, 555.0, 580.0, 630.0, 900.0]), 530, 630, 800, 900).tolist()
    [0.0, 0.125, 0.5, 1.0, 0.0]
    """
    return _plateau(x, a, b, c, d, _smooth)


def s(x: Floats, a: float, b: float) -> Floats:
    """Return a smooth rise from 0 at a to 1 at b.

    >>> s(np.array([2.0, 7.0, 12.0]), 2, 12).tolist()
    [0.0, 0.5, 1.0]
    """
    return _plateau(x, a, b, np.inf, np.inf, _smooth)


def z(x: Floats, a: float, b: float) -> Floats:
    """Return a smooth fall from 1 at a to 0 at b.

    >>> z(np.array([2.0, 4.5, 7.0, 9.5, 12.0]), 2, 12).tolist()
    [1.0, 0.875, 0.5, 0.125, 0.0]
    """
    return _plateau(x, -np.inf, -np.inf, a, b, _smooth)


def crisp(x: Floats, low: float, high: float) -> Floats:
    """Return 1 from low to high, otherwise 0.

    >>> crisp(np.array([0.0, 1.0, 9.0]), 1, 9).tolist()
    [0.0, 1.0, 1.0]
    """
    return ((x >= low) & (x <= high)).astype(np.float64)


def _smooth(u: Floats) -> Floats:
    return np.where(u <= 0.5, 2 * u * u, 1 - 2 * (1 - u) ** 2)


def _plateau(x: Floats, a: float, b: float, c: float, d: float, shoulder: Callable[[Floats], Floats]) -> Floats:
    grades = np.zeros(len(x))
    rising, falling = (x > a) & (x < b), (x > c) & (x < d)
    grades[(x >= b) & (x <= c)] = 1.0
    grades[rising] = shoulder((x[rising] - a) / (b - a))
    grades[falling] = shoulder((d - x[falling]) / (d - c))
    return grades


KINDS: dict[str, tuple[Callable[..., Floats], int]] = {
    "gaussian": (gaussian, 2),
    "trapezoid": (trapezoid, 4),
    "pi": (pi, 4),
    "s": (s, 2),
    "z": (z, 2),
    "crisp": (crisp, 2),
}


@dataclass(frozen=True)
class Term:
    """A term for a range of values: its name and its membership function.

    >>> Term("young", "pi", (7.05, 15.4, 22.5, 27.18))(np.array([20, 30])).tolist()
    [1.0, 0.0]
    """

    name: str
    kind: str
    numbers: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise StudyError(
                f'unknown membership function "{self.kind}"',
                expected="a membership function",
                remedy=nearest(self.kind, KINDS),
            )
        wanted = KINDS[self.kind][1]
        if len(self.numbers) != wanted:
            raise StudyError(
                f'the term "{self.name}" has {len(self.numbers)} numbers', expected=f"{wanted} for {self.kind}"
            )
        ordered = list(self.numbers) == sorted(self.numbers) if self.kind != "gaussian" else self.numbers[0] > 0
        if not ordered:
            raise StudyError(
                f'the numbers of the term "{self.name}" are {list(self.numbers)}',
                expected="a width above 0, then the centre" if self.kind == "gaussian" else "numbers that never fall",
            )

    def __call__(self, values: npt.ArrayLike) -> Floats:
        grades: Floats = KINDS[self.kind][0](np.asarray(values, dtype=np.float64), *self.numbers)
        return grades
