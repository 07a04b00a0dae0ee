"""Where a number of persons or households repeats, nothing is published until the publisher says what a row is."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest
from tests.release.fronts import write_csv

import sfumato as sf
from sfumato.auditing.inspect import inspect
from sfumato.auditing.units import unstated
from sfumato.data.settings import Role
from sfumato.errors import SfumatoError, SfumatoWarning
from sfumato.release.manifest import EXTERNAL, INTERNAL
from sfumato.release.policy import acceptances, refuse_unstated_units

VISITS = 4_483


def visits() -> pandas.DataFrame:
    """600 patients with 4,483 visits; age, postcode and sex are those of the patient."""
    draw = np.random.default_rng(27)
    number = np.where(draw.random(600) < 0.08, draw.integers(1, 3, 600), draw.integers(4, 13, 600))
    place = 0
    while number.sum() != VISITS:
        step = 1 if number.sum() < VISITS else -1
        if 4 <= number[place] + step <= 12:
            number[place] += step
        place = (place + 1) % 600
    owner = np.repeat(np.arange(600), number)
    patients = pandas.DataFrame(
        {
            "patient_id": 10_000 + np.arange(600) * 7,
            "age": draw.integers(18, 90, 600),
            "zip": 10_000 + draw.integers(0, 40, 600),
            "sex": draw.choice(["F", "M"], 600),
        }
    )
    table = patients.iloc[owner].reset_index(drop=True)
    table["diagnosis"] = draw.choice(["flu", "asthma", "fracture", "migraine", "diabetes", "none"], VISITS)
    return table.sample(frac=1, random_state=27).reset_index(drop=True)


def study(table: pandas.DataFrame, **roles: object) -> sf.Study:
    settings: dict[str, object] = {"quasi_identifiers": ["age", "zip", "sex"], "sensitive": ["diagnosis"]}
    declared = sf.Study(table, **(settings | roles))  # type: ignore[arg-type]
    return declared.with_hierarchies(age=sf.intervals(10, 20), zip=sf.prefixes(), sex=sf.flat())


def published(declared: sf.Study, folder: Path) -> sf.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SfumatoWarning)
        front = sf.search(declared, max_suppression=0.05, objectives=["k", "general_loss"])
    most = max(front, key=lambda point: point.values["k"] if point.loss < 1 else 0)
    return sf.publish(sf.pick(front, point=most.id), folder / "release", state=folder / "state")


def test_the_visits_of_600_patients_are_refused_by_default(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError) as caught:
        published(study(visits(), identifiers=["patient_id"]), tmp_path)
    error = caught.value
    assert error.exit_code == 3
    assert [finding["key"] for finding in error.as_dict()["findings"]] == ["unit:patient_id"]
    assert "600 values in 4,483 rows" in error.what
    assert 'role = "unit"' in error.remedy
    assert "unit_reason" in error.remedy
    assert not (tmp_path / "release").exists()


def test_a_declared_unit_or_a_reason_is_needed_and_suffices(tmp_path: Path) -> None:
    table = visits()
    by_unit = study(table, unit="patient_id")
    assert unstated(by_unit, by_unit.source()) == []
    reason = "patients cannot be linked in the world outside"
    by_row = published(study(table, drop=["patient_id"], unit="row", unit_reason=reason), tmp_path)
    pages = {name: (by_row.folder / name).read_text("utf-8") for name in (INTERNAL, EXTERNAL)}
    assert reason in pages[INTERNAL]
    assert reason not in pages[EXTERNAL]
    assert "rows are counted as persons" in pages[EXTERNAL]
    assert sf.verify(by_row.folder, table)


NEUTRAL = {
    "dropped": lambda table: table,
    "renamed": lambda table: table.rename(columns={"patient_id": "x7"}),
    "float": lambda table: table.assign(patient_id=table["patient_id"] + 0.5),
    "float, renamed": lambda table: table.assign(patient_id=table["patient_id"] / 3).rename(
        columns={"patient_id": "zz"}
    ),
    "text with blanks": lambda table: table.assign(
        patient_id=[f"{' ' * (row % 3)}P{number}{' ' * (row % 2)}" for row, number in enumerate(table["patient_id"])]
    ),
    "sometimes missing": lambda table: table.assign(
        patient_id=table["patient_id"].where(np.arange(len(table)) % 10 != 0)
    ),
    "names": lambda table: table.assign(
        first_name=[f"A{number % 70}" for number in table["patient_id"]],
        surname=[f"B{number // 70}" for number in table["patient_id"]],
    ).drop(columns="patient_id"),
}


@pytest.mark.parametrize("change", NEUTRAL)
def test_a_number_is_found_whatever_it_is_called_or_declared(change: str) -> None:
    table = NEUTRAL[change](visits())
    others = [name for name in table if name not in ("age", "zip", "sex", "diagnosis")]
    for role in ("drop", "identifiers", "keep"):
        declared = study(table, **{role: others})
        found = unstated(declared, declared.source())
        assert found, role
        assert " + ".join(others) in [each.column for each in found] or role == "identifiers"
        assert {each.holder for each in found} == {"unit"}
        if change in ("dropped", "renamed", "float", "names"):
            assert max(each.values for each in found) == 600


def test_a_person_number_that_is_declared_a_quasi_identifier_is_found() -> None:
    """As a quasi-identifier it would be released, and each person would be a class of rows of one's own."""
    table = visits().rename(columns={"patient_id": "nr"})
    declared = study(table, quasi_identifiers=["nr", "age", "zip", "sex"])
    assert [each.column for each in unstated(declared, declared.source())] == ["nr"]
    region = table.assign(nr=table["zip"] - 9_000)  # a code of an area, of no known name: it says the area alone
    declared = study(region, quasi_identifiers=["nr", "age", "zip", "sex"])
    assert unstated(declared, declared.source()) == []


