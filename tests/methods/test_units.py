"""Fronts in units, measured again by plain pandas on the recoded rows."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.methods.visits import study_of, visits

import sfumato as sf
from sfumato.errors import DataError, StudyError
from sfumato.plans.recodings import RecodingPlan

KEYS = ["age", "sex", "ward"]


def labels(study: sf.Study, table: pd.DataFrame, plan: RecodingPlan) -> pd.DataFrame:
    """The groups of every row, by the plan's own recoding of each value."""
    frequency = study.table()
    grouped = {}
    for domain, part in zip(frequency.domains, plan.recoding(frequency), strict=True):
        group = dict(zip(domain.labels, part.groups.tolist(), strict=True))
        grouped[domain.name] = table[domain.name].astype(str).map(group)
    return pd.DataFrame(grouped)


@pytest.mark.parametrize("varying", [False, True], ids=["constant", "varying"])
@pytest.mark.parametrize("system", ["lattice", "cuts"])
def test_every_point_is_what_pandas_counts(system: str, varying: bool) -> None:
    table = visits(80, varying=varying)
    study = study_of(table)
    settings = {"generations": 3, "population": 12} if system == "cuts" else {}
    front = sf.search(study, system=system, max_suppression=0.06, **settings)
    assert front.units == table["patient"].nunique() == front.persons
    assert len(front) > 2
    for point in front:
        rows = labels(study, table, point.recoding_plan)
        size = table["patient"].groupby([rows[key] for key in KEYS]).transform("nunique")
        kept = size >= point.recoding_plan.suppress_below
        assert size[kept].min() == point.values["k"]
        assert int((~kept).sum()) == point.suppressed
        gone = table.loc[~kept, "patient"].nunique()
        assert gone == point.suppressed_units <= int(0.06 * front.persons)


def test_criteria_in_units_are_kept_by_every_point() -> None:
    table = visits(150)
    study = study_of(table)
    front = sf.search(study, max_suppression=0.1, constraints={"distinct_l": 2, "frequency_l": 1.2, "k": 3})
    assert len(front) > 0
    for point in front:
        rows = labels(study, table, point.recoding_plan)
        for _, one in table.groupby([rows[key] for key in KEYS]):
            holders = one.groupby("diagnosis")["patient"].nunique()
            number = one["patient"].nunique()
            fails = number < 3 or holders.max() == number or number / holders.max() < 1.2 or len(holders) < 2
            if not fails:
                assert number >= point.values["k"] or number < point.recoding_plan.suppress_below


def test_rows_without_a_unit_are_counted_in_the_error() -> None:
    table = visits(20)
    table.loc[[1, 4], "patient"] = None
    with pytest.raises(DataError, match="2 rows have no value in patient"):
        study_of(table).table()


def test_a_unit_in_two_households_is_an_error() -> None:
    table = visits(20)
    table["family"] = [f"h{i}" for i in range(len(table))]
    columns = {name: column.model_dump(exclude_unset=True) for name, column in study_of(visits(20)).columns.items()}
    several = sum(len(rows) for _, rows in table.groupby("patient") if len(rows) > 1)
    with pytest.raises(DataError, match=f"{several} rows belong to units of patient"):
        study_of(table, columns=columns | {"family": {"role": "household"}}).table()


def test_what_counts_records_is_refused() -> None:
    study = study_of(visits(20))
    with pytest.raises(StudyError, match="counts records"):
        sf.search(study, system="cuts", problem=3)


def test_one_row_for_each_unit_is_the_table_without_units() -> None:
    table = visits(60).drop_duplicates("patient")
    study = study_of(table)
    assert study.table().units is None
    without = study_of(
        table,
        columns={
            name: ({"role": "drop"} if name == "patient" else column.model_dump(exclude_unset=True))
            for name, column in study.columns.items()
        },
    )
    one, two = sf.search(study, max_suppression=0.1), sf.search(without, max_suppression=0.1)
    assert [(p.values, p.loss, p.suppressed) for p in one] == [(p.values, p.loss, p.suppressed) for p in two]


def test_a_limit_of_suppression_is_a_share_of_persons() -> None:
    """One person with many records: a large share of the records, a small one of the persons."""
    table = visits(80)
    front = sf.search(study_of(table), max_suppression=0.2)
    point = next(p for p in front if p.suppressed_units)
    share = front.suppressed_share(point)
    assert share == point.suppressed_units / table["patient"].nunique()
    assert sf.pick(front, max_suppressed=share).point.suppressed_units <= point.suppressed_units
    answer = sf.ask(front, max_loss=1.0, max_suppression=share)
    assert answer.offer.suppression <= share
