"""The best losses known of problem 2 in the setting of the cuts paper, reached by the default (issue 17)."""

from __future__ import annotations

import statistics

import pytest

from sfumato.methods.search import search
from sfumato.papers.cuts import paper_setting

MARKS = {5: 0.1833, 10: 0.2215, 14: 0.2477, 20: 0.2748, 50: 0.3371}


@pytest.mark.published
def test_the_default_reaches_the_marks_of_problem_two() -> None:
    """The median of five seeds at each k."""
    study = paper_setting(2)
    table = study.table()
    fronts = [search(study.with_search(seed=seed), table=table) for seed in range(1, 6)]
    for k, mark in MARKS.items():
        losses = [min(point.loss for point in front.points if point.values["k"] >= k) for front in fronts]
        assert statistics.median(losses) <= mark, (k, losses)
