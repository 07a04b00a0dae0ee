"""Matrices of randomized response that need no search: Warner's, uniform perturbation, FRAPP, GRR.

All four are one family: a diagonal p, the rest shared equally. They differ in the name of their parameter.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.errors import InputError, nearest
from sfumato.runtime.arrays import Floats


def warner(categories: int, truth: float) -> Floats:
    """Report the truth with probability p, each other category with (1 − p)/(n − 1).

    >>> warner(3, 0.5)
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    _within("the probability of the truth", truth, 0.0, 1.0)
    matrix = np.full((categories, categories), (1.0 - truth) / (categories - 1))
    np.fill_diagonal(matrix, truth)
    return matrix


def uniform_perturbation(categories: int, retention: float) -> Floats:
    """Keep the value with probability q, else draw any category: Warner's with p = q + (1 − q)/n.

    >>> bool(np.allclose(uniform_perturbation(4, 0.2), warner(4, 0.4)))
    True
    """
    _within("the probability of keeping a value", retention, 0.0, 1.0)
    return warner(categories, retention + (1.0 - retention) / categories)


def frapp(categories: int, ratio: float) -> Floats:
    """The truth λ times as likely as each other category: Warner's with p = λ/(λ + n − 1).

    >>> bool(np.allclose(frapp(4, 3.0), warner(4, 0.5)))
    True
    """
    _within("the ratio", ratio, 1.0, math.inf)
    return warner(categories, ratio / (ratio + categories - 1))


def grr(categories: int, epsilon: float) -> Floats:
    """Generalized randomized response with ε of local differential privacy: FRAPP with λ = e^ε.

    >>> bool(np.allclose(grr(4, math.log(3)), frapp(4, 3.0)))
    True
    """
    _within("epsilon", epsilon, 0.0, 500.0)
    return frapp(categories, math.exp(epsilon))


FAMILIES = {"warner": warner, "uniform_perturbation": uniform_perturbation, "frapp": frapp, "grr": grr}


def response_matrix(family: str, categories: int, parameter: float) -> Floats:
    """A matrix by the name of its family."""
    if family not in FAMILIES:
        raise InputError(f'unknown family "{family}"', expected="a family", remedy=nearest(family, FAMILIES))
    return FAMILIES[family](categories, parameter)


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} is {value:g}", expected=f"a number from {low:g} to {high:g}")
