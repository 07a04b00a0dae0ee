"""Every table of the shared data published by the four recoding methods at k = 3, 5 and 20, without acceptances.

Each release is counted with pandas: no unit and no household is alone in its class, the first page names the records
that the missing rule left out, and no released column outside the quasi-identifiers is unique for more than 5 % of the
records. Or the release is refused. The output is a table in Markdown:

    python -m benchmarks.publish_every_table                       # all tables
    python -m benchmarks.publish_every_table --only adult german   # tables whose names have one of these words
    python -m benchmarks.publish_every_table --log found.jsonl     # goes on where an earlier run stopped
    python -m benchmarks.publish_every_table --log found.jsonl --show
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sfumato as sf
from sfumato.auditing.inspect import recipe
from sfumato.decide.pick import Choice
from sfumato.errors import InputError, UnreachableError
from sfumato.release.policy import PolicyError

METHODS = ("lattice", "cuts", "local", "cells")
KS = (3, 5, 20)
ROWS = 5_000
IDENTIFYING = 0.05
SECONDS = 60  # of CPU for one search or one release
WITHIN = {"distinct_l": 2, "t_closeness": 0.89}
BUDGETS: Mapping[str, Mapping[str, Any]] = {
    "lattice": {"algorithm": "best_first", "evaluations": 2_000},
    "cuts": {"generations": 10, "population": 40, "local_search": 2},
}
SECTIONS: dict[str, Any] = {
    "local": {"k": KS, "passes": 0},
    "cells": {"k": KS, "passes": 0, "effort": 0, "exact": 0},
}


@dataclass(frozen=True)
class Table:
    """A file, how pandas reads it, and the roles of the columns that are published."""

    path: str
    keys: Sequence[str]
    sensitive: Sequence[str]
    read: Mapping[str, Any] = field(default_factory=dict)
    missing: str | None = None
    unit: str | None = None
    household: str | None = None
    kept: Mapping[str, str] = field(default_factory=dict)  # released unchanged, with the role of each
    bands: Mapping[str, Sequence[float]] = field(default_factory=dict)  # of sensitive columns
    runs: bool = False  # order and runs alone for local recoding: too many values for boxes in the time

    def rows(self, shared: Path, most: int) -> pd.DataFrame:
        """The first rows of the file, with the columns that the study is about."""
        path = shared / "data" / self.path
        holders = [name for name in (self.unit, self.household) if name]
        names = [*self.keys, *self.sensitive, *self.kept, *holders]
        if path.suffix == ".parquet":
            return pd.read_parquet(path, columns=names).head(most).copy()
        return pd.read_csv(path, nrows=most, **self.read)[names]


@dataclass(frozen=True)
class Visits(Table):
    """Patients with several visits, whose ward is that of the visit."""

    def rows(self, shared: Path, most: int) -> pd.DataFrame:  # noqa: ARG002 they are made, not read
        """Make the table of visits."""
        rng = np.random.default_rng(3)
        patient = np.repeat(np.arange(600), rng.integers(1, 7, 600))
        return pd.DataFrame(
            {
                "patient": [f"p{one:04d}" for one in patient],
                "age": rng.integers(20, 80, 600)[patient],
                "sex": rng.choice(["f", "m"], 600)[patient],
                "ward": rng.choice(["a", "b", "c", "d"], len(patient)),
                "diagnosis": rng.choice(["flu", "asthma", "angina", "fracture", "none"], len(patient)),
            }
        )


ADULT = "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
ADULT += "capital-loss hours-per-week native-country income"
ADULT_KEYS = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
ADULT_READ = {"header": None, "names": ADULT.split(), "skipinitialspace": True, "na_values": ["?"]}
GERMAN = "status duration history purpose amount savings employment rate personal debtors residence property age plans "
GERMAN += "housing credits job liable telephone foreign class"
GERMAN_KEYS = ("age", "duration", "personal", "job", "foreign", "housing")
GERMAN_READ = {"header": None, "names": GERMAN.split(), "sep": " "}
ACS_KEYS = ("AGEP", "SEX", "RAC1P", "MAR", "PUMA", "SCHL", "CIT")
NIST_KEYS = ("PUMA", "AGEP", "SEX", "MSP", "RAC1P", "EDU")
TEST_KEYS = ("urbrur", "roof", "walls", "water", "relat", "sex", "age")
TARRAGONA_KEYS = ("FIXED.ASSETS", "CURRENT.ASSETS", "TREASURY", "SALES", "LABOR.COSTS", "DEPRECIATION")
ACS = "acs-pums/psam_p15_2018.csv.gz"
NIST = {"na_values": ["N"]}
TABLES: dict[str, Table] = {
    "Adult": Table("adult-uci/adult.data.gz", ADULT_KEYS, ["occupation"], ADULT_READ),
    "Adult, complete rows": Table("adult-uci/adult.data.gz", ADULT_KEYS, ["occupation"], ADULT_READ, "drop"),
    "Adult, test part": Table("adult-uci/adult.test.gz", ADULT_KEYS, ["occupation"], ADULT_READ | {"skiprows": 1}),
    "Adult, survey weight kept": Table(
        "adult-uci/adult.data.gz", ADULT_KEYS, ["occupation"], ADULT_READ, kept={"fnlwgt": "weight"}
    ),
    "Adult of ARX": Table("arx/adult/adult.csv", ADULT_KEYS, ["occupation"], {"sep": ";"}),
    "ACS 2018 Hawaii": Table(ACS, ACS_KEYS, ["DIS"], household="SERIALNO"),
    "ACS 2018 Hawaii, complete rows": Table(ACS, ACS_KEYS, ["DIS"], missing="drop", household="SERIALNO"),
    "ACS 2018 Hawaii, exact income": Table(ACS, ACS_KEYS, ["PINCP"], household="SERIALNO"),
    "Census Income (KDD)": Table(
        "census-income-kdd/census_income_kdd.parquet",
        ("age", "sex", "race", "marital_stat", "education", "class_of_worker", "citizenship"),
        ["income"],
    ),
    "German credit": Table("german-credit/german.data", GERMAN_KEYS, ["class"], GERMAN_READ),
    "German credit, exact amount": Table("german-credit/german.data", GERMAN_KEYS, ["amount"], GERMAN_READ),
    "German credit, amount in bands": Table(
        "german-credit/german.data",
        GERMAN_KEYS,
        ["amount"],
        GERMAN_READ,
        bands={"amount": (1_000, 2_000, 4_000, 8_000)},
    ),
    "German credit, purpose kept": Table(
        "german-credit/german.data",
        GERMAN_KEYS,
        ["class"],
        GERMAN_READ,
        kept={"purpose": "label", "telephone": "other"},
    ),
    "NHANES 2017-2018": Table(
        "nhanes-2017-2018/NHANES_data_2017-2018.tsv.gz",
        (
            "AgeInYearsAtScreening",
            "Gender",
            "RacehispanicOrigin",
            "MaritalStatus",
            "EducationLevelAdults20",
            "TotalNumberOfPeopleInTheHousehold",
        ),
        ["DoctorToldYouHaveDiabetes"],
        {"sep": "\t"},
    ),
    "NIST Massachusetts 2019": Table("nist-diverse-communities/ma2019.csv.gz", NIST_KEYS, ["DREM"], NIST),
    "NIST Massachusetts 2018": Table("nist-diverse-communities/ma2018.csv.gz", NIST_KEYS, ["DREM"], NIST),
    "NIST Texas 2018": Table("nist-diverse-communities/tx2018.csv.gz", NIST_KEYS, ["DREM"], NIST),
    "NIST Texas 2019": Table("nist-diverse-communities/tx2019.csv.gz", NIST_KEYS, ["DREM"], NIST),
    "NIST Texas 2019, exact income": Table("nist-diverse-communities/tx2019.csv.gz", NIST_KEYS, ["PINCP"], NIST),
    "NIST national 2018": Table("nist-diverse-communities/national2018.csv.gz", NIST_KEYS, ["DREM"], NIST),
    "NIST national 2019": Table("nist-diverse-communities/national2019.csv.gz", NIST_KEYS, ["DREM"], NIST),
    "testdata": Table("sdcmicro/testdata.csv", TEST_KEYS, ["hhcivil"], household="ori_hid"),
    "testdata, exact income": Table("sdcmicro/testdata.csv", TEST_KEYS, ["income"], household="ori_hid"),
    "testdata, expenditure kept": Table(
        "sdcmicro/testdata.csv", TEST_KEYS, ["hhcivil"], household="ori_hid", kept={"expend": "other"}
    ),
    "UK census 2011": Table(
        "uk-census-2011-teaching/2011-census-microdata-small.csv.gz",
        ("Region", "Sex", "Age", "Marital Status", "Ethnic Group", "Country of Birth", "Family Composition"),
        ["Health"],
    ),
    "Visits": Visits("", ("age", "sex", "ward"), ["diagnosis"], unit="patient"),
    "free1": Table(
        "sdcmicro/free1.csv.gz", ("REGION", "SEX", "AGE", "MARSTAT", "EDUC1", "ETNI", "KINDPERS"), ["RECUNBEN"]
    ),
    "SD2011": Table(
        "sdcmicro/SD2011.csv.gz", ("sex", "age", "placesize", "region", "edu", "marital", "socprof"), ["alcabuse"]
    ),
    "CASC census": Table(
        "sdcmicro/CASCrefmicrodata.csv", ("AGI", "FEDTAX", "PTOTVAL", "INTVAL", "STATETAX", "FICA"), ["WSALVAL"]
    ),
    "CASC census, no sensitive column": Table(
        "sdcmicro/CASCrefmicrodata.csv", ("AGI", "FEDTAX", "PTOTVAL", "INTVAL", "STATETAX", "FICA"), []
    ),
    "francdat": Table("sdcmicro/francdat.csv", ("Key1", "Key2", "Key3", "Key4"), []),
    "Tarragona": Table("sdcmicro/Tarragona.csv", TARRAGONA_KEYS, ["NET.PROFIT"]),
    "Tarragona, no sensitive column": Table("sdcmicro/Tarragona.csv", TARRAGONA_KEYS, []),
    "EIA": Table(
        "sdcmicro/EIA.csv.gz",
        ("STATE", "RESREVENUE", "RESSALES", "COMREVENUE", "INDREVENUE", "TOTSALES"),
        ["MONTH"],
        unit="UTILITYID",
        runs=True,
    ),
    "Credit card clients": Table(
        "arx/genetic-benchmark/data/creditcard_int.csv",
        ("AGE", "SEX", "EDUCATION", "MARRIAGE", "LIMIT_BAL", "PAY_0"),
        ["default-payment-next-month"],
        {"sep": ";"},
    ),
    "MACH 2019": Table(
        "arx/genetic-benchmark/data/mach2019_int.csv",
        ("age", "familysize", "gender", "married", "race", "religion"),
        ["Q1A"],
        {"sep": ";"},
    ),
    "ACS 2015 Hawaii": Table("acs-pums/ss15phi.csv.gz", ACS_KEYS, ["DIS"], household="SERIALNO"),
    "ACS 2018, 14 states": Table(
        "acs-pums/psam_2018_14states_noreplicates.parquet", ACS_KEYS, ["DIS"], household="SERIALNO"
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a table, a method and a k: published or refused, with what pandas counted of the files."""

    table: str
    records: int
    method: str
    k: int
    said: str  # published | refused | unreachable | not supported | out of time | error
    why: Sequence[str] = ()
    smallest: int = 0  # records in a class
    holders: int = 0  # units, or households, in a class; 0 where there are none
    left_out: int = 0
    loss: float = 0.0
    unique: float = 0.0  # the largest share of records that one column outside the keys is unique for
    violations: Sequence[str] = ()


