"""A full audit of Adult: file to figures, all measures, against pycanon's eight on the same table."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks.timing import cpu_seconds, show
from sfumato.base.progress import peak_memory

PYCANON_CPU_SECONDS = 63.0  # pycanon, eight measures on the raw table; not run here because it needs pandas


def main() -> None:
    study = sf.read(sf.sample("adult-complete"))
    seconds, runs = cpu_seconds(lambda: sf.audit(study), least=3.0)
    audit = sf.audit(study)
    measured = sum(figure.reason is None for figure in audit.figures.values())
    row = [
        f"{measured}",
        f"{seconds:.2f}",
        f"{PYCANON_CPU_SECONDS:.0f} (8 measures)",
        f"{PYCANON_CPU_SECONDS / seconds:.0f}×",
    ]
    show(f"Full audit of Adult ({runs} runs)", ["measures", "CPU s", "pycanon, CPU s", "ratio"], [row])
    _many_values()


def _many_values(records: int = 1_000_000, values: int = 100_000) -> None:
    """A million rows whose sensitive column has a hundred thousand values, each with some records."""
    rng = np.random.default_rng(3)
    sizes = {"age": 72, "sex": 2, "region": 50, "job": 200, "education": 12}
    columns = {name: rng.integers(0, size, records) for name, size in sizes.items()}
    secret = np.concatenate([np.arange(values), rng.integers(0, values, records - values)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        names = np.array([f"v{number}" for number in range(values)])
        pq.write_table(pa.table(columns | {"diagnosis": names[secret]}), path)
        roles = {name: {"role": "quasi_identifier"} for name in sizes} | {"diagnosis": {"role": "sensitive"}}
        study = sf.Study(data={"path": str(path)}, columns=roles)
        began = time.process_time()
        audit = sf.audit(study)
        seconds = time.process_time() - began
    measured = sum(figure.reason is None for figure in audit.figures.values())
    peak = peak_memory() / 2**30
    show(
        f"Audit of {records:,} rows, a sensitive column of {values:,} values",
        ["measures", "CPU s", "most memory held, GiB"],
        [[f"{measured} of {len(audit.figures)}", f"{seconds:.1f}", f"{peak:.2f}"]],
    )
