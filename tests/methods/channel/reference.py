"""The reference priors and fronts of the channel system, and strategies for priors and matrices."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from sfumato.base.arrays import Floats

CASES = {"normal": 0.8, "uniform": 0.75, "adult_age": 0.75, "adult_marital": 0.75}
RECORDS = 10_000


def prior_of(shared: Path, name: str) -> Floats:
    with (shared / "fronts" / "channel" / "priors.csv").open(encoding="utf-8") as stream:
        shares = np.array([float(row["p"]) for row in csv.DictReader(stream) if row["prior"] == name])
    return shares / shares.sum()


def rows_of(shared: Path, name: str, method: str) -> list[tuple[float, float]]:
    path = shared / "fronts" / "channel" / f"{name}_delta{CASES[name]:g}.csv"
    with path.open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["method"] == method]
    return [(float(row["privacy"]), float(row["mse"])) for row in rows]


def bell() -> Floats:
    """The standard normal on ten equal bins of [−3, 3]."""
    from math import erf, sqrt

    edges = [0.5 * (1 + erf((-3 + 0.6 * i) / sqrt(2))) for i in range(11)]
    shares = np.diff(edges)
    return shares / shares.sum()


@st.composite
def priors(draw: st.DrawFn, most: int = 6) -> Floats:
    size = draw(st.integers(2, most))
    weights = np.array(draw(st.lists(st.floats(0.02, 1.0), min_size=size, max_size=size)))
    return weights / weights.sum()


@st.composite
def matrices(draw: st.DrawFn, categories: int, outputs: int | None = None) -> Floats:
    """Random matrices with some zeros; columns sum to one."""
    rows = outputs if outputs is not None else draw(st.integers(categories, categories + 3))
    cells = st.one_of(st.just(0.0), st.floats(0.01, 1.0))
    matrix = np.array(draw(st.lists(cells, min_size=rows * categories, max_size=rows * categories)))
    matrix = matrix.reshape(rows, categories)
    matrix[draw(st.integers(0, rows - 1))] += 0.05
    return matrix / matrix.sum(axis=0)