def study_of(table: Table, rows: pd.DataFrame) -> sf.Study:
    """The study of a table: hierarchies as `inspect` suggests them, every other setting by default."""
    seen = sf.inspect(rows)
    trees = {column.name: recipe(column) for column in seen.columns}
    columns: dict[str, Any] = {name: {"role": "quasi_identifier", "hierarchy": trees[name]} for name in table.keys}
    banded = {name: {"bands": list(ends)} for name, ends in table.bands.items()}
    columns |= {name: {"role": "sensitive", **banded.get(name, {})} for name in table.sensitive}
    columns |= {name: {"role": role} for name, role in table.kept.items()}
    columns |= {name: {"role": role} for role in ("unit", "household") if (name := getattr(table, role))}
    data = {"data": {"missing": table.missing}} if table.missing else {}
    local = SECTIONS["local"] | ({"method": "runs"} if table.runs else {})
    return sf.Study(rows, columns=columns, **data, **(SECTIONS | {"local": local}))


class OutOfTimeError(Exception):
    """The CPU seconds of one step are spent."""


@contextmanager
def limited(seconds: float = SECONDS) -> Iterator[None]:
    """Stop a step after some CPU seconds of this process."""

    def stop(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def attempted(job: Callable[[], Any]) -> tuple[Any, str, list[str]]:
    """What a step returns; or how it ended, and why."""
    try:
        with limited():
            return job(), "", []
    except PolicyError as error:
        return None, "refused", sorted({str(finding.rule) for finding in error.findings})
    except UnreachableError as error:
        return None, "unreachable", [error.what]
    except OutOfTimeError:
        return None, "out of time", [f"{SECONDS} CPU s"]
    except InputError as error:
        return None, "not supported", [error.what]
    except SystemError as error:  # compiled code that was interrupted
        ended = isinstance(error.__cause__ or error.__context__, OutOfTimeError)
        return None, *(("out of time", [f"{SECONDS} CPU s"]) if ended else ("error", [str(error)]))
    except Exception as error:  # noqa: BLE001 every other end is a fault that the table shows
        return None, "error", [f"{type(error).__name__}: {error}"]


def outcomes(name: str, rows: pd.DataFrame, method: str, folder: Path, ks: Sequence[int] = KS) -> Iterator[Outcome]:
    """One search, and the release with the least loss for each k."""
    table = TABLES[name]
    within = (WITHIN if table.sensitive else {}) | ({"households": 2} if table.household else {})

    def searched() -> Any:
        study = study_of(table, rows)
        return sf.search(study, system=method, max_suppression=0.05, constraints=within, **BUDGETS.get(method, {}))

    front, said, why = attempted(searched)
    for k in ks:
        if front is None:
            yield Outcome(name, len(rows), method, k, said, why)
            continue

        def released(k: int = k) -> tuple[Choice, Path]:
            choice = sf.pick(front, min_k=k)
            target = folder / f"release-{k}"
            sf.publish(choice, target, state=folder / f"state-{k}")
            return choice, target

        done, ended, reasons = attempted(released)
        if done is None:
            yield Outcome(name, len(rows), method, k, ended, reasons)
        else:
            yield measured(name, rows, method, k, *done)


def measured(name: str, rows: pd.DataFrame, method: str, k: int, choice: Choice, folder: Path) -> Outcome:
    """Count a released folder with pandas."""
    table, violations = TABLES[name], []
    public = pd.read_parquet(folder / "public" / "data.parquet")
    keys, holder = list(table.keys), table.unit or table.household
    kept = [column for column in public.columns if column not in keys]
    if extra := set(kept) - {*table.sensitive, *table.kept}:
        violations.append(f"released columns without a role: {sorted(extra)}")
    smallest = int(public.groupby(keys, dropna=False).size().min())
    holders = 0
    if smallest < k:
        violations.append(f"a class of {smallest} records")
    if holder:
        shown = labelled(rows, table, choice, folder, boxes=method in ("local", "cells"))
        if counted(shown[keys]) != counted(public[keys]):
            violations.append("the classes of the source are not those of the file")
        holders = int(shown.groupby(keys, dropna=False)[holder].nunique().min())
        if holders < (k if table.unit else 2):
            violations.append(f"a class of {holders} {holder}")
    unique = 0.0
    for column in kept:
        present = public[column].dropna()
        share = float(present.map(present.value_counts()).eq(1).sum()) / len(public)
        unique = max(unique, share)
        if share > IDENTIFYING:
            violations.append(f"{column} is unique for {share:.1%} of the records")
    incomplete = int(rows[[*keys, *table.sensitive]].isna().any(axis=1).sum()) if table.missing == "drop" else 0
    violations += pages_at_fault(folder, incomplete, len(rows))
    return Outcome(
        name,
        len(rows),
        method,
        k,
        "published",
        smallest=smallest,
        holders=holders,
        left_out=incomplete,
        loss=float(json.loads((folder / "private" / "manifest.json").read_text("utf-8"))["loss"]),
        unique=unique,
        violations=violations,
    )


def counted(labels: pd.DataFrame) -> Counter[tuple[str, ...]]:
    """How often each row of labels occurs; a missing label is a text of its own."""
    texts = labels.astype(object).where(labels.notna(), "(missing)").astype(str)
    return Counter(texts.itertuples(index=False, name=None))


def labelled(rows: pd.DataFrame, table: Table, choice: Choice, folder: Path, *, boxes: bool) -> pd.DataFrame:
    """The released rows of the source with their labels and with the numbers of units and households.

    A recoding is applied to the rows. A release by classes lists its tuples and the class of each: they are joined.
    """
    holders = [name for name in (table.unit, table.household) if name]
    if not boxes:
        recoded = choice.apply(rows)
        return recoded[list(table.keys)].join(rows[holders])
    about = json.loads((folder / "private" / "classes.json").read_text("utf-8"))
    of, owner, _ = np.array(about["entries"]).reshape(3, -1)
    if len(set(of.tolist())) < len(of):
        raise AssertionError("rows with equal keys are in several classes, so pandas cannot count units")
    listed = {}
    for j, (name, column) in enumerate(about["columns"].items()):
        listed[name] = [
            column["values"][code] for code in np.array(about["codes"]).reshape(len(about["columns"]), -1)[j][of]
        ]
    tuples = pd.DataFrame(listed).assign(_class=owner)
    texts = rows[list(table.keys)].apply(as_text)
    joined = texts.merge(tuples, how="left", on=list(table.keys))
    joined.index = rows.index
    inside = joined[joined["_class"] >= 0]
    public = labels_of_classes(about)
    return public.loc[inside["_class"]].set_axis(inside.index)[list(table.keys)].join(rows[holders])


def labels_of_classes(about: Mapping[str, Any]) -> pd.DataFrame:
    """The labels of every class that a release by classes lists."""
    low, high = (np.array(about[end]).reshape(-1, len(about["columns"])) for end in ("low", "high"))
    shown = {}
    for j, (name, column) in enumerate(about["columns"].items()):
        labels = {tuple(run): label for run, label in zip(column["runs"], column["labels"], strict=True)}
        shown[name] = [labels[run] for run in zip(low[:, j].tolist(), high[:, j].tolist(), strict=True)]
    return pd.DataFrame(shown)


def as_text(values: pd.Series) -> pd.Series:
    """Values as texts: whole numbers without a point, missing ones blank."""

    def text(value: Any) -> str:
        if pd.isna(value):
            return ""
        return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)

    return values.map(text)


