"""CPU seconds, and a table to show them in."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_seconds(job: Callable[[], object], least: float = 1.0) -> tuple[float, int]:
    """CPU seconds of this process per call, repeated until `least` seconds are spent; and how often it ran."""
    job()  # compile and warm up
    began, runs = time.process_time(), 0
    while True:
        job()
        runs += 1
        spent = time.process_time() - began
        if spent >= least:
            return spent / runs, runs


def show(title: str, heads: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table, ready for RESULTS.md."""
    print(f"### {title}\n")
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)
