"""Local recodings at the edges: stopped in the middle of a k, near full loss, criteria beside suppression."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.release.fronts import ANYTHING

import sfumato as sf
from sfumato.errors import UnreachableError
from sfumato.methods.local.criteria import whole_tuples
from sfumato.methods.local.model import Cells, Classes, Column, labels_of

ACCEPT = {"identifying:id": "made for a test", "uniques": "made for a test"}


def study_of(frame: pd.DataFrame, sensitive: tuple[str, ...] = (), **settings: object) -> sf.Study:
    keys = [name for name in frame if name not in sensitive]
    study = sf.Study(frame, quasi_identifiers=keys, sensitive=list(sensitive))
    return study.with_settings({"search": {"system": "local"}, "policy": dict(ANYTHING)} | settings)


@pytest.mark.long
def test_a_k_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    """A stop offers what there is of a k, by its true method; resumed, the search ends as if it had not been asked."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.integers(0, 30, 600), "b": rng.integers(0, 20, 600), "c": rng.integers(0, 4, 600)})
    study = study_of(frame, local={"k": [5, 10], "effort": 3})
    whole = sf.search(study)
    calls = 0

    def progress(done: int, total: int) -> bool:
        nonlocal calls
        calls += 1
        return calls > 2

    state = tmp_path / "state.npz"
    stopped = sf.search(study, progress=progress, checkpoint=state)
    assert stopped.points[0].details["method"] in ("best boxes", "order and runs")
    resumed = sf.search(study, checkpoint=state, resume=True)
    assert [point.saved() for point in resumed.points] == [point.saved() for point in whole.points]
    assert resumed.found_how == whole.found_how != ""


def test_a_draw_near_full_loss_is_published(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4, 5, 6], "b": list("uvwxyz")})
    front = sf.search(study_of(frame, local={"k": [6], "draw": 0.2, "test_seed": 1}))
    (point,) = front.points
    assert point.loss == 1.0
    assert point.values["general_loss"] == 12.0
    assert point.details["ratio"] == pytest.approx(point.loss / point.details["floor"])
    assert sf.verify(sf.publish(sf.pick(front, point=0), tmp_path / "out", accept=ACCEPT).folder)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_suppression_that_is_allowed_makes_nothing_unreachable(share: float) -> None:
    """Either half could be suppressed, and then nothing is left to join the other with."""
    frame = pd.DataFrame({"a": [1] * 3 + [100] * 3, "s": ["x"] * 3 + ["y"] * 3})
    search = {"system": "local", "max_suppression": share, "constraints": {"distinct_l": 2}}
    front = sf.search(study_of(frame, ("s",), search=search, local={"k": [2]}))
    assert [(point.values["k"], point.values["distinct_l"]) for point in front.points] == [(6.0, 2.0)]
    frame["s"] = "x"
    with pytest.raises(UnreachableError, match="as one class"):
        sf.search(study_of(frame, ("s",), search=search, local={"k": [2]}))


def test_a_criterion_without_a_k_is_no_dearer_than_with_two() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"a": rng.integers(0, 40, 200), "b": rng.integers(0, 5, 200), "s": rng.choice(list("xyz"), 200)}
    )
    fronts = [
        sf.search(
            study_of(frame, ("s",), search={"system": "local", "constraints": {"distinct_l": 2}}, local={"k": ks})
        )
        for ks in ([1], [2])
    ]
    assert min(p.loss for p in fronts[0].points) <= min(p.loss for p in fronts[1].points) + 1e-12


def test_a_k_beyond_the_table_is_said_to_be_left_out() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 2, 3, 3]})
    assert sf.search(study_of(frame, local={"k": [2, 2000]})).found_how.endswith("k 2000 left out, there are 6 records")
    assert "left out" not in sf.search(study_of(frame)).found_how


def test_whole_tuples_suppress_no_more() -> None:
    """Two of three records of a tuple are suppressed: its third keeps all of them in the file."""
    labels = labels_of([Column([1, 1], [], False)], [1.0])
    cells = Cells(np.array([[0], [1]], np.int32), np.array([3, 2]))
    classes = Classes.of(labels, cells, np.array([0, 0, 1]), np.array([-1, 0, 0]), np.array([2, 1, 2]))
    assert (classes.suppressed, whole_tuples(classes).suppressed) == (2, 0)
