"""The result of any search: a front of points over objectives, saved as one folder."""

from sfumato.front.compare import Comparison, compare_fronts
from sfumato.front.front import PRICE_UNIT, PRICES, Front, Objective, Point, numbered, read_front, versions

__all__ = [
    "PRICES",
    "PRICE_UNIT",
    "Comparison",
    "Front",
    "Objective",
    "Point",
    "compare_fronts",
    "numbered",
    "read_front",
    "versions",
]