def test_a_unit_that_is_another_one_in_every_row_says_only_that_rows_are_persons() -> None:
    table = visits()
    table["visit"] = [f"v{number}" for number in range(len(table))]
    declared = study(table, unit="visit", drop=["patient_id"])
    assert [each.column for each in unstated(declared, declared.source())] == ["patient_id"]
    with pytest.raises(SfumatoError, match="visit, the declared unit, has another value in every row"):
        refuse_unstated_units(declared, declared.source())
    persons = table.drop_duplicates("patient_id")
    declared = study(persons, unit="patient_id", drop=["visit"])
    assert unstated(declared, declared.source()) == []


def survey() -> pandas.DataFrame:
    """2,000 households with 1 to 6 persons: tenure, region and income are those of the household."""
    draw = np.random.default_rng(5)
    number = draw.integers(1, 7, 2000)
    owner = np.repeat(np.arange(2000), number)
    homes = pandas.DataFrame(
        {
            "hid": draw.permutation(2000) + 500_000,
            "region": draw.integers(1, 9, 2000),
            "tenure": draw.choice(["owner", "rented", "free"], 2000),
            "income": np.round(draw.lognormal(10, 0.5, 2000), 4),
        }
    )
    table = homes.iloc[owner].reset_index(drop=True)
    table["age"] = draw.integers(0, 90, len(table))
    table["sex"] = draw.choice([1, 2], len(table))
    return table.sample(frac=1, random_state=1).reset_index(drop=True)


@pytest.mark.parametrize("name", ["hid", "SERIALNO", "household_id", "ori_hid", "HHID", "v1"])
def test_household_numbers_are_found_and_a_declared_household_is_enough(name: str) -> None:
    table = survey().rename(columns={"hid": name})
    roles = {"quasi_identifiers": ["region", "tenure", "age", "sex"], "sensitive": ["income"]}
    dropped = sf.Study(table, **roles, drop=[name])
    (found,) = unstated(dropped, dropped.source())
    assert (found.column, found.values, found.rows) == (name, 2000, len(table))
    assert found.most == table[name].value_counts().max()
    assert found.holder == ("unit" if name == "v1" else "household")
    households = sf.Study(table, **roles, household=name)
    assert unstated(households, households.source()) == []


def test_a_household_says_nothing_of_a_person_number_that_repeats_within_it() -> None:
    table = visits()
    table["hid"] = table["patient_id"] // 14  # two patients each
    declared = study(table, drop=["patient_id"], household="hid")
    assert [each.column for each in unstated(declared, declared.source())] == ["patient_id"]
    both = study(table, unit="patient_id", household="hid")
    assert unstated(both, both.source()) == []
    rows = study(table, drop=["patient_id"], household="hid", unit="row")
    assert unstated(rows, rows.source()) == []


