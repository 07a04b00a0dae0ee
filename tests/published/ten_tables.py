"""Real tables taken from inspection to a release, as a careful user would: what is undecided becomes a
quasi-identifier, of a very wide table some columns are chosen, and a column that the policy refuses is left out.

Run as a program it prints the table of docs/roles.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.release.fronts import publish

import sfumato as sf
from sfumato.auditing.inspect import Inspection
from sfumato.data.settings import Role
from sfumato.methods.search import search
from sfumato.release.policy import PolicyError
from sfumato.release.publish import Release
from sfumato.study import ColumnSettings, Study, read

ADULT = "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
ADULT += "capital-loss hours-per-week native-country income"
GERMAN = "status duration credit_history purpose amount savings employment installment_rate personal_status debtors "
GERMAN += "residence_since property age other_plans housing existing_credits job liable telephone foreign_worker class"
SEARCH: dict[str, Any] = {
    "algorithm": "best_first",
    "objectives": ("general_loss",),
    "max_suppression": 0.05,
}
EVALUATIONS = 3_000
MOST = {Role.QUASI_IDENTIFIER: 12, Role.SENSITIVE: 3}  # columns that are chosen of a table with more than twice as many


@dataclass(frozen=True)
class Table:
    """A file under the shared data, how it is read, and how many of its rows are taken (0: all)."""

    path: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 0


TABLES: dict[str, Table] = {
    "ACS 2018, Hawaii": Table("acs-pums/psam_p15_2018.csv.gz"),
    "ACS 2015, Hawaii": Table("acs-pums/ss15phi.csv.gz"),
    "ACS 2018, 14 states": Table("acs-pums/psam_2018_14states_noreplicates.parquet", rows=20_000),
    "Adult, without names": Table("adult-uci/adult.data.gz"),
    "Adult, named": Table("adult-uci/adult.data.gz", {"header": False, "names": tuple(ADULT.split())}),
    "Adult of ARX": Table("arx/adult/adult.csv"),
    "Census Income (KDD)": Table("census-income-kdd/census_income_kdd.parquet", rows=20_000),
    "German credit, without names": Table("german-credit/german.data"),
    "German credit, named": Table("german-credit/german.data", {"header": False, "names": tuple(GERMAN.split())}),
    "NHANES 2017–2018": Table("nhanes-2017-2018/NHANES_data_2017-2018.tsv.gz"),
    "testdata (sdcMicro)": Table("sdcmicro/testdata.csv"),
    "free1 (µ-Argus)": Table("sdcmicro/free1.csv.gz"),
    "CASC census": Table("sdcmicro/CASCrefmicrodata.csv"),
    "Tarragona": Table("sdcmicro/Tarragona.csv"),
    "EIA": Table("sdcmicro/EIA.csv.gz"),
    "SD2011": Table("sdcmicro/SD2011.csv.gz"),
    "Credit card clients": Table("arx/genetic-benchmark/data/creditcard_int.csv", rows=6_000),
    "MACH 2019": Table("arx/genetic-benchmark/data/mach2019_int.csv", rows=20_000),
}


@dataclass(frozen=True)
class Outcome:
    """A table's way to a release: what was suggested, what had to be decided, what was left out, what came of it."""

    inspection: Inspection
    study: Study
    not_chosen: int
    left_out: Mapping[str, str]
    release: Release

    @property
    def roles(self) -> Counter[str]:
        return Counter(str(s.role) if s.role else "undecided" for s in self.inspection.suggestions)


