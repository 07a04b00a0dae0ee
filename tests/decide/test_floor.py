"""The floor of local recodings under other fronts of the same study."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.release.fronts import small

import sfumato as sf
from sfumato.cli import run
from sfumato.decide.floor import BELOW, floor_levels, local_points, ratios, why_not, with_floor
from sfumato.decide.map import band_traces, floor_edge, global_edge
from sfumato.errors import InputError
from sfumato.front import Front


@pytest.fixture(scope="module")
def fronts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Front, Front]:
    folder = tmp_path_factory.mktemp("floor")
    study = small(folder, rows=150, sex={"role": "quasi_identifier", "hierarchy": {"build": "flat"}})
    lattice = sf.search(study)
    local = sf.search(study.with_search(system="local").with_settings({"local": {"k": [2, 5, 10], "passes": 1}}))
    lattice.save(folder / "lattice")
    local.save(folder / "local")
    return folder, lattice, local


def test_no_point_of_any_front_is_below_the_floor(fronts: tuple[Path, Front, Front]) -> None:
    _, lattice, local = fronts
    levels = floor_levels(local)
    for front in (lattice, local):
        found = ratios(front, levels)
        assert found is not None
        assert found[0] >= 1


def test_the_floor_is_drawn_and_compared(
    fronts: tuple[Path, Front, Front], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, lattice, local = fronts
    words = ["map", str(folder / "lattice"), "--floor", str(folder / "local"), "-o", str(tmp_path / "map.html")]
    assert run(words) == 0
    assert BELOW in (tmp_path / "map.html").read_text("utf-8")
    capsys.readouterr()
    assert run(["compare", str(folder / "lattice"), str(folder / "local"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["loss_to_floor"]
    levels = floor_levels(local)
    assert found == [list(ratios(front, levels) or ()) for front in (lattice, local)]
    assert run(["compare", str(folder / "lattice"), str(folder / "local")]) == 0
    assert BELOW in capsys.readouterr().out


def test_a_floor_of_other_labels_does_not_hold(fronts: tuple[Path, Front, Front], tmp_path: Path) -> None:
    _, lattice, local = fronts
    with pytest.raises(InputError, match="has no floor"):
        with_floor(local, lattice)
    free = small(tmp_path, rows=150, age={"role": "quasi_identifier", "constrained": False})
    assert "other columns" in why_not(Front(**{**lattice.__dict__, "study": free}), local)
    other = Front(**{**lattice.__dict__, "fingerprint": "other"})
    assert why_not(other, local) == "it is of another table"


def test_the_bands_by_hand(fronts: tuple[Path, Front, Front]) -> None:
    """Floors of 1 % at k = 2 and 3 % at k = 5: from 5 on it is 3 % for every k, up to the whole table.

    The edge of the other band are the losses of the exact front; where the search was not exact there is none.
    """
    _, lattice, local = fronts
    two = replace(local.points[0], values={"k": 2.0}, details={"floor": 0.01}, loss=0.02)
    five = replace(local.points[0], values={"k": 5.0}, details={"floor": 0.03}, loss=0.05)
    below = with_floor(lattice, replace(local, points=(two, five)))
    assert floor_edge(below) == [(1.0, 2.0), (3.0, 5.0), (3.0, 150.0)]
    assert local_points(below) == [(2.0, 0.02), (5.0, 0.05)]
    assert global_edge(below) == [(round(100 * p.loss, 4), p.values["k"]) for p in lattice.points]
    assert [trace["name"].split(" (")[0] for trace in band_traces(below)] == [
        "no recoding by levels below",
        BELOW,
        "local recodings found",
    ]
    assert global_edge(replace(below, exact=False)) == []
    assert band_traces(lattice) == []


def test_an_answer_tells_the_floor_and_the_ratio_to_it(
    fronts: tuple[Path, Front, Front], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, lattice, local = fronts
    answer = sf.ask(lattice, min_k=5, floor=local, search=False)
    lowest = local.points[2].details["floor"]
    assert (answer.offer.k, local.points[2].values["k"]) == (11, 10)
    assert answer.above_floor == (lowest, answer.offer.loss / lowest)
    assert sf.ask(lattice, min_k=5, search=False).above_floor is None
    words = ["ask", str(folder / "lattice"), "--min-k", "5", "--floor", str(folder / "local")]
    assert run(words) == 0
    assert BELOW in capsys.readouterr().out
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["floor"]["ratio"] == answer.offer.loss / lowest
