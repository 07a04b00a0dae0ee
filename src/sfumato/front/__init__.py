"""The result of any search: a front of points over objectives, saved as one folder."""

from sfumato.front.compare import Comparison as Comparison
from sfumato.front.compare import compare_fronts as compare_fronts
from sfumato.front.front import PRICE_UNIT as PRICE_UNIT
from sfumato.front.front import PRICES as PRICES
from sfumato.front.front import Front as Front
from sfumato.front.front import Objective as Objective
from sfumato.front.front import Point as Point
from sfumato.front.front import numbered as numbered
from sfumato.front.front import read_front as read_front
from sfumato.front.front import versions as versions