def placed(table: Table, shared: Path, folder: Path) -> Path:
    """The file, or one with rows from all over it where only some are taken."""
    path = shared / "data" / table.path
    if not table.rows:
        return path
    import duckdb

    if path.suffix == ".parquet":
        target = folder / "part.parquet"
        every = duckdb.sql(f"SELECT count(*) FROM read_parquet('{path}')").fetchall()[0][0] // table.rows
        numbered = f"read_parquet('{path}', file_row_number = true)"
        some = f"SELECT * EXCLUDE file_row_number FROM {numbered} WHERE file_row_number % {every} = 0"
        duckdb.sql(f"COPY ({some}) TO '{target}' (FORMAT parquet)")
        return target
    head, *lines = path.read_text("utf-8").splitlines(keepends=True)
    target = folder / "part.csv"
    target.write_text("".join([head, *lines[:: len(lines) // table.rows]]), "utf-8")
    return target


def inspected(table: Table, shared: Path, folder: Path) -> tuple[Inspection, Path]:
    """What a look at a table shows, and the run file that is written from it."""
    path = placed(table, shared, folder)
    found = sf.inspect(str(path), **table.settings)
    run = folder / "run.toml"
    run.write_text(found.run_file(str(path)), "utf-8")
    return found, run


def decided(run: Path) -> Study:
    """The study of a run file, with what is undecided made a quasi-identifier by the recipe that its comment has."""
    text = run.read_text("utf-8")
    for line in [line for line in text.splitlines() if line.startswith("# ") and '{ role = "" }' in line]:
        key, comment = line[2:].split(' = { role = "" }  # ', 1)
        recipe = comment.rsplit("hierarchy = ", 1)[1]
        text = text.replace(line, f'{key} = {{ role = "quasi_identifier", hierarchy = {recipe} }}')
    run.write_text(text, "utf-8")
    return read(run)


def chosen(study: Study, inspection: Inspection, evaluations: int = EVALUATIONS) -> Study:
    """Of a very wide table, the columns with fewest missing values, in the order of the table; the others are left out.

    Nobody publishes a hundred generalized columns: with so many, k hides all of them.
    """
    missing = {column.name: column.missing for column in inspection.columns}
    for role, most in MOST.items():
        names = study.named(role)
        if len(names) > 2 * most:
            rest = sorted(names, key=lambda name: missing[name])[most:]
            study = study.replace(columns={name: ColumnSettings(role=Role.DROP) for name in rest})
    within = {"k": 3, "distinct_l": 2, "t_closeness": 0.89} if study.named(Role.SENSITIVE) else {"k": 3}
    return study.with_search(**SEARCH, evaluations=evaluations, constraints=within)


def reached(inspection: Inspection, declared: Study, folder: Path, evaluations: int = EVALUATIONS) -> Outcome:
    """Search and publish; a column that the policy names is left out, and if records are unique, the weight is."""
    left_out: dict[str, str] = {}
    study = chosen(declared, inspection, evaluations)
    not_chosen = len(study.named(Role.DROP)) - len(declared.named(Role.DROP))
    for number in range(40):
        front = search(study)
        point = min(front.points, key=lambda point: point.loss)
        try:
            release = publish(front, point.id, folder / f"release{number}", state=folder / "state")
        except PolicyError as error:
            refused = {f.column: str(f.rule) for f in error.findings if f.column is not None}
            if not refused:
                refused = dict.fromkeys(study.named(Role.WEIGHT), "uniques")
            if not refused:
                raise
            left_out |= refused
            study = study.replace(columns={name: ColumnSettings(role=Role.DROP) for name in refused})
            continue
        return Outcome(inspection, study, not_chosen, left_out, release)
    raise AssertionError("no release")


def main(shared: Path, names: list[str]) -> None:
    for name in names or list(TABLES):
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            inspection, run = inspected(TABLES[name], shared, folder)
            outcome = reached(inspection, decided(run), folder)
            roles, whole = outcome.roles, outcome.release.manifest["whole"]
            kinds = ("quasi_identifier", "sensitive", "weight", "identifier", "drop", "undecided")
            known, everything = whole["quasi_identifiers_and_kept"], whole["all_columns"]
            cells = [
                name,
                f"{inspection.rows:,} × {len(inspection.columns)}",
                *(str(roles[kind]) for kind in kinds),
                f"{100 * inspection.everything.unique_share:.1f} %",
                str(outcome.not_chosen or "–"),
                ", ".join(f"{column} ({rule})" for column, rule in outcome.left_out.items()) or "–",
                f"{outcome.release.manifest['figures']['k']['value']:g}",
                f"{100 * outcome.release.manifest['loss']:.0f} %",
                f"{100 * known['unique_share']:.2f} %",
                f"{100 * everything['unique_share']:.1f} %",
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(Path(os.environ["SFUMATO_SHARED"]), sys.argv[1:])
