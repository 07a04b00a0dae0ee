"""The error of two-way tables: by hand, by plain pandas, and as SPEC has it for Mondrian on Adult."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.measures import two_way
from sfumato.measures.classes import classify
from sfumato.measures.registry import measure
from sfumato.measures.two_way import box_errors, grouped_errors, mean_and_largest, source_tables
from sfumato.papers.baselines import LocalTable
from sfumato.papers.cuts import paper_setting
from sfumato.plans.recodings import LevelPlan


def plain_errors(source: pd.DataFrame, labels: pd.DataFrame, inside: dict[str, dict[str, list[str]]]) -> list[float]:
    """Each record spread over the values of its labels, table by table."""
    errors = []
    for one, two in combinations(source.columns, 2):
        true = source.groupby([one, two]).size() / len(source)
        spread: dict[tuple[str, str], float] = {}
        for a, b in zip(labels[one], labels[two], strict=True):
            cells = [(v, w) for v in inside[one][a] for w in inside[two][b]]
            for cell in cells:
                spread[cell] = spread.get(cell, 0.0) + 1 / len(cells) / len(labels)
        moved = pd.Series(spread).sub(true.rename_axis([None, None]), fill_value=0.0)
        errors.append(float(moved.abs().sum() / 2))
    return errors


def test_a_recoding_is_as_plain_pandas_says() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a": rng.choice(["p", "q", "r", "s"], 40),
            "b": rng.choice(["x", "y", "z"], 40),
            "c": rng.choice(["m", "n"], 40),
        }
    )
    halves = {"p": "pq", "q": "pq", "r": "rs", "s": "rs"}
    groups = {"a": halves, "b": {v: v for v in "xyz"}, "c": dict.fromkeys("mn", "*")}
    tree = {"role": "quasi_identifier", "hierarchy": {"paths": [[v, half, "*"] for v, half in halves.items()]}}
    study = sf.Study(frame, quasi_identifiers=["b", "c"], columns={"a": tree})
    table = study.table()
    classes = classify(table, LevelPlan({"a": 1, "b": 0, "c": 1}).recoding(table))
    labels = pd.DataFrame({name: frame[name].map(group) for name, group in groups.items()})
    inside = {n: {g: [v for v in group if group[v] == g] for g in set(group.values())} for n, group in groups.items()}
    assert measure("table_error").value(classes) == pytest.approx(np.mean(plain_errors(frame, labels, inside)))


@pytest.mark.parametrize("released", [0, 30])
def test_the_compiled_loop_is_as_its_plain_twin(released: int) -> None:
    """Groups at random, one of them without values, and some classes suppressed, or all."""
    rng = np.random.default_rng(released)
    widths, radix = np.array([6, 3, 4, 1]), np.array([3, 2, 4, 2])
    codes = rng.integers(0, widths, (50, 4)).T
    group = np.concatenate([rng.integers(0, r, w) for r, w in zip(radix - (radix > 3), widths, strict=True)])
    start = np.array([0, 6, 9, 13])
    tables = source_tables(codes, np.ones(50, np.int64), widths.tolist())
    shares = np.concatenate([table.ravel() for table in tables.values()])
    labels = np.stack([group[start[j] + codes[j]] for j in range(4)]).astype(np.int32)
    rows = np.where(np.arange(50) < released, 1, 0)
    given = (shares, widths, group.astype(np.uint32), start, radix, labels, rows)
    assert grouped_errors(*given) == pytest.approx(two_way.plain_errors(*given), abs=1e-12)


def test_boxes_are_as_plain_pandas_says() -> None:
    """Classes of two by the order of the rows: labels overlap from class to class."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, [5, 4, 3], (30, 3))
    tuples, of = np.unique(codes, axis=0, return_inverse=True)
    counts = np.bincount(of.reshape(-1))
    low, high = codes.reshape(15, 2, 3).min(axis=1), codes.reshape(15, 2, 3).max(axis=1) + 1
    found = box_errors(tuples.T, counts, [5, 4, 3], low, high, np.full(15, 2))
    names = ["a", "b", "c"]
    source = pd.DataFrame(codes.astype(str), columns=names)
    labels = pd.DataFrame({n: [f"{low[i // 2, j]}:{high[i // 2, j]}" for i in range(30)] for j, n in enumerate(names)})
    inside = {n: {lab: [str(v) for v in range(*map(int, lab.split(":")))] for lab in labels[n]} for n in names}
    assert list(found.values()) == pytest.approx(plain_errors(source, labels, inside))


def test_mondrian_on_adult_is_as_published() -> None:
    study = paper_setting(4)
    found = LocalTable.of(study, study.table()).classes("mondrian_relaxed", 20)
    assert found is not None
    classes, _ = found
    widths, cells = np.diff(classes.labels.unit).tolist(), classes.cells
    errors = box_errors(cells.codes.T, cells.counts, widths, classes.low, classes.high, classes.rows)
    assert len(errors) == 28
    assert mean_and_largest(errors) == (pytest.approx(0.2564, abs=5e-5), pytest.approx(0.673, abs=5e-4))


def test_a_column_of_very_many_values_is_not_tabulated() -> None:
    frame = pd.DataFrame({"code": [str(i) for i in range(2_001)], "sex": ["F", "M", "F"] * 667})
    classes = classify(sf.Study(frame, quasi_identifiers=["code", "sex"]).table())
    assert "more than 2,000 values" in (measure("table_error").available(classes) or "")
