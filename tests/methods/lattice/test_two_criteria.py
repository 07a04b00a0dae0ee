"""The best release with k and one more criterion, by brute force over the rows of real tables of four columns."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.methods.lattice.releases import CRITERIA, rows_of

import sfumato as sf
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.errors import UnreachableError

GERMAN = (
    "status duration history purpose amount savings employment rate personal debtors residence property age plans "
    "housing credits job liable telephone foreign class"
)
ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)


@dataclass(frozen=True)
class Table:
    """A number in bands, three columns that are kept or hidden, and a sensitive one."""

    path: str
    number: str
    widths: tuple[int, ...]
    flat: tuple[str, str, str]
    sensitive: str
    data: dict[str, Any]

    def study(self, shared: Path) -> sf.Study:
        data = {"path": str(shared / "data" / self.path), "missing": "category", **self.data}
        columns: dict[str, Any] = {
            name: {"role": "quasi_identifier", "hierarchy": {"build": "flat"}} for name in self.flat
        }
        bands = {"build": "interval", "widths": list(self.widths)}
        columns[self.number] = {"role": "quasi_identifier", "hierarchy": bands}
        columns[self.sensitive] = {"role": "sensitive", "distance": "equal"}
        others = [name for name in open_source(DataSettings.checked(**data)).names if name not in columns]
        return sf.Study(data=data, columns=columns | {name: {"role": "other"} for name in others})


TABLES = {
    "german-credit": Table(
        "german-credit/german.data",
        "age",
        (5, 10, 20),
        ("job", "housing", "personal"),
        "purpose",
        {"header": False, "separator": " ", "names": GERMAN.split()},
    ),
    "adult": Table(
        "adult-uci/adult.data.gz",
        "age",
        (5, 10, 20),
        ("race", "education", "sex"),
        "occupation",
        {"header": False, "names": ADULT.split()},
    ),
    "testdata": Table("sdcmicro/testdata.csv", "age", (5, 10, 20), ("roof", "water", "relat"), "walls", {}),
    "free1": Table("sdcmicro/free1.csv.gz", "AGE", (5, 10, 20), ("MARSTAT", "EDUC1", "SEX"), "ETNI", {}),
    "acs-hawaii": Table("acs-pums/psam_p15_2018.csv.gz", "AGEP", (5, 10, 20), ("RAC1P", "MAR", "SEX"), "CIT", {}),
}
SECOND = {"distinct_l": 2, "entropy_l": 1.5, "alpha_k": 0.9, "t_closeness": 0.4, "beta_likeness": 4, "k": 10}
LIMITS = (0.01, 0.1)


@pytest.mark.parametrize(
    "name", [name if name == "german-credit" else pytest.param(name, marks=pytest.mark.published) for name in TABLES]
)
def test_the_best_release_with_two_criteria_is_that_of_brute_force(shared: Path, name: str) -> None:
    study = TABLES[name].study(shared)
    table = study.table()
    assert len(table.columns) == 4
    nodes = every_node(table, TABLES[name].sensitive)
    reached = 0
    for (criterion, limit), share in product(SECOND.items(), LIMITS):
        demanded = {"k": 5} | {criterion: limit}
        best = least_loss(nodes, demanded, int(share * table.records + 1e-9))
        asked = study.with_search(objectives=["general_loss"], constraints=demanded, max_suppression=share)
        if best is None:
            with pytest.raises(UnreachableError):
                sf.search(asked, table=table)
            continue
        reached += 1
        (point,) = sf.search(asked, table=table).points
        assert point.values["general_loss"] == pytest.approx(best, rel=1e-9)
        if criterion in ("k", "distinct_l"):  # what baselines can be asked
            l = limit if criterion == "distinct_l" else 1
            found = sf.baselines(asked, [demanded["k"]], l=l, methods=["lattice_optimum"], table=table)
            assert found.row("lattice_optimum", demanded["k"]).loss == pytest.approx(
                best / (4 * table.records), rel=1e-9
            )
    assert reached >= 6


Class = tuple[dict[str, float], int, float]  # what it has of each criterion, its records, what they lose together


def every_node(table: sf.FrequencyTable, column: str) -> list[list[Class]]:
    """The classes of every node, from the rows."""
    rows = Counter(rows_of(table, column))
    whole: Counter[int] = Counter()
    for (_, value), count in rows.items():
        whole[value] += count
    trees = [domain.hierarchy for domain in table.domains]
    nodes = []
    for node in product(*(range(tree.height + 1) for tree in trees)):
        classes: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for (codes, value), count in rows.items():
            classes[tuple(int(t.maps[n][c]) for t, n, c in zip(trees, node, codes, strict=True))][value] += count
        described = []
        for key, held in classes.items():
            has = {name: CRITERIA[name][0](held, whole) for name in SECOND}
            lost = [
                (int(tree.sizes[level][group]) - 1) / max(len(tree.leaves) - 1, 1)
                for tree, level, group in zip(trees, node, key, strict=True)
            ]
            described.append((has, held.total(), held.total() * float(np.sum(lost))))
        nodes.append(described)
    return nodes


def least_loss(nodes: list[list[Class]], demanded: dict[str, float], most: int) -> float | None:
    """The least loss of a node whose classes that fall short are suppressed; None if none keeps within the limit."""
    best: float | None = None
    for classes in nodes:
        kept = [
            has_all
            for has_all in classes
            if all(CRITERIA[n][1] * has_all[0][n] >= CRITERIA[n][1] * limit - 1e-9 for n, limit in demanded.items())
        ]
        gone = sum(one[1] for one in classes) - sum(one[1] for one in kept)
        if kept and gone <= most:
            loss = sum(one[2] for one in kept) + 4.0 * gone
            best = loss if best is None else min(best, loss)
    return best