def pages_at_fault(folder: Path, left_out: int, records: int) -> list[str]:
    """What the public page says wrongly of records that the missing rule left out."""
    page = html.unescape((folder / "public" / "external.html").read_text("utf-8"))
    texts = [
        re.sub(r"\s+", " ", part)
        for part in re.split(r"<[^>]+>", re.sub(r"<(style|script).*?</\1>", "", page, flags=re.S))
    ]
    said = [text for text in texts if re.search(r"[Rr]ecords of the original table.*left out", text)]
    if not left_out:
        return [f"the page names left-out records, and there are none: {said[0]}"] if said else []
    shares = [float(share) for text in said for share in re.findall(r"([\d.]+)\s?%", text)]
    if any(abs(share - 100 * left_out / records) < 0.06 for share in shares):
        return []
    return [f"the page does not name {left_out} left-out records"]


def main() -> None:
    shared = os.environ.get("SFUMATO_SHARED", "")
    if not Path(shared, "data").is_dir():
        sys.exit("skipped: SFUMATO_SHARED does not name the folder of shared data")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--show", action="store_true", help="print what the log has, and run nothing")
    given = parser.parse_args()
    names = [name for name in TABLES if not given.only or any(word.lower() in name.lower() for word in given.only)]
    found = read_log(given.log)
    for name in names if not given.show else ():
        rows = TABLES[name].rows(Path(shared), given.rows)
        for method in given.methods:
            if any((one.table, one.method) == (name, method) for one in found):
                continue
            began = time.process_time()
            with tempfile.TemporaryDirectory() as folder:
                new = list(outcomes(name, rows, method, Path(folder)))
            spent = time.process_time() - began
            print(f"{name}, {method}: {', '.join(said_of(one) for one in new)} ({spent:.0f} CPU s)", file=sys.stderr)
            found += new
            if given.log:
                with given.log.open("a", encoding="utf-8") as log:
                    log.writelines(json.dumps(vars(one)) + "\n" for one in new)
    print_tables(sorted((one for one in found if one.table in names), key=lambda one: names.index(one.table)))


