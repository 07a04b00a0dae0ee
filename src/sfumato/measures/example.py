"""The six-row example that every measure's docstring is checked on.

| age | zip | disease | smokes |
|---|---|---|---|
| 20-39 | 476** | flu    | no  |
| 20-39 | 476** | flu    | no  |
| 20-39 | 476** | cancer | yes |
| 20-39 | 479** | flu    | no  |
| 40-59 | 479** | cancer | yes |
| 40-59 | 479** | ulcer  | no  |

Three classes: of 3, 1 and 2 records. `age` has 4 leaves (24, 35, 47, 51), `zip` has 3 (47602, 47678, 47905); the raw
table has age 24, 24, 35, 35, 47, 51 and zip 47602, 47678, 47678, 47905, 47905, 47905.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.measures.classes import ClassTable, classify
from sfumato.plans.recoding import at_levels
from sfumato.tables.domain import domain_of
from sfumato.tables.frequency import FrequencyTable, from_codes

AGE = Hierarchy.from_paths(
    "age", [("24", "20-39", "*"), ("35", "20-39", "*"), ("47", "40-59", "*"), ("51", "40-59", "*")]
)
ZIP = Hierarchy.from_paths("zip", [("47602", "476**", "*"), ("47678", "476**", "*"), ("47905", "479**", "*")])


@cache
def six_records() -> FrequencyTable:
    """The raw six-row table."""
    age = domain_of("age", {"24": 2, "35": 2, "47": 1, "51": 1}, AGE)
    zip_code = domain_of("zip", {"47602": 1, "47678": 2, "47905": 3}, ZIP)
    disease = domain_of("disease", {"cancer": 2, "flu": 3, "ulcer": 1})
    smokes = domain_of("smokes", {"no": 4, "yes": 2})
    records = np.array([[0, 0, 1, 1, 2, 3], [0, 1, 1, 2, 2, 2]], dtype=np.int32)
    return from_codes(
        [age, zip_code],
        records,
        {"disease": (disease, np.array([1, 1, 0, 1, 0, 2], dtype=np.int32))},
        (smokes, np.array([0, 0, 1, 0, 1, 0], dtype=np.int32)),
    )


@cache
def six_rows() -> ClassTable:
    """The six-row table with both columns at level 1: classes of 3, 1 and 2 records."""
    return classify(six_records(), at_levels(six_records(), (1, 1)))
