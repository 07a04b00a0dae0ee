"""Order and runs (method 1 of local recoding) on large tables: losses, CPU seconds and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bench_large import mach2019
from benchmarks.timing import show
from sfumato.base.progress import peak_memory
from sfumato.data.open import open_source
from sfumato.data.settings import DataSettings
from sfumato.methods.local.search import search_local
from sfumato.methods.run import Run
from sfumato.papers.cuts import paper_setting
from sfumato.samples.samples import write_people
from sfumato.study import Study, read

KS = (5, 20, 100)
TABLES = ("adult", "kdd", "acs14", "mach2019", "synthetic")
RECORDS = 10_000_000
YEARS = {"build": "interval", "widths": [5, 10, 20, 40]}
RARE = {"build": "frequency", "shares": [0.02, 0.1, 0.3]}


def study_of(name: str, shared: Path, folder: Path) -> Study:
    """A table, its ages parted anywhere, other columns along their trees."""
    if name == "adult":
        return paper_setting(4)
    if name == "mach2019":
        return mach2019(shared)
    if name == "synthetic":
        run = folder / "synthetic" / "run.toml"
        return read(run if run.is_file() else write_people(folder / "synthetic", RECORDS, seed=5))
    path, age, others = {
        "kdd": (
            "census-income-kdd/census_income_kdd.parquet",
            "age",
            ("sex", "race", "marital_stat", "education", "class_of_worker", "citizenship", "country_of_birth_self"),
        ),
        "acs14": (
            "acs-pums/psam_2018_14states_noreplicates.parquet",
            "AGEP",
            ("SEX", "RAC1P", "MAR", "SCHL", "COW", "ST"),
        ),
    }[name]
    settings: dict[str, Any] = {"path": str(shared / "data" / path), "missing": "category"}
    columns: dict[str, Any] = {c: {"role": "drop"} for c in open_source(DataSettings(**settings)).names}
    columns |= {age: {"role": "quasi_identifier", "hierarchy": YEARS, "constrained": False}}
    columns |= {column: {"role": "quasi_identifier", "hierarchy": RARE} for column in others}
    return Study(data=settings, columns=columns)


def measured(name: str, shared: Path, folder: Path) -> dict[str, Any]:
    """One table: reading apart from searching, and the most memory the process held."""
    study = study_of(name, shared, folder).with_search(max_suppression=0.0).replace(local={"k": KS, "method": "runs"})
    began = time.process_time()
    table = study.table()
    reading = time.process_time() - began
    began = time.process_time()
    front = search_local(study, table, Run())
    return {
        "records": table.records,
        "tuples": table.tuples,
        "orders": front.evaluations,
        "losses": [point.loss for point in front.points],
        "reading": reading,
        "searching": time.process_time() - began,
        "memory": peak_memory() / 2**30,
    }


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in TABLES:
            words = [sys.executable, "-m", "benchmarks.bench_local_tables", name, folder]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            rows.append(
                [
                    name,
                    f"{found['records']:,}",
                    f"{found['tuples']:,}",
                    *(f"{loss:.2%}" for loss in found["losses"]),
                    str(found["orders"]),
                    f"{found['reading']:.1f}",
                    f"{found['searching']:.1f}",
                    f"{found['memory']:.2f}",
                ]
            )
            print(rows[-1], flush=True)
    heads = ["table", "records", "tuples", *(f"k = {k}" for k in KS), "orders", "CPU s to read", "to search", "GiB"]
    show("Order and runs on large tables", heads, rows)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(measured(sys.argv[1], Path(os.environ["SFUMATO_SHARED"]), Path(sys.argv[2]))))
    else:
        main()
