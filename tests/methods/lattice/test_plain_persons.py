"""The exact front in persons is that of every node and every threshold, by loops over rows of text."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measures.plain_units import Rows, distinct

import sfumato as sf
from sfumato.errors import UnreachableError

PATHS = {
    "age": [["21", "20-29", "*"], ["24", "20-29", "*"], ["31", "30-39", "*"], ["38", "30-39", "*"]],
    "ward": [["a", "*"], ["b", "*"], ["c", "*"]],
}
COLUMNS = {name: {"role": "quasi_identifier", "hierarchy": {"paths": paths}} for name, paths in PATHS.items()}
COLUMNS |= {"person": {"role": "unit"}, "ill": {"role": "sensitive", "distance": "equal"}}


def random_rows(rng: np.random.Generator) -> pd.DataFrame:
    rows = int(rng.integers(8, 40))
    person = rng.integers(0, int(rng.integers(3, 14)), rows)
    frame = pd.DataFrame({"person": [f"p{one}" for one in person]})
    for name, paths in PATHS.items():
        frame[name] = rng.choice([path[0] for path in paths], rows)
        if rng.random() < 0.4:
            frame[name] = frame.groupby("person")[name].transform("first")
    frame["ill"] = rng.choice(["cold", "flu", "gout"], rows)
    return frame


def cell(name: str, value: str, level: int) -> tuple[str, float]:
    """The label of a value at a level, and its loss."""
    label = next(path[level] for path in PATHS[name] if path[0] == value)
    under = sum(path[level] == label for path in PATHS[name])
    return label, (under - 1) / (len(PATHS[name]) - 1)


def every_release(frame: pd.DataFrame, share: float, least: int) -> set[tuple[int, float]]:
    """k and loss of all releases: a node, and a threshold below which classes go, as do those with ℓ below `least`."""
    persons, found = frame["person"].tolist(), set()
    budget, rows = int(share * 1000) * len(set(persons)) // 1000, len(frame)
    for levels in product(*(range(len(paths[0])) for paths in PATHS.values())):
        cells = [
            [cell(name, value, level) for name, level, value in zip(PATHS, levels, values, strict=True)]
            for values in frame[list(PATHS)].itertuples(index=False)
        ]
        keys = [tuple(label for label, _ in one) for one in cells]
        classes = defaultdict(list)
        for row, key in enumerate(keys):
            classes[key].append(row)
        everything = Rows(keys, [True] * rows, persons, None, frame["ill"].tolist(), frozenset(), [], None, False)
        short = {key for key, members in classes.items() if distinct(everything, members) < least}
        sizes = {key: len({persons[row] for row in members}) for key, members in classes.items()}
        for threshold in set(sizes.values()):
            kept = {key for key in classes if sizes[key] >= threshold and key not in short}
            gone = {persons[row] for row in range(rows) if keys[row] not in kept}
            if kept and len(gone) <= budget:
                loss = sum(sum(price for _, price in cells[r]) if keys[r] in kept else len(PATHS) for r in range(rows))
                found.add((min(sizes[key] for key in kept), round(loss / rows / len(PATHS), 9)))
    return found


def best(found: set[tuple[int, float]]) -> list[tuple[int, float]]:
    """Those that no other is at least as good as in both."""
    return sorted(
        (k, loss) for k, loss in found if not any(a >= k and b <= loss and (a, b) != (k, loss) for a, b in found)
    )


@pytest.mark.parametrize("least", [1, 2])
@given(seed=st.integers(0, 1 << 30))
def test_the_exact_front_is_that_of_every_release(least: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame, share = random_rows(rng), float(rng.choice([0.0, 0.2, 0.4]))
    study = sf.Study(frame, columns=COLUMNS)
    limits = {"distinct_l": least} if least > 1 else {}
    expected = best(every_release(frame, share, least))
    try:
        front = sf.search(study, max_suppression=share, constraints=limits)
    except UnreachableError:
        assert not expected
        return
    assert sorted((int(point.values["k"]), round(point.loss, 9)) for point in front) == expected
