"""Classes that look alike where missing values match anything: the join against all pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.measures.classes import matching_pairs


@given(st.data())
def test_the_join_finds_every_pair(data: st.DataObject) -> None:
    columns, classes = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9))
    cells = st.lists(st.integers(0, 2), min_size=classes, max_size=classes)
    groups = np.unique(np.array([data.draw(cells) for _ in range(columns)], dtype=np.int32), axis=1)
    wild = np.array([data.draw(st.sampled_from([-1, 2])) for _ in range(columns)], dtype=np.int32)
    left, right = matching_pairs(groups, wild)

    def alike(one: int, two: int) -> bool:
        return all(
            a == b or (w >= 0 and w in (a, b)) for a, b, w in zip(groups[:, one], groups[:, two], wild, strict=True)
        )

    def missing(one: int) -> bool:
        return any(w >= 0 and a == w for a, w in zip(groups[:, one], wild, strict=True))

    expected = [
        (one, two)
        for one in range(groups.shape[1])
        for two in range(groups.shape[1])
        if one != two and alike(one, two) and (missing(one) or missing(two))
    ]
    assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == expected
