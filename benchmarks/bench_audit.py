"""A full audit of Adult: file to figures, all measures, against pycanon's eight on the same table."""

from __future__ import annotations

import sfumato as sf
from benchmarks.timing import cpu_seconds, show

PYCANON_CPU_SECONDS = 63.0  # pycanon, eight measures on the raw table; not run here because it needs pandas


def main() -> None:
    study = sf.read(sf.sample("adult"))
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
