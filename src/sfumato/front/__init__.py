"""The result of any search: a front of points over objectives, saved as one folder."""

from sfumato.front.comparison import Comparison, compare_fronts
from sfumato.front.front import PRICE_UNIT, PRICES, Front, read_front, versions
from sfumato.front.objective import Objective
from sfumato.front.point import Point, numbered

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
