"""Measures as plain functions of a frame, against examples worked by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas
import polars
import pytest
from tests.frames.kinds import MAKERS

import sfumato as sf
from sfumato.measures.registry import function_names

# Two classes: (20-39, 476**) has flu, flu, cancer; (40-59, 479**) has cancer, ulcer, ulcer.
TABLE = {
    "age": ["20-39"] * 3 + ["40-59"] * 3,
    "zip": ["476**"] * 3 + ["479**"] * 3,
    "disease": ["flu", "flu", "cancer", "cancer", "ulcer", "ulcer"],
    "unused": list("uvwxyz"),
}
QUASI = ["age", "zip"]
BY_HAND = {
    "k": 3,
    "l": 2,
    "distinct_l": 2,
    "entropy_l": math.exp(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))),
    "alpha_k": 2 / 3,
    "t": 1 / 3,  # half of |2/3 - 1/3| + |1/3 - 1/3| + |0 - 1/3|
    "beta_likeness": 1.0,  # 2/3 is 1/3 more than 1/3
    "enhanced_beta": 1.0,  # the smaller of 1 and -ln(1/3)
    "recursive_c": 2.0,  # 2 flu, 1 cancer: 2 / 1
    "prosecutor_risk": 1 / 3,
    "marketer_risk": 2 / 6,
    "uniques": 0.0,
}


@pytest.mark.long
@pytest.mark.parametrize("kind", list(MAKERS))
def test_by_hand(kind: str, tmp_path: Path) -> None:
    frame = MAKERS[kind](TABLE)
    figures = {name: getattr(sf.measures, name)(frame, QUASI, "disease") for name in BY_HAND}
    assert figures == pytest.approx(BY_HAND)
    assert isinstance(figures["k"], int)
    assert sf.measures.k(frame, "age") == 3
    # δ without values that a class lacks: ln(2/3 : 1/3) is the largest
    assert sf.measures.delta_disclosure(frame, QUASI, "disease", absent="ignored") == pytest.approx(math.log(2))
    assert sf.measures.delta_disclosure(frame, QUASI, "disease") == math.inf


def test_files_too(tmp_path: Path) -> None:
    pandas.DataFrame(TABLE).to_csv(tmp_path / "people.csv", index=False)
    assert sf.measures.k(tmp_path / "people.csv", QUASI) == 3


def test_parameters_and_errors() -> None:
    frame = polars.DataFrame(TABLE)
    assert sf.measures.recursive_c(frame, QUASI, "disease", l=1) < 1
    with pytest.raises(sf.MeasureError, match="distinct_l needs a sensitive column"):
        sf.measures.l(frame, QUASI)
    with pytest.raises(sf.StudyError, match='the table has no column "agee"'):
        sf.measures.k(frame, ["agee"])
    with pytest.raises(sf.MeasureError, match='k has no parameter "kk"'):
        sf.measures.k(frame, QUASI, kk=2)
    with pytest.raises(AttributeError):
        sf.measures.nothing  # noqa: B018
    ordered = {**TABLE, "disease": [1, 1, 2, 2, 3, 3]}
    equal, near = (
        sf.measures.t(polars.DataFrame(ordered), QUASI, "disease", distance=way) for way in ("equal", "ordered")
    )
    assert (equal, near) == pytest.approx((1 / 3, 1 / 3))


def test_every_measure_has_a_function() -> None:
    assert {"k", "l", "t", "t_closeness", "p_sensitive", "below_2"} <= set(function_names())
    assert set(function_names()) <= set(dir(sf.measures))
    assert "α of (α, k)-anonymity" in (sf.measures.alpha_k.__doc__ or "")


def test_what_pycanon_measured() -> None:
    """A node of Adult that pycanon measured, recoded by the plan and measured as a plain table."""
    kept = json.loads((Path(__file__).parents[1] / "measures" / "pycanon_adult.json").read_text())
    node = kept["nodes"][0]
    run = sf.sample("adult-complete")
    study = sf.read(run)
    settings = study.data
    rows = pandas.read_csv(
        run.parent / settings.path, names=list(settings.names or ()), skipinitialspace=True, dtype=str
    )
    rows = rows[[*kept["columns"], "occupation"]]
    rows = rows[~(rows == "?").any(axis=1)]
    domains = {domain.name: domain for domain in study.table().domains}
    for name, level in zip(kept["columns"], node["levels"], strict=True):
        rows[name] = rows[name].map({path[0]: path[level] for path in domains[name].hierarchy.paths})
    figures = {
        n: getattr(sf.measures, n)(rows, kept["columns"], "occupation")
        for n in ("k", "l", "t", "alpha_k", "beta_likeness")
    }
    expected = [node[n] for n in ("k", "distinct_l", "t_closeness", "alpha_k", "beta_likeness")]
    assert list(figures.values()) == pytest.approx(expected, rel=1e-9)


def test_a_missing_value_is_a_value_as_in_pandas() -> None:
    table = pandas.DataFrame({"age": ["20-39"] * 3 + [None], "zip": ["476**"] * 4})
    assert sf.measures.k(table, QUASI) == table.groupby(QUASI, dropna=False).size().min() == 1
    assert sf.measures.k(table, QUASI, missing="drop") == 3
    study = sf.Study(table, quasi_identifiers=QUASI, missing="drop")
    assert "1 left out: missing values" in repr(sf.audit(study))
