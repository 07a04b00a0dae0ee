"""Bounds that exclude nodes are never beyond what a release there has, by plain loops over rows."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import EXAMPLES
from tests.methods.lattice.releases import CRITERIA, TOTALS, Node, Release, releases_by_node, way
from tests.strategies import tables

import sfumato as sf
from sfumato.methods.lattice.search import Search
from sfumato.tables.frequency import FrequencyTable

LIMITS = st.dictionaries(st.sampled_from(sorted(CRITERIA)), st.sampled_from([0.4, 0.8, 1.5, 2]), max_size=2)
BOUNDED = ("k", "prosecutor_risk", "distinct_l", "sum_k", "general_loss", "arx_loss", "precision", "discernibility")
GAINING = ("marketer_risk", "sum_l")  # by suppression, so that they are sought with a threshold on size


@pytest.mark.parametrize("name", BOUNDED)
@given(data=st.data())
@settings(max_examples=3 * EXAMPLES)
def test_no_bound_is_beyond_a_release_that_it_bounds(name: str, data: st.DataObject) -> None:
    """One that is known beforehand bounds its node and all coarser ones; one that was met, all on its side."""
    table = data.draw(tables(most_rows=14))
    secret = table.sensitive["s"]
    table = replace(
        table,
        domains=tuple(replace(domain, declared=True) for domain in table.domains),
        sensitive={"s": replace(secret, domain=replace(secret.domain, distance="equal"))},
    )
    other = data.draw(st.sampled_from([each for each in (*CRITERIA, *TOTALS) if each != name]))
    limits, share = data.draw(LIMITS), data.draw(st.sampled_from([0, 0.1, 0.3, 0.6]))
    search = {"objectives": [name, other], "constraints": limits, "max_suppression": share}
    ready = Search.prepare(sf.Study(data={"path": "none"}, columns={}, search=search), table)
    nodes = ready.problem.rollup.all_nodes
    evaluated = ready.evaluate(nodes)
    met = dict(zip(map(tuple, evaluated.nodes.tolist()), evaluated.bounds.tolist(), strict=True))
    least = least_by_node(table, [name, other], limits, int(share * table.records + 1e-9))
    for column, bound in enumerate(ready.bounds(nodes)):
        known = None if bound.known is None else bound.known.tolist()
        if known is None and bound.moves is None:
            assert bound.name != name
            continue
        rises = known is not None or bound.moves == "rises"
        for place, node in enumerate(map(tuple, nodes.tolist())):
            low = met[node][column] if known is None else known[place]
            for there, values in least.items():
                fine, coarse = (node, there) if rises else (there, node)
                if all(a <= b for a, b in zip(fine, coarse, strict=True)):
                    assert low <= values[bound.name] + 1e-9 * abs(values[bound.name]), (bound.name, node, there)
                    assert bound.limit is None or low <= bound.limit, (bound.name, node, there)


def least_by_node(
    table: FrequencyTable, objectives: list[str], limits: dict[str, float], most: int
) -> dict[Node, Release]:
    """The least that releases of each node have of each figure, all minimised."""
    sought = [
        *(["k"] if {*GAINING, "k"} & {*objectives} else []),
        *(n for n in objectives if n in CRITERIA and n != "k"),
    ]
    least: dict[Node, Release] = {}
    for node, release in releases_by_node(table, sought, limits, most):
        values = {name: -way(name) * release[name] for name in {*objectives, *limits}}
        values["suppression"] = release["suppressed"]
        known = least.setdefault(node, dict.fromkeys(values, math.inf))
        least[node] = {name: min(value, known[name]) for name, value in values.items()}
    return least
