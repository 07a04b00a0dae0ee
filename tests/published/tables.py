"""Twelve real tables with roles that a publisher might give them; every column that is not named is kept as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.plans.recodings import LevelPlan
from sfumato.release import manifest
from sfumato.release.columns import ColumnRecode, column_recodes


@dataclass(frozen=True)
class Table:
    """`bands` are quasi-identifiers released in bands of a width, `hidden` ones as `*`, `plain` ones unchanged."""

    path: str
    bands: dict[str, float] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def study(self, shared: Path) -> sf.Study:
        data = {"path": str(shared / "data" / self.path), "missing": "category", **self.data}
        columns: dict[str, Any] = {name: {"role": "other"} for name in open_source(DataSettings.checked(**data)).names}
        columns |= {n: {"role": "quasi_identifier"} for n in (*self.hidden, *self.plain)}
        columns |= {
            n: {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [w]}}
            for n, w in self.bands.items()
        }
        columns |= {n: {"role": "sensitive"} for n in self.sensitive}
        columns |= {n: {"role": "identifier"} for n in self.withheld}
        return sf.Study(data=data, columns=columns)

    def recodes(self, study: sf.Study) -> tuple[ColumnRecode, ...]:
        plan = LevelPlan(dict.fromkeys((*self.bands, *self.hidden), 1) | dict.fromkeys(self.plain, 0))
        trees, levels = manifest.trees_and_levels(study, study.table(), plan)
        return column_recodes(study, levels, trees)


ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)
GERMAN = (
    "status duration history purpose amount savings employment rate personal debtors residence property age plans "
    "housing credits job liable telephone foreign class"
)
ACS = Table(
    "acs-pums/psam_p15_2018.csv.gz",
    bands={"AGEP": 10, "SCHL": 5},
    hidden=("RAC1P", "MAR", "PUMA", "CIT"),
    plain=("SEX",),
    sensitive=("PINCP", "PERNP", "DIS"),
    withheld=("SERIALNO",),
)
TABLES = {
    "adult": Table(
        "adult-uci/adult.data.gz",
        bands={"age": 10},
        hidden=("workclass", "education", "marital-status", "native-country"),
        plain=("race", "sex"),
        sensitive=("occupation", "income"),
        data={"header": False, "names": ADULT.split(), "na": ["?"]},
    ),
    "census-income-kdd": Table(
        "census-income-kdd/census_income_kdd.parquet",
        bands={"age": 10},
        hidden=("race", "hispanic_origin", "marital_stat", "education", "state_of_previous_residence"),
        plain=("sex",),
        sensitive=("income",),
        data={"na": ["?", "Not in universe"]},
    ),
    "german-credit": Table(
        "german-credit/german.data",
        bands={"age": 10, "duration": 12},
        hidden=("foreign", "job"),
        plain=("personal",),
        sensitive=("class", "amount"),
        data={"header": False, "separator": " ", "names": GERMAN.split()},
    ),
    "nhanes": Table(
        "nhanes-2017-2018/NHANES_data_2017-2018.tsv.gz",
        bands={"AgeInYearsAtScreening": 10},
        hidden=("RacehispanicOrigin", "TotalNumberOfPeopleInTheHousehold", "MaritalStatus", "EducationLevelAdults20"),
        plain=("Gender",),
        sensitive=("DoctorToldYouHaveDiabetes", "AnnualHouseholdIncome"),
        withheld=("SEQN",),
    ),
    "acs-hawaii-2018": ACS,
    "acs-14-states-2018": Table(
        "acs-pums/psam_2018_14states_noreplicates.parquet",
        bands=ACS.bands,
        hidden=ACS.hidden,
        plain=ACS.plain,
        sensitive=ACS.sensitive,
        withheld=ACS.withheld,
    ),
    "credit-card": Table(
        "arx/genetic-benchmark/data/creditcard_int.csv",
        bands={"AGE": 10},
        hidden=("EDUCATION", "MARRIAGE", "LIMIT_BAL"),
        plain=("SEX",),
        sensitive=("default-payment-next-month", "BILL_AMT1"),
    ),
    "mach-2019": Table(
        "arx/genetic-benchmark/data/mach2019_int.csv",
        hidden=("age", "race", "religion", "married", "familysize"),
        plain=("gender",),
        sensitive=("Q1A",),
    ),
    "free1": Table(
        "sdcmicro/free1.csv.gz",
        bands={"AGE": 10},
        hidden=("REGION", "MARSTAT", "EDUC1", "EDUC2", "ETNI"),
        plain=("SEX",),
        sensitive=("INCOME",),
    ),
    "testdata": Table(
        "sdcmicro/testdata.csv",
        bands={"age": 10},
        hidden=("roof", "walls", "water", "relat", "hhcivil"),
        plain=("urbrur", "sex"),
        sensitive=("income",),
    ),
    "social-diagnosis-2011": Table(
        "sdcmicro/SD2011.csv.gz",
        bands={"age": 10},
        hidden=("region", "edu", "marital", "placesize", "socprof"),
        plain=("sex",),
        sensitive=("income", "depress", "alcabuse"),
        data={"na": ["-8"]},
    ),
    "casc-census": Table(
        "sdcmicro/CASCrefmicrodata.csv",
        bands={"WSALVAL": 10_000},
        sensitive=("PTOTVAL", "AGI"),
    ),
}
