"""Suggested roles: what names and values say, nothing where they say nothing, and never that a column is harmless."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import write_csv

import sfumato as sf
from sfumato.data.profile import ColumnProfile
from sfumato.data.settings import Role
from sfumato.data.suggest import suggest

QUASI, SENSITIVE, IDENTIFIER, WEIGHT, DROP = (
    Role.QUASI_IDENTIFIER,
    Role.SENSITIVE,
    Role.IDENTIFIER,
    Role.WEIGHT,
    Role.DROP,
)


def column(name: str, **figures: Any) -> ColumnProfile:
    """A column of 10,000 records with 12 codes, unless said otherwise."""
    usual: dict[str, Any] = {
        "rows": 10_000,
        "missing": 0,
        "distinct": 12,
        "uniques": 0,
        "kind": "whole",
        "lowest": 1.0,
        "highest": 12.0,
        "typical": (1.0, 12.0),
        "na_words": (),
        "candidates": (),
        "examples": (),
    }
    return ColumnProfile(name=name, **(usual | figures))


# ACS and IPUMS as the files and the NIST benchmark call them, NHANES, censuses, health, human resources.
CODES: dict[Role, str] = {
    QUASI: "AGEP SEX RAC1P RAC2P RAC3P RACBLK HISP MSP MAR SCHL SCH EDU OCCP SOCP INDP INDP_CAT CIT NATIVITY PUMA ST "
    "DIVISION REGION DENSITY LANX LANP ENG MIL VPS DIS DEAR DEYE DPHY DOUT DDRS OWN_RENT HOUSING_TYPE NP NOC NPF RELP "
    "POBP ANC1P MIGSP POWPUMA JWTR WKHP ESR COW YOEP CITIZEN STATEFIP COUNTYFIP MARST HISPAN BPL EDUCD EMPSTAT OCC2010 "
    "UHRSWORK RIAGENDR RIDAGEYR RIDRETH1 RIDRETH3 DMDBORN4 DMDEDUC2 DMDMARTL DMDHHSIZ BMXHT BMXWT dob date_of_birth "
    "birthdate postcode zip ethnicity disability Age Student Occupation Industry Region admission_date DischargeDate "
    "ward hospital doctor department manager hire_date hours-per-week native-country relationship height nationality "
    "latitude employer urbrur roof",
    SENSITIVE: "PINCP WAGP PERNP POVPIP DREM HICOV HINS4 PUBCOV SSIP INCTOT INDFMPIR INDFMIN2 Religion Health health "
    "diagnosis icd10 ICD salary bonus disease ill HIV income debt medication depression drug_use sexual_orientation "
    "union_member blood_pressure GeneralHealthCondition EverToldYouHadCancerOrMalignancy PINCP_DECILE capital-gain",
    WEIGHT: "PWGTP WGTP PERWT HHWT fnlwgt AFNLWGT WTINT2YR WTMEC2YR sampling_weight instance_weight",
    DROP: "PWGTP1 PWGTP80 pwgtp7 WGTP12 REPWTP33 ADJINC SPORDER SDMVPSU SDMVSTRA comments free_text",
}
NAMES: dict[Role, list[str]] = {
    QUASI: [
        "Residence Type",
        "Family Composition",
        "Population Base",
        "Marital Status",
        "Country of Birth",
        "Ethnic Group",
        "Economic Activity",
        "Hours worked per week",
        "Approximated Social Grade",
        "job title",
        "mother tongue",
    ],
    SENSITIVE: ["political party", "criminal record", "performance rating", "test result", "cause of death"],
    WEIGHT: ["survey weight"],
}
EXPECTED = [(role, name) for role, names in CODES.items() for name in names.split()]
EXPECTED += [(role, name) for role, names in NAMES.items() for name in names]


@pytest.mark.parametrize(("role", "name"), EXPECTED)
def test_names_and_codes_of_common_files(role: Role, name: str) -> None:
    assert suggest(column(name)).role is role


@pytest.mark.parametrize(
    "name",
    [
        "SERIALNO",
        "SEQN",
        "ssn",
        "email",
        "patient_id",
        "employee id",
        "surname",
        "Full Name",
        "NHS number",
        "phone",
        "IBAN",
    ],
)
def test_identifiers(name: str) -> None:
    assert suggest(column(name, distinct=9_000, uniques=8_000, kind="text")).role is IDENTIFIER


@pytest.mark.parametrize("name", ["column7", "Q10A", "KINDFACT", "v17", "X", "LT3", "código"])
@pytest.mark.parametrize(
    "figures",
    [
        {},
        {"kind": "text"},
        {"distinct": 3_000, "uniques": 900},
        {"kind": "number", "distinct": 9_990, "uniques": 9_980},
        {"missing": 9_000},
    ],
)
def test_where_nothing_says_what_it_is_there_is_no_role(name: str, figures: dict[str, Any]) -> None:
    found = suggest(column(name, **figures))
    assert found.role is None
    assert found.reason


def test_nothing_is_ever_suggested_as_harmless() -> None:
    """`other` releases a column unmeasured: that is for the publisher to say."""
    for name in [name for _, name in EXPECTED] + ["x", "y1", "note"]:
        for kind in ("whole", "number", "text", "date"):
            for distinct in (1, 2, 50, 9_999, 10_000):
                found = suggest(column(name, kind=kind, distinct=distinct, uniques=distinct if distinct > 9_000 else 0))
                assert found.role is not Role.OTHER, (name, kind, distinct)


def test_what_the_data_say() -> None:
    assert suggest(column("x", distinct=0, missing=10_000)).role is DROP
    assert suggest(column("AGEP", distinct=1)).role is DROP
    assert suggest(column("x", kind="date", distinct=300)).role is QUASI
    assert suggest(column("x", kind="text", distinct=10_000, uniques=10_000)).role is IDENTIFIER
    assert suggest(column("x", kind="text", distinct=9_800, uniques=9_650)).role is IDENTIFIER
    near = suggest(column("x", kind="number", distinct=9_990, uniques=9_980))
    assert near.role is None
    assert "single" in near.reason
    assert suggest(column("AGEP", missing=9_000)).role is QUASI  # known to outsiders, however few have it


def test_an_amount_that_singles_people_out_is_no_secret_to_keep_as_it_is() -> None:
    """Whoever knows an exact income finds its record: then it is generalized, not only called sensitive."""
    assert suggest(column("income", distinct=60)).role is SENSITIVE
    assert suggest(column("income", distinct=9_000, uniques=8_500)).role is QUASI


def test_a_weight_must_be_a_number_in_every_record() -> None:
    assert suggest(column("PWGTP", missing=3)).role is DROP
    assert suggest(column("PWGTP", kind="text")).role is DROP


def test_bare_weight_may_be_a_body_or_a_survey() -> None:
    found = suggest(column("weight", distinct=90))
    assert found.role is None
    assert "body" in found.reason


@pytest.mark.parametrize(
    ("examples", "role"),
    [
        (("Female", "Male"), QUASI),
        (("Divorced", "Married-civ-spouse", "Never-married", "Widowed"), QUASI),
        (("Asian", "Black", "Other", "White"), QUASI),
        (("11th", "Bachelors", "HS-grad", "Masters", "Some-college"), QUASI),
        (("31.12.1999", "01.02.2001"), QUASI),
        (("12/31/1999", "1/2/2001"), QUASI),
        (("2020-01-01 10:00", "2020-01-02T11:30:00Z"), QUASI),
        (("a@b.org", "c.d@e.co.uk"), IDENTIFIER),
        (("red", "green", "blue"), None),
        (("Y", "N"), None),
    ],
)
def test_values_may_say_what_a_name_does_not(examples: tuple[str, ...], role: Role | None) -> None:
    assert suggest(column("column7", kind="text", distinct=len(examples), examples=examples)).role is role


SENTINELS: dict[str, tuple[list[Any], tuple[str, ...]]] = {
    "-9 beside codes": ([1, 2, 3, 4, 5] * 50 + [-9] * 40, ("-9",)),
    "-9 beside ages": ([*range(0, 95)] * 3 + [-9] * 4, ("-9",)),
    "several negative codes": ([1, 2, 3] * 30 + [-9, -8] * 10, ("-8", "-9")),
    "losses are numbers": ([*range(-500, 900, 7), -9, -8], ()),
    "-1 where 0 is a value": ([0, 1, 2, 3] * 30 + [-1] * 20, ()),
    "-1 where 0 is none": ([1, 2, 3, 4] * 30 + [-1] * 20, ("-1",)),
    "9 beside 1 to 5": ([1, 2, 3, 4, 5] * 30 + [9] * 40, ("9",)),
    "9 at the end of a scale": ([*range(1, 10)] * 30, ()),
    "refused and unknown": ([1, 2] * 40 + [7, 9] * 5, ("7", "9")),
    "99 beside months": ([*range(1, 13)] * 9 + [99] * 9, ("99",)),
    "99 hours": ([*range(1, 100)] * 3, ()),
    "999 beside ages": ([*range(18, 97)] * 3 + [999] * 3, ("999",)),
    "97 to 99": ([*range(10)] * 9 + [97, 98, 99] * 4, ("97", "98", "99")),
    "one letter among numbers": ([*range(1, 13)] * 9 + ["N"] * 30, ("N",)),
    "blank codes": ([*range(1, 13)] * 9 + ["bb", "."] * 30, ("bb",)),  # the full stop is taken for missing anyway
    "letters among letters": (["Y", "N"] * 40, ()),
    "an open end": ([*range(1, 85)] * 3 + ["85+"] * 9, ()),
    "words": (["farm", "town", "Not in universe"] * 40, ("Not in universe",)),
    "the oldest people": ([*range(18, 92)] * 3 + [93, 96, 97], ()),
    "97 for none": ([*range(0, 18)] * 3 + [97] * 50, ("97",)),
    "numbers": ([*range(3, 500, 7)], ()),
}


@pytest.mark.parametrize("name", SENTINELS)
def test_codes_that_stand_for_missing(name: str, tmp_path: Path) -> None:
    values, expected = SENTINELS[name]
    random.Random(1).shuffle(values)
    path = write_csv(tmp_path / "t.csv", [["x", "y"], *([value, place % 7] for place, value in enumerate(values))])
    found = sf.inspect(str(path)).columns[0]
    assert found.candidates == expected


def test_few_values_of_many_rows_are_not_read_whole(tmp_path: Path) -> None:
    """A column with more values than are looked at still tells what stands apart at its ends."""
    rows = [[value, value % 3] for value in range(100, 40_000, 3)] + [[-9, 1]] * 20 + [[999_999, 1]] * 20
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write("amount,y\n" + "\n".join(f"{a},{b}" for a, b in rows) + "\n")
    assert sf.inspect(str(tmp_path / "t.csv.gz")).columns[0].candidates == ("-9", "999999")


def test_a_code_is_offered_as_the_cells_write_it(tmp_path: Path) -> None:
    """Only a cell that is written like the code is missing: -8 would leave every -8.0 a number."""
    values = ["-8.0"] * 30 + [f"{number}.0" for number in range(1, 40)] * 3
    (tmp_path / "t.csv").write_text("\n".join(["income", *values]) + "\n", "utf-8")
    assert sf.inspect(str(tmp_path / "t.csv")).columns[0].candidates == ("-8.0",)


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ({"kind": "whole", "distinct": 500}, "many different numbers"),
        ({"kind": "number", "distinct": 500}, "many different numbers"),
        ({"kind": "text", "distinct": 500}, "no hint found"),
        ({"kind": "whole", "distinct": 12}, "few whole numbers"),
        ({"kind": "whole", "distinct": 8_000, "uniques": 7_000}, "it singles out 70.0 % of the records"),
    ],
)
def test_the_question_states_what_the_values_show(figures: dict[str, Any], reason: str) -> None:
    found = suggest(column("qqx", **figures))
    assert found.role is None
    assert found.reason.startswith(reason)
