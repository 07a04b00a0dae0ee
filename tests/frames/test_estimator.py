"""The scikit-learn transformer: k by hand, pipelines, clones, set_output, and scikit-learn's own checks."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import estimator_checks
from tests.frames.kinds import MAKERS, SIX, columns_of

import sfumato as sf

TREES = {"age": sf.intervals(20), "zip": sf.prefixes(2)}
SETTINGS: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["disease"], "hierarchies": TREES}
NUMBERS = "scikit-learn subtracts what comes out, and recoded columns are text; test_like_its_checks compares the text"
EXPECTED = dict.fromkeys(
    (
        "check_pipeline_consistency",
        "check_estimators_pickle",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_fit_idempotent",
    ),
    NUMBERS,
)
QUICK = (
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_no_attributes_set_in_init",
    "check_estimators_overwrite_params",
    "check_n_features_in",
    "check_fit2d_1sample",
    "check_transformer_get_feature_names_out",
)


@pytest.mark.parametrize("kind", list(MAKERS))
def test_by_hand(kind: str) -> None:
    frame = MAKERS[kind](SIX)
    out = sf.Anonymizer(k=3, **SETTINGS).fit_transform(frame)
    assert type(out) is type(frame)
    assert columns_of(out) == SIX | {"age": ["20-39"] * 3 + ["40-59"] * 3, "zip": ["10***"] * 3 + ["20***"] * 3}
    assert sf.measures.k(out, ["age", "zip"]) == 3


def test_rows_that_are_rare_in_the_fitted_table_are_hidden() -> None:
    table = pandas.DataFrame(SIX, index=list("uvwxyz"))
    rare = table.iloc[:2].assign(age=[65, 99], zip="20095")
    frame = pandas.concat([table, rare.set_axis(["p", "q"])])
    fitted = sf.Anonymizer(k=2, max_suppression=0.3, **SETTINGS).fit(frame)
    out = fitted.transform(frame)
    hidden = out[out["age"] == "*"]
    assert list(hidden.index) == ["p", "q"]
    assert list(hidden["zip"]) == ["*", "*"]
    assert len(out) == 8
    new = frame.assign(zip="20095", age=31).iloc[:1]  # both values are known, together they are not
    assert list(fitted.transform(new)["age"]) == ["*"]
    strange = frame.assign(zip="99999")
    with pytest.raises(ValueError, match="zip has values that the fitted table and its hierarchies lack") as caught:
        fitted.transform(strange)
    assert "99999" not in str(caught.value)
    assert set(clone(fitted).set_params(unknown="star").fit(frame).transform(strange)["zip"]) == {"*"}
    with pytest.raises(ValueError, match="no generalization meets the limits"):
        sf.Anonymizer(k=9, **SETTINGS).fit(frame)


def test_pipelines_and_set_output() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(20, 80, 60), rng.integers(0, 3, 60)]).astype(float)
    y = (X[:, 0] > 50).astype(int)
    pipeline = make_pipeline(sf.Anonymizer(k=5), OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    assert pipeline.fit(X, y).score(X, y) > 0.6
    frame = pandas.DataFrame(X, columns=["age", "group"])
    asked = sf.Anonymizer(k=5).set_output(transform="polars").fit(frame)
    assert isinstance(asked.transform(frame), polars.DataFrame)
    assert asked.transform(frame).columns == ["age", "group"]
    given = sf.Anonymizer(k=5).set_output(transform="pandas").fit_transform(X)
    assert list(given.columns) == ["x0", "x1"]
    assert given.groupby(["x0", "x1"]).size().min() >= 5


def test_a_pickled_transformer_holds_no_rows() -> None:
    secret = SIX | {"disease": [f"ZqCanary{place % 2}" for place in range(6)], "name": list("uvwxyz")}
    fitted = sf.Anonymizer(k=3, **SETTINGS).fit(polars.DataFrame(secret))
    kept = pickle.dumps(fitted)
    assert b"ZqCanary" not in kept
    again = pickle.loads(kept)
    assert columns_of(again.transform(polars.DataFrame(SIX))) == columns_of(fitted.transform(polars.DataFrame(SIX)))


@pytest.mark.long
def test_like_its_checks() -> None:
    """What scikit-learn's checks ask for where they can only compare numbers: the same text, row by row."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(14, 2))
    fitted = sf.Anonymizer(k=2, unknown="star").fit(X)
    out = fitted.transform(X)
    order = rng.permutation(14)
    assert np.array_equal(fitted.transform(X[order]), out[order])
    assert np.array_equal(np.vstack([fitted.transform(row[None]) for row in X[:3]]), out[:3])
    assert np.array_equal(fitted.fit(X).transform(X), out)
    assert np.array_equal(clone(fitted).fit_transform(X), out)
    assert np.array_equal(clone(fitted).fit_transform(X.tolist()), out)
    assert np.array_equal(make_pipeline(clone(fitted)).fit_transform(X), out)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUICK)
def test_some_of_its_checks(name: str) -> None:
    getattr(estimator_checks, name)("Anonymizer", sf.Anonymizer(k=2, unknown="star"))


@pytest.mark.published
@pytest.mark.filterwarnings("ignore")
def test_all_of_its_checks() -> None:
    """45 checks; those named in EXPECTED fail for the reason given there, and no other."""
    results = estimator_checks.check_estimator(
        sf.Anonymizer(k=2, unknown="star"), expected_failed_checks=EXPECTED, on_fail=None, on_skip=None
    )
    failed = {one["check_name"]: repr(one["exception"]) for one in results if one["status"] == "failed"}
    assert failed == {}
    assert {one["check_name"] for one in results if one["status"] == "xfail"} == set(EXPECTED)


def test_hidden_rows_are_a_class_too() -> None:
    """One rare row would be alone behind its stars; where the hidden rows are too few, nothing is hidden."""
    table = pandas.DataFrame({"job": ["a"] * 10 + ["b"] * 10 + ["c"], "sick": ["n", "y"] * 10 + ["y"]})
    out = sf.Anonymizer(k=5, sensitive=["sick"], max_suppression=0.1).fit_transform(table)
    assert out.groupby("job").size().min() >= 5
    many = pandas.DataFrame({"job": [*("a" * 40), *("b" * 40), *"cdefg"], "sick": ["n", "y"] * 40 + ["y"] * 5})
    hidden = sf.Anonymizer(k=5, sensitive=["sick"], max_suppression=0.1).fit_transform(many)
    assert (hidden["job"] == "*").sum() == 5
    diverse = sf.Anonymizer(k=5, l=2, sensitive=["sick"], max_suppression=0.1).fit_transform(many)
    assert diverse.groupby("job")["sick"].nunique().min() >= 2
