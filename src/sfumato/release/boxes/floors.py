"""What a saved front says of its floors, before it is released: figures that contradict each other are refused.

A front is a file that anybody can edit. So a floor is not believed: it may be no more than its prices add up to, no
more than the loss above it, and the ratio and the bound have to follow from it. Whether every box can pay these prices
takes a walk over all boxes, which `sfumato floor` does; until then a floor is what the search says.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sfumato.errors import DataError
from sfumato.front import PRICE_UNIT, Front, Point
from sfumato.measures.standard import K
from sfumato.runtime.arrays import Counts64
from sfumato.tables.frequency import FrequencyTable
from sfumato.tables.missing import loss_of_entered

ROUNDING = 1e-9
PRICED = ("local",)  # systems whose floors are proven by prices
REMEDY = "search again"


def refuse_floors(front: Front, point: Point, table: FrequencyTable) -> None:
    """Raise unless every floor that a front states fits its prices and its losses, and so does the point released.

    Args:
        front: the front as it was saved.
        point: what is released of it; a draw may have changed its loss.
        table: the frequency table of its study.
    """
    full = sum(front.study.weights_for(table)) * table.records
    for one in front.points:
        floor = stated_floor(front, one, full)
        if floor is not None and front.system in PRICED:
            refuse_unpaid(floor, front, int(one.values[K.name]), table)
    floor = point.details.get("floor")
    if floor is not None and (
        point.details["floor"] != front.point(point.id).details.get("floor") or not _at_most(floor, point.loss)
    ):
        raise _refused("its loss is below its floor, or the floor is not that of the front")


def stated_floor(front: Front, point: Point, full: float) -> float | None:
    """The floor of a point for the records that entered the search, None where it has none.

    An error if its loss, ratio or bound contradicts it.
    """
    details = point.details
    if "floor" not in details:
        if "ratio" in details or (point.bound is not None and point.bound > 0):
            raise _refused(f"point {point.id} has a ratio or a bound and no floor")
        return None
    floor, ratio = details["floor"], details.get("ratio")
    if not _number(floor) or floor < 0 or (ratio is not None and not _number(ratio)):
        raise _refused(f"the floor of point {point.id} is no share of the cells")
    if not _at_most(floor, point.loss):
        raise _refused(f"the loss of point {point.id} is below its floor")
    floor, loss = front.loss_of_entered(floor), front.loss_of_entered(point.loss)
    if (ratio is None) != (floor == 0) or (ratio is not None and not _close(ratio * floor, loss)):
        raise _refused(f"the ratio of point {point.id} is not its loss divided by its floor")
    if point.bound is None or not _close(point.bound, floor * full):
        raise _refused(f"the bound of point {point.id} is not its floor")
    return float(floor)


def refuse_unpaid(floor: float, front: Front, k: int, table: FrequencyTable) -> None:
    """Raise if a floor is more than its prices add up to."""
    if k not in front.prices:
        raise _refused(f"there are no prices for the floor at k = {k}")
    prices: Counts64 = front.prices[k]
    if len(prices) != table.tuples or not np.all((prices >= 0) & (prices <= PRICE_UNIT)):
        raise _refused(f"the prices of the floor at k = {k} are not between 0 and 1, one for each tuple")
    if not _at_most(floor, float((prices / PRICE_UNIT) @ table.counts) / table.rows):
        raise _refused(f"the floor at k = {k} is more than its prices add up to")


def floor_differences(point: dict[str, Any], loss: float, records: int, left_out: int) -> list[str]:
    """What is wrong with the floor that a manifest states; a draw leaves the ratio of what was promised.

    A ratio is without the records left out.
    """
    details = point.get("details", {})
    if "floor" not in details:
        return ["its point has a ratio and no floor"] if "ratio" in details else []
    floor, ratio = details["floor"], details.get("ratio")
    if not _number(floor) or not _at_most(floor, loss):
        return ["its floor is above its loss"]
    floor, loss = (loss_of_entered(one, records, left_out) for one in (floor, details.get("promised", loss)))
    if ratio is None and floor == 0:
        return []
    if not _number(ratio) or not _close(ratio * floor, loss):
        return ["its ratio is not its loss divided by its floor"]
    return []


def _number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _at_most(floor: float, loss: float) -> bool:
    return floor <= loss * (1 + ROUNDING) + ROUNDING**2


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING**2)


def _refused(what: str) -> DataError:
    return DataError(
        f"the front contradicts itself: {what}",
        expected="a front as the search saved it; nothing was released",
        remedy=REMEDY,
    )
