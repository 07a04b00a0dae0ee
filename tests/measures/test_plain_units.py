"""Every privacy measure of random persons and households, from the file on, equals plain Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measures.plain_units import EXEMPT, Key, Rows, figures

import sfumato as sf
from sfumato.measures.classes import EXEMPT as IS_EXEMPT
from sfumato.measures.classes import ClassTable, classify, with_population
from sfumato.measures.registry import known_measures
from sfumato.measures.suppression import suppress_below, suppress_within
from sfumato.plans.recodings import at_levels
from sfumato.tables.frequency import FrequencyTable, Population

PRIVACY = {name: measure for name, measure in known_measures().items() if measure.kind == "privacy"}
PATHS = {
    "age": [["21", "20-29", "*"], ["24", "20-29", "*"], ["31", "30-39", "*"], ["38", "30-39", "*"]],
    "ward": [["a", "*"], ["b", "*"], ["c", "*"]],
}
ILL = ["1", "2", "3", "4"]
COLUMNS = {
    "person": {"role": "unit"},
    "age": {"role": "quasi_identifier", "hierarchy": {"paths": PATHS["age"]}},
    "ward": {"role": "quasi_identifier", "hierarchy": {"paths": PATHS["ward"]}},
    "weight": {"role": "weight"},
}


def table_of(rng: np.random.Generator, missing: str) -> tuple[pd.DataFrame, bool]:
    """Random rows: of few or many persons, some columns constant within persons or households, with blanks or none."""
    rows = int(rng.integers(4, 40))
    person = rng.integers(0, int(rng.integers(2, 16)), rows)
    household = rng.integers(0, 6, 16)[person]
    frame = pd.DataFrame(
        {
            "person": [f"p{one}" for one in person],
            "family": [f"f{one}" for one in household],
            "age": rng.choice([path[0] for path in PATHS["age"]], rows),
            "ward": rng.choice([path[0] for path in PATHS["ward"]], rows),
            "ill": rng.choice(ILL, rows, p=rng.dirichlet([1.0] * 4)),
            "weight": rng.integers(1, 9, rows).astype(str),
        }
    ).astype(object)
    for column in ("age", "ward", "ill"):
        if rng.random() < 0.4:
            owner = "family" if column == "ill" and rng.random() < 0.5 else "person"
            frame[column] = frame.groupby(owner)[column].transform("first")
    for column in ("age", "ward", "ill"):
        if rng.random() < 0.6:
            frame.loc[rng.random(rows) < rng.choice([0.1, 0.4]), column] = None
    if missing == "drop" and len(frame[["age", "ward", "ill"]].dropna()) < 3:
        frame = frame.ffill().bfill()
    return frame, bool(rng.random() < 0.6)


def labelled(frame: pd.DataFrame, levels: dict[str, int], wild: bool) -> list[Key]:
    """The keys of rows, generalized by hand: a missing value is a branch of its own, or matches anything."""

    def label(column: str, value: str | None) -> str | None:
        top = len(PATHS[column][0]) - 1
        if levels[column] == top:
            return "*"
        if value is None:
            return None if wild else "missing"
        return next(path[levels[column]] for path in PATHS[column] if path[0] == value)

    return [
        tuple(label(column, value) for column, value in zip(PATHS, row, strict=True))
        for row in frame[list(PATHS)].itertuples(index=False)
    ]


def population_of(table: FrequencyTable, frame: pd.DataFrame) -> FrequencyTable:
    """The same table with a population of the given rows."""
    codes = [
        [domain.missing if value is None else domain.labels.index(value) for value in frame[domain.name]]
        for domain in table.domains
    ]
    each, counts = np.unique(np.array(codes, dtype=np.int32), axis=1, return_counts=True)
    return replace(table, population=Population(each, counts.astype(np.int64)))


def sizes_of(keys: list[Key], frame: pd.DataFrame, kept: list[bool]) -> list[int]:
    """n of the class of each row, among the rows that are kept."""
    result = []
    for key in keys:
        crowd = [
            row
            for row, other in enumerate(keys)
            if kept[row] and all(a == b or a is None or b is None for a, b in zip(key, other, strict=True))
        ]
        result.append(len({frame["person"][row] for row in crowd}))
    return result


def within(keys: list[Key], frame: pd.DataFrame, allowed: int) -> list[bool]:
    """The rows that are left when whole sizes go, from the smallest, while at most so many persons lose a row."""
    everyone = [True] * len(keys)
    sizes = sizes_of(keys, frame, everyone)
    kept = everyone
    for size in sorted(set(sizes))[1:]:
        left = [one >= size for one in sizes]
        if frame["person"][[not one for one in left]].nunique() > allowed:
            break
        kept = left
    return kept


def at_least(keys: list[Key], frame: pd.DataFrame, k: int) -> list[bool]:
    kept = [True] * len(keys)
    while True:
        sizes = sizes_of(keys, frame, kept)
        left = [one and size >= k for one, size in zip(kept, sizes, strict=True)]
        if left == kept:
            return kept
        kept = left


def suppressed(
    classes: ClassTable, keys: list[Key], frame: pd.DataFrame, rng: np.random.Generator
) -> tuple[ClassTable, list[bool]]:
    """The classes after one of two rules of suppression, and the rows that are left by the same rule."""
    if classes.pairs is None and rng.random() < 0.5:
        allowed = int(rng.integers(0, 1 + frame["person"].nunique() // 2))
        return suppress_within(classes, allowed), within(keys, frame, allowed)
    k = int(rng.integers(1, 4))
    kept = at_least(keys, frame, k)
    return (suppress_below(classes, k), kept) if any(kept) else (classes, [True] * len(keys))


@pytest.mark.parametrize("missing", ["category", "wildcard", "drop"])
@given(seed=st.integers(0, 1 << 30))
def test_every_measure_equals_plain_python(missing: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame, households = table_of(rng, missing)
    harmless = frozenset(["1"]) if rng.random() < 0.4 else frozenset()
    distance = "ordered" if rng.random() < 0.4 else "equal"
    ill = {"role": "sensitive", "distance": distance} | ({"harmless": sorted(harmless)} if harmless else {})
    family = {"role": "household" if households else "drop"}
    study = sf.Study(frame, columns=COLUMNS | {"ill": ill, "family": family}, data={"missing": missing})
    table = study.table()
    if missing == "drop":
        whole, frame = frame, frame.dropna(subset=["age", "ward", "ill"]).reset_index(drop=True)
        assert table.left_out == len(whole) - len(frame)
    levels = {name: int(rng.integers(0, len(paths[0]))) for name, paths in PATHS.items()}
    keys = labelled(frame, levels, missing == "wildcard")
    people = None
    if missing != "wildcard" and rng.random() < 0.6:
        extra = frame.sample(int(rng.integers(0, 20)), replace=True, random_state=seed % 1000)
        people = pd.concat([frame, extra], ignore_index=True)
        table = population_of(table, people)
    classes = classify(table, at_levels(table, tuple(levels[domain.name] for domain in table.domains)))
    classes, kept = suppressed(classes, keys, frame, rng)
    assert classes.suppressed_rows == kept.count(False)
    assert classes.suppressed_units == frame["person"][[not one for one in kept]].nunique()
    if people is not None:
        classes = with_population(classes)
    expected = figures(
        Rows(
            keys,
            kept,
            frame["person"].tolist(),
            frame["family"].tolist() if households else None,
            frame["ill"].tolist(),
            harmless,
            [float(weight) for weight in frame["weight"]],
            None if people is None else labelled(people, levels, wild=False),
            distance == "ordered",
        )
    )
    unfit = set() if households else {name for name in PRIVACY if name.startswith("household")}
    if people is None:
        unfit.add("journalist_risk")
    assert set(PRIVACY) - unfit == set(expected)
    for name, measure in PRIVACY.items():
        if name in unfit:
            assert measure.available(classes) is not None
            continue
        assert measure.available(classes) is None, name
        found = measure.value(classes)
        found = EXEMPT if found == IS_EXEMPT else found
        assert found == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name
