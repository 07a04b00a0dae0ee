"""A table of 1,000 ordinary people and two who stand out in every column; and what the public files of a release say.

Any way to release can be tested with it: write the table, release it, and compare `public_texts` of two tables that
differ only in the two people.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pyreadstat
from tests.release.fronts import ANYTHING

import sfumato as sf
from sfumato.front import Front, Objective, Point
from sfumato.measures.classes import classify
from sfumato.measures.suppression import suppress_below
from sfumato.plans.recodings import Plan
from sfumato.release.publish import Release
from sfumato.release.readback import loss_of, measures_of

COLUMNS = ("age", "zip", "job", "born", "pay", "town", "ill", "visits")
JOBS = ("Clerk", "Cook", "Smith", "Teacher")
TOWNS = ("Bern", "Cluj", "Dax", "Fano", "Gent")


@dataclass(frozen=True)
class Person:
    """Somebody who stands out: a value for every column."""

    age: str
    zip: str
    job: str
    born: str
    pay: str
    town: str
    ill: str
    visits: str

    @property
    def cells(self) -> list[str]:
        return [getattr(self, name) for name in COLUMNS]

    @property
    def words(self) -> list[str]:
        """The values that cannot stand in a page for another reason."""
        return [self.zip, self.job, self.born, self.pay, self.town, self.ill, self.visits]


LOW = Person("3", "00001", "Astronaut", "1871-02-03", "-40317.5", "Aachen", "Ebola-UNIQUE", "77771")
HIGH = Person("117", "99999", "Zookeeper", "2031-11-09", "987654.3", "Zwolle", "Rabies-UNIQUE", "88882")


def write_people(path: Path, strange: Sequence[Person] = (LOW, HIGH), seed: int = 1, rows: int = 1000) -> Path:
    """Ordinary people with the strange ones among them."""
    rng = random.Random(seed)
    first = date(1965, 1, 1)
    found: list[Sequence[str]] = [
        (
            str(rng.randint(20, 60)),
            f"{rng.choice(['10', '11', '20'])}{rng.choice(['00', '01', '50'])}{rng.randint(1, 4)}",
            rng.choice(JOBS),
            (first + timedelta(days=rng.randint(0, 9000))).isoformat(),
            f"{rng.randint(1000, 5000)}.{rng.choice('05')}",
            rng.choice(TOWNS),
            rng.choice(["flu", "cold", "gout", "cough"]),
            str(rng.randint(0, 9)),
        )
        for _ in range(rows)
    ]
    for person in strange:
        found.insert(rng.randrange(len(found)), person.cells)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(found)
    return path


def people(folder: Path, known: Mapping[str, Mapping[str, Any]], **data: Any) -> sf.Study:
    """A study of `people.csv` in a folder: the known columns are quasi-identifiers, as they are declared."""
    columns: dict[str, dict[str, Any]] = {name: {"role": "drop"} for name in COLUMNS}
    columns |= {"ill": {"role": "sensitive"}, "visits": {"role": "other"}}
    columns |= {name: {"role": "quasi_identifier", **given} for name, given in known.items()}
    return sf.Study(data={"path": str(folder / "people.csv"), **data}, columns=columns, policy=ANYTHING)


def front_with(study: sf.Study, plan: Plan, names: Sequence[str] = ("k", "general_loss")) -> Front:
    """A front with one plan, measured on the frequency table."""
    table, measures = study.table(), measures_of(study)
    classes = classify(table, plan.recoding(table), study.weights_for(table))
    classes = suppress_below(classes, plan.suppress_below, plan.diversity_below)
    values = {name: measures[name].value(classes) for name in names}
    return Front(
        study,
        tuple(Objective(name, measures[name].direction) for name in names),
        (Point(0, values, loss_of(classes), classes.suppressed_rows, plan),),
        "exact",
        True,
        1,
        100,
        0.1,
        table.fingerprint,
        table.records,
        system="cuts" if hasattr(plan, "cuts") else "lattice",
    )


def public_files(release: Release) -> list[Path]:
    """What may leave."""
    return sorted(path for path in release.public.rglob("*") if path.is_file())


def rows_of(release: Release) -> list[dict[str, str]]:
    """The released rows as text, in an order of their own."""
    if release.data.suffix == ".sav":
        frame, meta = pyreadstat.read_sav(str(release.data), user_missing=True)
        shown = frame.replace({name: labels for name, labels in meta.variable_value_labels.items() if name in frame})
        found = [{k: str(v) for k, v in row.items()} for row in shown.to_dict("records")]
    elif release.data.suffix == ".parquet":
        found = [{k: str(v) for k, v in row.items()} for row in pyarrow.parquet.read_table(release.data).to_pylist()]
    else:
        raw = release.data.read_bytes()
        text = (gzip.decompress(raw) if release.data.suffix == ".gz" else raw).decode("utf-8")
        found = list(csv.DictReader(io.StringIO(text, newline="")))
    return sorted(found, key=lambda row: tuple(row.values()))


def public_texts(release: Release) -> dict[str, str]:
    """The public files as text; the rows of the data file in an order of their own."""
    rows = json.dumps(rows_of(release))
    if release.data.suffix == ".sav":
        meta = pyreadstat.read_sav(str(release.data), metadataonly=True)[1]
        rows += repr(
            (meta.variable_value_labels, meta.missing_ranges, meta.original_variable_types, meta.column_labels)
        )
    digest = hashlib.sha256(release.data.read_bytes()).hexdigest()  # differs with the order of the rows
    texts = {
        path.name: rows if path == release.data else path.read_text("utf-8").replace(digest, "")
        for path in public_files(release)
    }
    certificate = json.loads(texts["certificate.json"])  # its digests differ as the files do that state the one above
    return texts | {"certificate.json": json.dumps(certificate | {"files": sorted(certificate["files"])})}


def labels_of(release: Release, column: str) -> set[str]:
    """Every label of a column that the data file or the dictionary shows."""
    entry = next(c for c in dictionary_of(release)["columns"] if c["name"] == column)
    listed = {*entry.get("labels", ()), *entry.get("recode", {}), *entry.get("recode", {}).values()}
    return listed | {row[column] for row in rows_of(release)}


def dictionary_of(release: Release) -> dict[str, Any]:
    (path,) = [path for path in public_files(release) if path.name == "dictionary.json"]
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found
