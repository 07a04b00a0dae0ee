"""Run the benchmarks named on the command line, or all, and print their tables."""

from __future__ import annotations

import datetime
import importlib
import os
import pkgutil
import platform
import sys

import benchmarks


def main() -> None:
    known = sorted(info.name for info in pkgutil.iter_modules(benchmarks.__path__) if info.name.startswith("bench_"))
    wanted = [f"bench_{name}" for name in sys.argv[1:]] or known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"unknown benchmarks: {unknown}; known: {[name.removeprefix('bench_') for name in known]}")
    print(
        f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n"
    )
    del sys.argv[1:]  # the names are not for the benchmarks themselves
    for name in wanted:
        importlib.import_module(f"benchmarks.{name}").main()


main()
