"""Visits of patients, and what plain pandas counts of a released file in persons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

KEYS = ["age", "postcode", "sex"]
ILL = ["asthma", "cold", "flu", "gout", "ulcer"]


def visits(patients: int, *, varying: bool = False, rows: bool = False, seed: int = 1) -> pd.DataFrame:
    """Patients with constant age, postcode and sex and 5 to 12 visits each; with `varying` they age between visits.

    With `rows` the rows are numbered in a column of their own, by which a test finds them in a released file.
    """
    rng = np.random.default_rng(seed)
    numbers = [f"P{i:04d}" for i in rng.permutation(patients)]
    columns = {"age": rng.integers(18, 90, patients), "postcode": rng.integers(1000, 1040, patients)}
    people = pd.DataFrame({"pid": numbers, **columns, "sex": rng.choice(["F", "M"], patients)})
    frame = people.loc[np.repeat(np.arange(patients), rng.integers(5, 13, patients))].reset_index(drop=True)
    frame["ill"] = rng.choice(ILL, len(frame))
    if varying:
        frame["age"] += rng.integers(0, 3, len(frame))
    return frame.assign(row=np.arange(len(frame))) if rows else frame


def linked(frame: pd.DataFrame, out: pd.DataFrame, keys: list[str] | None = None) -> pd.DataFrame:
    """The released rows with the persons and sensitive values of the source beside the released keys."""
    out = out.set_index(out["row"].astype(int))
    beside = frame.set_index("row").loc[out.index]
    return pd.concat([out[keys or KEYS].fillna(""), beside.drop(columns=keys or KEYS)], axis=1)


def person_figures(
    linked: pd.DataFrame, frame: pd.DataFrame, keys: list[str] | None = None, secret: str = "ill", person: str = "pid"
) -> dict[str, float]:
    """k, the share of unique persons, ℓ and t of the released rows, by their definitions (SPEC: n, h and w)."""
    reference = linked.groupby(person)[secret].value_counts(normalize=True).unstack(fill_value=0.0)
    whole = reference.mean()
    sizes, diversity, frequency, distance, alone = [], [], [], [], set()
    for _, rows in linked.groupby(keys or KEYS):
        members = rows[person].unique()
        n = len(members)
        held = rows.groupby(secret)[person].nunique()
        w = rows.groupby(person)[secret].value_counts(normalize=True).unstack(fill_value=0.0).mean()
        sizes.append(n)
        diversity.append(1 if held.max() == n else min(len(held), n))
        frequency.append(n / held.max())
        distance.append(0.5 * (w.reindex(whole.index, fill_value=0.0) - whole).abs().sum())
        alone |= set(members) if n == 1 else set()
    return {
        "k": min(sizes),
        "uniques": len(alone) / frame[person].nunique(),
        "distinct_l": min(diversity),
        "frequency_l": min(frequency),
        "t_closeness": max(distance),
    }


def figures(manifest: Mapping[str, Any]) -> dict[str, float]:
    return {name: entry["value"] for name, entry in manifest["figures"].items()}
