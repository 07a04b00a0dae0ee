"""Published and reference figures on Adult."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.measures.classes import classify
from sfumato.measures.measure import Goal
from sfumato.measures.registry import measure
from sfumato.measures.suppression import budget, suppress_below, suppress_within
from sfumato.methods.lattice.problem import LatticeProblem
from sfumato.plans.recodings import at_levels

HERE = Path(__file__).parent
PYCANON = json.loads((HERE.parent / "measures" / "pycanon_adult.json").read_text())


def test_rows_and_tuples(adult: sf.FrequencyTable) -> None:
    assert adult.rows == 30162
    assert adult.tuples == 12458
    assert [domain.hierarchy.height for domain in adult.domains] == [6, 3, 3, 3, 1, 1, 4, 1]


@pytest.mark.parametrize("node", PYCANON["nodes"], ids=lambda node: "".join(map(str, node["levels"])))
def test_equals_pycanon(adult: sf.FrequencyTable, node: dict[str, object]) -> None:
    assert list(adult.columns) == PYCANON["columns"]
    classes = classify(adult, at_levels(adult, node["levels"]))  # type: ignore[arg-type]
    for name in ("k", "distinct_l", "t_closeness", "alpha_k", "beta_likeness"):
        assert measure(name).value(classes) == pytest.approx(node[name], rel=1e-9), name
    present = measure("delta_disclosure").with_parameters({"absent": "ignored"})
    assert present.value(classes) == pytest.approx(node["delta_disclosure"], rel=1e-9)


def test_the_recorded_nodes_tell_measures_apart() -> None:
    """A record in which every k is 1 would prove little."""
    assert len({node["k"] for node in PYCANON["nodes"]}) >= 4
    assert len({node["distinct_l"] for node in PYCANON["nodes"]}) >= 3


@pytest.mark.parametrize(
    ("levels", "k", "loss"),
    [((0, 0, 0, 0, 0, 0, 0, 0), 1, 0.0), ((6, 3, 3, 3, 1, 1, 4, 1), 30162, 30162 * 8)],
)
def test_ends_of_the_lattice(adult: sf.FrequencyTable, levels: tuple[int, ...], k: int, loss: float) -> None:
    classes = classify(adult, at_levels(adult, levels))
    assert measure("k").value(classes) == k
    assert measure("general_loss").value(classes) == pytest.approx(loss)


def test_no_node_beats_the_golden_front(adult: sf.FrequencyTable) -> None:
    """Points of the exact front at η = 301 : no node drawn at random beats one."""
    most = budget(0.01, adult.records)
    assert most == 301
    figures = []
    heights = [domain.hierarchy.height for domain in adult.domains]
    rng = np.random.default_rng(3)
    for _ in range(300):
        node = [int(rng.integers(0, height + 1)) for height in heights]
        classes = suppress_within(classify(adult, at_levels(adult, node)), most)
        figures.append((measure("k").value(classes), measure("general_loss").value(classes)))
    golden = [(2, 46085.6224), (10, 90592.6707), (51, 118343.55), (249, 141279.107)]
    for k, loss in golden:
        assert all(found_loss >= loss - 0.01 for found_k, found_loss in figures if found_k >= k)


@pytest.mark.parametrize("step", [20, pytest.param(1, marks=pytest.mark.published)])
def test_loss_of_every_node_equals_arx(shared: Path, arx_adult: sf.Study, step: int) -> None:
    """Every node by the compiled walk, and every twentieth (published: every one) by its class table."""
    table = arx_adult.table()
    loss = measure("arx_loss")
    with (shared / "data/arx/adult/reference_arx392_adult9_k5_all_nodes.csv").open() as file:
        nodes = list(csv.reader(file))[1:]
    assert len(nodes) == 12960
    levels = np.array([[int(level) for level in row[:9]] for row in nodes], dtype=np.int32)
    figures = LatticeProblem(table, [Goal(loss, "min")], 301, least_size=5).figures(levels)
    np.testing.assert_allclose(figures.values[:, 0], [float(row[9]) for row in nodes], atol=1e-9)
    assert (figures.suppressed <= 301).tolist() == [row[10] == "1" for row in nodes]
    for row in nodes[::step]:
        classes = suppress_below(classify(table, at_levels(table, [int(level) for level in row[:9]])), 5)
        assert loss.value(classes) == pytest.approx(float(row[9]), abs=1e-9)
        assert (classes.suppressed_rows <= 301) == (row[10] == "1")