def read_log(path: Path | None) -> list[Outcome]:
    """What an earlier run found."""
    if path is None or not path.is_file():
        return []
    return [Outcome(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def said_of(one: Outcome) -> str:
    """One outcome in few words."""
    if one.violations:
        return "**" + "; ".join(one.violations) + "**"
    if one.said == "published":
        holders = f" / {one.holders}" if one.holders else ""
        return f"{one.smallest}{holders}, {one.loss:.0%}"
    return f"{one.said}: {', '.join(one.why)}" if one.said in ("refused", "error") else one.said


def print_tables(found: Sequence[Outcome]) -> None:
    """The table of all outcomes, and those that ended in no release and no refusal."""
    print("| table | records | left out | method | " + " | ".join(f"k = {k}" for k in KS) + " | most unique column |")
    print("|---|---|---|---|" + "---|" * (len(KS) + 1))
    for name, method in dict.fromkeys((one.table, one.method) for one in found):
        own = {one.k: one for one in found if (one.table, one.method) == (name, method)}
        some = next(iter(own.values()))
        left_out = max(one.left_out for one in own.values())
        unique = max(one.unique for one in own.values())
        cells = [name, f"{some.records:,}", f"{left_out:,}" if left_out else "–", method]
        cells += [said_of(own[k]) if k in own else "–" for k in KS]
        published = any(one.said == "published" for one in own.values())
        cells.append(f"{unique:.1%}" if published else "–")
        print("| " + " | ".join(cells) + " |")
    counts = Counter(one.said for one in found)
    print("\n" + ", ".join(f"{said}: {number}" for said, number in counts.most_common()))
    print(f"with a violation: {sum(bool(one.violations) for one in found)}")
    for said in ("not supported", "error", "unreachable", "out of time"):
        for why in dict.fromkeys(why for one in found if one.said == said for why in one.why):
            print(f"- {said}: {why}")


if __name__ == "__main__":
    main()