def test_codes_that_repeat_are_no_numbers_of_persons() -> None:
    """Regions, occupations, dates, amounts and weights repeat too; so do codes that determine others."""
    draw = np.random.default_rng(3)
    rows = 6_000
    place = draw.integers(0, 900, rows)
    table = pandas.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "sex": draw.choice(["F", "M"], rows),
            "state": place // 30,
            "region": place // 300,
            "zip": 10_000 + place,
            "x1": 70_000 + place,  # a code of the place, of no known name: few rows each, and it says state and region
            "occupation": draw.integers(0, 400, rows),
            "birthdate": pandas.Timestamp("1950-01-01") + pandas.to_timedelta(draw.integers(0, 2_000, rows), "D"),
            "x2": draw.integers(0, 2_000, rows),
            "income": draw.integers(10, 300, rows) * 100,
            "pwgtp": draw.integers(1, 500, rows),
        }
    )
    declared = sf.Study(
        table,
        quasi_identifiers=["age", "sex", "state", "region", "zip", "occupation", "birthdate"],
        sensitive=["income"],
        drop=["x1", "x2"],
        weight="pwgtp",
    )
    assert unstated(declared, declared.source()) == []


TABLES = {
    "adult-uci/adult.data.gz": [],
    "arx/adult/adult.csv": [],
    "arx/genetic-benchmark/data/mach2019_int.csv": [],
    "german-credit/german.data": [],
    "nist-diverse-communities/ma2019.csv.gz": [],
    "uk-census-2011-teaching/2011-census-microdata-small.csv.gz": [],
    "sdcmicro/SD2011.csv.gz": [],
    "sdcmicro/testdata.csv": ["ori_hid"],
    "sdcmicro/EIA.csv.gz": ["UTILITYID", "UTILNAME"],
}


@pytest.mark.parametrize("path", TABLES)
def test_what_is_flagged_in_public_tables(path: str, shared: Path) -> None:
    """With the suggested roles, and with all that is suggested as an identifier dropped."""
    table = shared / "data" / path
    inspected = inspect(str(table))
    assert [each.column for each in inspected.repeating] == TABLES[path]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"unit": "row", "drop": ["patient_id"]}, "no reason is given"),
        ({"unit": "row", "drop": ["patient_id"], "unit_reason": "xxxxxxxxxxxx"}, "is not a reason"),
        ({"unit_reason": "one row per person", "drop": ["patient_id"]}, 'without unit = "row"'),
        (
            {"unit": "row", "unit_reason": "one row per person", "columns": {"patient_id": {"role": "unit"}}},
            "role unit",
        ),
    ],
)
def test_what_a_row_is_is_said_once_and_with_a_reason(given: dict[str, object], what: str) -> None:
    with pytest.raises(sf.StudyError) as caught:
        study(visits().head(50), **given)
    assert what in caught.value.what


def test_the_rule_cannot_be_accepted(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError) as caught:
        acceptances({"unit:patient_id": "we have always done it like that"})
    assert "unit" in caught.value.what


def test_audit_and_search_say_it_before_anything_is_published() -> None:
    declared = study(visits(), drop=["patient_id"])
    with pytest.warns(SfumatoWarning, match="patient_id repeats: 600 values in 4,483 rows"):
        sf.search(declared, objectives=["k", "general_loss"])
    notes = [note for note in sf.audit(declared).notes if "patient_id repeats" in note]
    assert len(notes) == 1
    assert 'role = "unit" for patient_id' in notes[0]
    silent = sf.audit(study(visits(), unit="patient_id"))
    assert not any("repeats" in note for note in silent.notes)


def test_inspect_suggests_the_unit_and_says_how_many_rows_it_has(tmp_path: Path) -> None:
    table = visits()
    inspected = inspect(table)
    suggested = dict(zip(table.columns, inspected.suggestions, strict=True))["patient_id"]
    rows = table["patient_id"].value_counts()
    assert str(suggested.role) == "unit"
    assert suggested.reason == (
        f"600 values in 4,483 rows: several rows of one person ({rows.mean():.1f} on average, {rows.max()} at most)"
    )
    table.to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "run.toml").write_text(inspect(str(tmp_path / "visits.csv")).run_file("visits.csv"), "utf-8")
    assert sf.read(tmp_path / "run.toml").named(Role.UNIT) == ["patient_id"]
    homes = inspect(survey())
    assert dict(zip(survey().columns, homes.suggestions, strict=True))["hid"].role is Role.HOUSEHOLD


def test_a_few_patients_are_as_many_as_many(tmp_path: Path) -> None:
    """A short list of numbers is a position within a household only if its name says so."""
    rng = random.Random(3)
    visits = [[f"p{number}", rng.randrange(18, 90), rng.choice("FM"), rng.randrange(9)] for number in range(25)] * 6
    cells = [[patient, age + rng.randrange(9), rng.choice("FM"), ward] for patient, age, _, ward in visits]
    table = write_csv(tmp_path / "visits.csv", [["patient_id", "age", "sex", "ward"], *map(list, cells)])
    assert [each.column for each in inspect(str(table)).repeating] == ["patient_id"]
