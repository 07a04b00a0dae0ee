"""What a notebook shows of a result: one line, a small table, a picture, a frame; never a sensitive value."""

from __future__ import annotations

import io
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest
from tests.frames.kinds import MAKERS, ROLES, SIX

import sfumato as sf

CANARY = "ZqCanary"
SECRET = {
    **SIX,
    "disease": [f"{CANARY}{place % 3}" for place in range(6)],
    "name": [f"{CANARY}name{p}" for p in range(6)],
}
POLICY = {"k": 1, "l": 1, "t": 1.0, "uniques": 1.0, "identifying": 1.0, "reason": "a table made for a test"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: Any) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("shown")
    tree = {0: [f"{CANARY}{place}" for place in range(3)], 1: [f"{CANARY}group"] * 3, 2: ["*"] * 3}
    study = sf.Study(pandas.DataFrame(SECRET), **ROLES, policy=POLICY)
    study = study.with_hierarchies(age=sf.intervals(20), zip=sf.prefixes(2))
    columns = {**study.columns, "disease": {"role": "sensitive", "distance": "hierarchical"}}
    study = study._changed(columns=columns).with_hierarchies(disease=tree)
    front = sf.search(study, max_suppression=0.2)
    choice = sf.pick(front, min_k=3)
    answer = sf.ask(front, min_k=3)
    channels = sf.search(study.with_settings({"channel": {"columns": ["disease"], "points": 2}}), system="channel")
    release = sf.publish(choice, folder / "release", state=folder / "state")
    audit = sf.audit(study)
    table = study.table()
    return {
        "study": study,
        "audit": audit,
        "front": front,
        "choice": choice,
        "answer": answer,
        "release": release,
        "channels": channels,
        "channel choice": sf.pick(channels, point=0),
        "point": front[0],
        "channel point": channels[0],
        "plan": channels[0].plan,
        "figure": audit.figures["distinct_l"],
        "inspection": sf.inspect(pandas.DataFrame(SECRET)),
        "profile": sf.inspect(pandas.DataFrame(SECRET)).columns,
        "verification": sf.verify(release.folder, source=pandas.DataFrame(SECRET)),
        "table": table,
        "values": table.sensitive["disease"],
        "hierarchy": table.sensitive["disease"].domain.hierarchy,
        "classes": audit.classes,
        "source": study.source(),
    }


def test_reprs_are_one_line_without_sensitive_values(results: dict[str, Any]) -> None:
    """Done when, 4: planted values are in no repr, no str and no HTML."""
    for name, result in results.items():
        for text in (repr(result), str(result), result._repr_html_() if hasattr(result, "_repr_html_") else ""):
            assert CANARY not in text, name
        if name not in ("verification", "profile", "source", "values"):
            assert "\n" not in repr(result), name
            assert len(repr(result)) < 200, name
    for name in ("audit", "front", "channels"):
        assert CANARY not in str(pyarrow.table(results[name].to_frame()) if name != "audit" else "")
    assert CANARY not in str(results["audit"].to_frame().to_dict())
    assert CANARY not in str(results["front"].plot(0).to_json())


def test_html_is_well_formed_and_has_a_picture(results: dict[str, Any]) -> None:
    for name in ("study", "audit", "front", "choice", "answer", "release", "channels"):
        html = results[name]._repr_html_()
        assert html.count("<svg") == 1, name
        assert "<td" in html
        root = xml.etree.ElementTree.fromstring(html)
        for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
            assert 0 <= float(circle.attrib["cx"]) <= 340
            assert 0 <= float(circle.attrib["cy"]) <= 210


def test_front_is_a_sequence(results: dict[str, Any]) -> None:
    front = results["front"]
    assert len(front) == len(front.points)
    assert front[0] is front.points[0]
    assert front[-1] is front.points[-1]
    assert front[:2] == front.points[:2]
    assert list(front) == list(front.points)
    with pytest.raises(IndexError):
        front[len(front)]


@pytest.mark.parametrize("kind", list(MAKERS))
def test_frames_are_of_the_kind_of_the_table(kind: str) -> None:
    study = sf.Study(MAKERS[kind](SIX), **ROLES).with_hierarchies(age=sf.intervals(20), zip=sf.prefixes(2))
    front, audit = sf.search(study), sf.audit(study)
    assert type(front.to_frame()) is type(MAKERS[kind](SIX))
    points = pyarrow.table(front.to_frame("pyarrow"))
    assert points["k"].to_pylist() == [point.values["k"] for point in front]
    assert points["age_level"].to_pylist() == [point.plan.levels["age"] for point in front]
    assert points["loss"].to_pylist() == [point.loss for point in front]
    figures = pyarrow.table(audit.to_frame("polars"))
    assert dict(zip(figures["measure"].to_pylist(), figures["value"].to_pylist(), strict=True))["k"] == audit["k"] == 1
    assert len(front.plot().data[0].x) == len(front)
    with pytest.raises(sf.InputError, match='kind = "arrow"'):
        front.to_frame("arrow")


def test_audit_is_a_mapping_of_figures() -> None:
    audit = sf.audit(sf.Study(polars.DataFrame(SIX), quasi_identifiers=["age", "zip"], drop=["disease", "name"]))
    assert audit["below_2"] == audit["uniques"] == pytest.approx(2 / 6)
    assert "k" in audit
    assert "t_closeness" not in audit
    assert dict(audit)["k"] == 1
    with pytest.raises(sf.MeasureError, match="t_closeness could not be measured"):
        audit["t_closeness"]
    with pytest.raises(sf.MeasureError, match='unknown measure "kk"'):
        audit["kk"]


def test_progress_bar() -> None:
    out = io.StringIO()
    study = sf.Study(polars.DataFrame(SIX), **ROLES).with_hierarchies(age=sf.intervals(20), zip=sf.prefixes(2))
    plain = sf.search(study)
    shown = sf.search(study, sf.ProgressBar("search", out))
    assert shown.points == plain.points
    assert out.getvalue().endswith("100 %\n")
    assert out.getvalue().count("\r") <= 101
