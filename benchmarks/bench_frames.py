"""Memory and time of an audit of a polars frame beside the same rows in a Parquet file.

Each job runs in a process of its own, and the most memory it held is taken from the system. What the frame itself
holds is measured in a process that only loads it. Set SFUMATO_BENCH_ROWS for another size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROWS = int(os.environ.get("SFUMATO_BENCH_ROWS", "10000000"))
JOB = """
import json, os, sys, time
what, path = sys.argv[1:]
import polars
import sfumato as sf
from sfumato.base.progress import peak_memory
roles = dict(
    quasi_identifiers=["age", "sex", "region", "job", "birth"], sensitive=["disease"], keep=[], drop=["name", "income"]
)
frame = polars.read_parquet(path) if what != "parquet" else None
held = frame.estimated_size() if frame is not None else 0
loaded = peak_memory()
began = time.process_time()
before = int(open("/proc/self/io").read().split("wchar: ")[1].split()[0])
if what != "load":
    audit = sf.audit(sf.Study(frame if what == "frame" else path, **roles))
    k = audit["k"]
written = int(open("/proc/self/io").read().split("wchar: ")[1].split()[0]) - before
peak = peak_memory()
print(json.dumps({"peak": peak, "loaded": loaded, "held": held, "cpu": time.process_time() - began, "written": written,
                  "figures": {n: audit[n] for n in audit} if what != "load" else {}}))
"""


def table(path: Path, rows: int) -> None:
    """People with five quasi-identifiers, written in parts so that this process stays small."""
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    rng = np.random.default_rng(16)
    jobs = np.array([f"occupation number {number}" for number in range(60)])
    writer = None
    for start in range(0, rows, 1_000_000):
        size = min(1_000_000, rows - start)
        part = pyarrow.table(
            {
                "age": rng.integers(18, 90, size).astype(np.int64),
                "sex": rng.choice(["F", "M"], size),
                "region": rng.choice([f"R{n:02d}" for n in range(40)], size),
                "job": jobs[rng.integers(0, 60, size)],
                "birth": rng.integers(1, 13, size).astype(np.int64),
                "disease": rng.choice(["flu", "cold", "asthma", "none", "other"], size),
                "name": [f"person {number:09d}" for number in range(start, start + size)],
                "income": rng.lognormal(10, 1, size),
            }
        )
        writer = writer or pyarrow.parquet.ParquetWriter(path, part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def job(what: str, path: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", JOB, what, str(path)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compared(rows: int) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        table(path, rows)
        return {what: job(what, path) for what in ("load", "parquet", "frame")}


def main() -> None:
    found = compared(ROWS)
    beyond = found["frame"]["peak"] - found["frame"]["held"]
    print(f"an audit of {ROWS:,} rows, five quasi-identifiers")
    for what, one in found.items():
        print(
            f"{what:8} peak {one['peak'] / 2**20:8.0f} MiB, frame {one['held'] / 2**20:6.0f} MiB, "
            f"CPU {one['cpu']:6.1f} s, written {one['written'] / 2**20:.2f} MiB"
        )
    print(f"beyond the frame's own bytes: {beyond / found['parquet']['peak']:.2f} times the memory of the Parquet job")


if __name__ == "__main__":
    main()
