"""One question, one answer: pick and ask on a front over node and threshold, and every release of its lattice."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import UnreachableError
from sfumato.systems.lattice.problem import Figures
from sfumato.systems.lattice.search import Search

QUESTIONS = 200


@pytest.fixture(scope="module", params=[0.0, 0.02])
def asked(request: pytest.FixtureRequest, adult: sf.FrequencyTable) -> tuple[sf.Front, Figures, sf.FrequencyTable]:
    """A front, and every release of every node of its lattice."""
    study = sf.read(sf.sample("adult")).with_search(max_suppression=request.param)
    ready = Search.prepare(study, adult)
    return sf.search(study, table=adult), ready.problem.figures(ready.problem.rollup.all_nodes), adult


def test_pick_ask_and_brute_force_agree(asked: tuple[sf.Front, Figures, sf.FrequencyTable]) -> None:
    front, every, table = asked
    k, losses = every.worst[:, 0], every.losses / (len(table.columns) * table.records)
    rng = np.random.default_rng(17)
    for number in range(QUESTIONS):
        if number % 2:
            least = int(np.exp(rng.uniform(0, np.log(table.records))))
            expected = losses[k >= least].min()
            answer = sf.ask(front, min_k=least, table=table)
            choice = sf.pick(front, min_k=least)
            assert answer.offer.k >= least
            assert choice.point.values["k"] >= least
            assert answer.offer.loss == pytest.approx(expected, rel=1e-12, abs=1e-15)
            assert choice.point.loss == pytest.approx(expected, rel=1e-12, abs=1e-15)
        else:
            limit = float(rng.uniform(0, 1))
            within = losses <= limit + 1e-12
            if not within.any():
                with pytest.raises(UnreachableError):
                    sf.pick(front, max_loss=limit)
                continue
            expected = k[within].max()
            assert sf.ask(front, max_loss=limit, table=table).offer.k == expected
            assert sf.pick(front, max_loss=limit).point.values["k"] == expected


def test_baselines_have_the_answer_of_the_front(asked: tuple[sf.Front, Figures, sf.FrequencyTable]) -> None:
    front, _, table = asked
    found = sf.baselines(front.study, [5, 20], fronts=[front], methods=["lattice_optimum"], table=table)
    for least in (5, 20):
        best = sf.pick(front, min_k=least).point
        assert found.row("lattice_optimum", least).loss == pytest.approx(best.loss, rel=1e-12)
        assert found.row("lattice", least).loss == pytest.approx(best.loss, rel=1e-12)
