"""Ten million synthetic rows to a frequency table under a memory limit of 2 GB, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.synthetic import census_file
from benchmarks.timing import show

ROWS = 10_000_000
CHILD = """
import sys, time
import sfumato as sf
from sfumato.base.progress import peak_memory
names = "age sex race education marital work country children".split()
columns = {name: {"role": "quasi_identifier"} for name in names} | {"illness": {"role": "sensitive"}}
options = {"memory_limit": "2GB", "threads": 2, "temp_folder": sys.argv[2]}
study = sf.Study(data={"path": sys.argv[1]}, columns=columns, engine_options=options)
began, cpu = time.time(), time.process_time()
table = study.table()
assert table.rows == ROWS
peak = peak_memory() / 2**30
print(table.tuples, time.process_time() - cpu, time.time() - began, peak)
"""


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("parquet", "csv"):
            path = Path(folder) / f"census.{suffix}"
            began = time.time()
            census_file(path, ROWS)
            made = time.time() - began
            code = CHILD.replace("ROWS", str(ROWS))
            done = subprocess.run(
                [sys.executable, "-c", code, str(path), folder], capture_output=True, text=True, check=True
            )
            tuples, cpu, wall, peak = (float(word) for word in done.stdout.split())
            size = path.stat().st_size / 2**20
            rows.append(
                [
                    suffix,
                    f"{size:,.0f} MB",
                    f"{tuples:,.0f}",
                    f"{cpu:.1f}",
                    f"{wall:.1f}",
                    f"{peak:.2f} GB",
                    f"{made:.1f} s",
                ]
            )
            path.unlink()
    heads = ["format", "file", "tuples", "CPU s", "wall s", "peak resident", "made in"]
    show("10,000,000 rows to a frequency table, memory_limit 2GB", heads, rows)
