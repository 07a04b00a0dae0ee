"""The knee of a front: one definition, on the scale that an objective says of itself."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.decide.curve import Curve
from sfumato.decide.offers import Offers
from sfumato.errors import InputError
from sfumato.front import Front, Objective, Point
from sfumato.measures.fast_paths import Form
from sfumato.plans.recodings import LevelPlan


def _front(objective: Objective, values: list[float], losses: list[float]) -> Front:
    points = [
        Point(i, {objective.name: value, "general_loss": loss}, loss, 0, LevelPlan({"age": i}))
        for i, (value, loss) in enumerate(zip(values, losses, strict=True))
    ]
    study = sf.Study(data={"path": "none.csv"}, columns={"age": {"role": "quasi_identifier"}})
    return Front(study, (objective, Objective("general_loss", "min")), tuple(points), "exact", True, 3, 9, 0.0, "", 9)


def _curve(front: Front) -> Curve:
    k = np.array([point.values["k"] for point in front.points]).astype(np.int64)
    loss = np.array([point.loss for point in front.points])
    none, numbers = np.zeros(len(k), np.int64), np.arange(len(k))
    nothing = loss * np.nan
    offers = Offers(front, numbers, none == 0, k, none - 1, nothing, nothing, loss, none, none, none)
    return Curve.of(offers, Objective.of(Form.SIZE))


def test_pick_and_ask_mean_the_same_knee() -> None:
    """On a logarithm k = 2 is a tenth of the way from 1 to 1000, for a twelfth of the loss; log(1 + k) says less."""
    front = _front(Objective("k", "max"), [1, 2, 1000], [0.0, 0.08, 1.0])
    assert sf.pick(front, knee=True).point.id == 1
    knee = _curve(front).knee()
    assert knee is not None
    assert knee.point == 1


@pytest.mark.parametrize(("scale", "knee"), [("linear", 0), ("log", 1)])
def test_an_objective_says_its_scale(scale: str, knee: int) -> None:
    """Of 1, 10, 100 the middle is half-way on a logarithm and a tenth of the way on even steps; it costs 0.3."""
    own = Objective("crowd", "max", title="people in a crowd", privacy=True, scale=scale)
    front = _front(own, [1, 10, 100], [0.0, 0.3, 1.0])
    assert sf.pick(front, knee=True).point.id == knee
    assert Objective(**own.as_dict()) == own


def test_a_scale_nobody_knows_is_refused(tmp_path) -> None:
    front = _front(Objective("crowd", "max", title="x", privacy=True, scale="bent"), [1, 10, 100], [0.0, 0.3, 1.0])
    with pytest.raises(InputError, match="cannot be read"):
        front.save(tmp_path / "front")
