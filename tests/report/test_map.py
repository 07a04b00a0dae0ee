"""The pictures of a front: what they hold, and that a page stays light and alone."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.front import Objective, Point
from sfumato.report.map_figures import bars_of, cumulative, windows


@pytest.fixture(scope="module")
def lattice(adult: sf.FrequencyTable) -> sf.Front:
    return sf.search(sf.read(sf.sample("adult-complete")), table=adult)


def text_of(front: sf.Front, path: Path, *arguments: object) -> str:
    text = sf.draw(front, path, *arguments).read_text("utf-8")  # type: ignore[arg-type]
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "http" not in markup
    assert "<script src" not in text
    calls = re.findall(r"Plotly\.newPlot\((.*?)</script>", text, flags=re.DOTALL)
    assert not re.search(r'"type":\s*"(scattergl|splom|parcoords)"', "".join(calls))
    return text


def test_the_map_of_a_lattice_front(lattice: sf.Front, adult: sf.FrequencyTable, tmp_path: Path) -> None:
    text = text_of(lattice, tmp_path / "map.html", 4, adult, (4, 30))
    for part in (
        "The front, enlarged",
        "Class sizes of two points",
        "Effect of point 4",
        "Four common questions",
    ):
        assert part in text
    for name in ("map", "magnified", "distributions", "partitions"):
        assert f'id="{name}"' in text
    assert "Every pair of objectives" not in text


@pytest.mark.long
def test_the_map_of_three_objectives(adult: sf.FrequencyTable, tmp_path: Path) -> None:
    study = sf.read(sf.sample("adult-complete"))
    loose = {name: study.columns[name].model_copy(update={"constrained": False}) for name in ("education", "race")}
    study = study.replace(columns=loose).with_search(
        system="cuts", problem=4, algorithm=None, max_suppression=0.1, generations=3, population=16, local_search=1
    )
    front = sf.search(study, table=adult)
    text = text_of(front, tmp_path / "map.html", None, adult)
    assert 'id="matrix"' in text
    assert "best balance" in text
    four = replace(front, objectives=(*front.objectives, Objective("suppression_loss", "min")))
    share = {p.id: {"suppression_loss": p.suppressed / front.rows} for p in front.points}
    four = replace(four, points=tuple(replace(p, values={**p.values, **share[p.id]}) for p in front.points))
    assert 'id="matrix"' in text_of(four, tmp_path / "four.html", 0, adult)


def test_two_thousand_points_stay_light(lattice: sf.Front, adult: sf.FrequencyTable, tmp_path: Path) -> None:
    base = lattice.points[4]
    points = tuple(
        Point(i, {"k": i + 1, "general_loss": 241296 * i / 2000}, i / 2000, 0, base.plan) for i in range(2000)
    )
    many = replace(lattice, points=points, others=()).with_classes(adult)
    text = text_of(many, tmp_path / "map.html", 7, adult)
    assert text.count("<tr") <= 213  # with the common limits
    assert "of 2000 points, evenly spaced" in text
    assert len(text) < 6_500_000
    assert "<b>chosen.</b>" in text


def test_class_sizes_add_up_and_bars_hold_every_record(lattice: sf.Front, adult: sf.FrequencyTable) -> None:
    sizes, shares = cumulative(lattice, 4)
    assert sizes == sorted(sizes)
    assert shares[-1] == pytest.approx(1.0)
    for domain, part in zip(adult.domains, lattice.point(4).plan.recoding(adult), strict=True):
        bars = bars_of(domain, part, domain.counts)
        assert sum(bar.records for bar in bars) == 30162
        groups = [bar.group for bar in bars]
        assert len({*groups}) == 1 + sum(a != b for a, b in pairwise(groups))


def test_each_window_is_a_part_of_the_one_before() -> None:
    values = np.geomspace(1, 30000, 300)
    found = windows(np.linspace(0, 1, 300), values)
    assert len(found) == 4
    for (low, high), (less, more) in pairwise(found):
        assert low <= less < more <= high
        assert more - less <= (high - low) / 8 + 1e-9


def test_the_command(lattice: sf.Front, tmp_path: Path) -> None:
    lattice.save(tmp_path / "out")
    assert run(["map", str(tmp_path / "out"), "--point", "4", "--compare", "4", "40"]) == 0
    assert "point 40" in (tmp_path / "out/map.html").read_text("utf-8")
    assert run(["map", str(tmp_path / "out"), "--compare", "4", "400", "-o", str(tmp_path / "x.html")]) == 2
