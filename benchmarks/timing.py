"""CPU seconds, and a table to show them in."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_seconds(job: Callable[[], object], least: float = 1.0) -> tuple[float, int]:
    """CPU seconds of the fastest call, repeated until `least` seconds are spent; and how often it ran.

    The fastest, because other work on the machine can only add.
    """
    job()  # compile and warm up
    best, spent, runs = float("inf"), 0.0, 0
    while spent < least or runs < 3:
        began = time.process_time()
        job()
        took = time.process_time() - began
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best, runs


def show(title: str, heads: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table, ready for RESULTS.md."""
    print(f"### {title}\n")
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)
