"""Sfumato beside its Python peers on Adult: the same table, the same hierarchies, at most 1 % suppressed.

`make bench-peers` installs the peers in an environment of their own (they are no dependency) and prints the tables of
docs/coming-from/comparison.md. Figures of ARX and sdcMicro are recorded ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sfumato as sf

KS = (5, 20)


def peers(python: Path, folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """What the peers say, by tool and k; `folder` gets the files that they make."""
    child = Path(__file__).with_name("peers_child.py")
    command = [python, child, sf.sample("adult-complete").parent, folder, *map(str, KS)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=kept)
    return dict(json.loads(done.stdout))


def main() -> None:
    if len(sys.argv) < 2:
        print("| peers | not measured: make bench-peers |")
        return
    study = sf.read(sf.sample("adult-complete"))
    with tempfile.TemporaryDirectory() as name:
        told = peers(Path(sys.argv[1]), Path(name))
        start = time.process_time()
        figures = sf.audit(study)
        ours = time.process_time() - start
        pycanon = told["pycanon"]
        print(
            f"\n| tool | figures of the raw table | CPU s |\n|---|---|---|\n| pycanon {pycanon['version']} | 5 |",
            end="",
        )
        print(f" {float(pycanon['cpu']):.1f} |\n| Sfumato {sf.__version__} | {len(figures.figures)} | {ours:.1f} |")
        for measure, value in dict(pycanon["figures"]).items():  # type: ignore[call-overload]
            if abs(figures[measure] - value) > 1e-9 * max(1.0, abs(value)):
                print(f"\n{measure} differs: {figures[measure]} and {value}")
        start = time.process_time()
        front = sf.search(study)
        took = time.process_time() - start
        print("\n| k asked for | tool | k | loss | suppressed | CPU s |\n|---|---|---|---|---|---|")
        for k in KS:
            point = sf.pick(front, min_k=k).point
            anjana = told["anjana"][str(k)]
            row = _measured(study, Path(name) / f"anjana-{k}.csv", int(anjana["records"]))
            print(f"| {k} | anjana {anjana['version']} | {row} | {float(anjana['cpu']):.1f} |")
            print(f"| | Sfumato | {point.values['k']} | {point.loss:.1%} | {point.suppressed} | {took:.1f}, all k |")


def _measured(study: sf.Study, path: Path, records: int) -> str:
    """k, loss and suppressed records of a released file, measured as Sfumato measures it."""
    if not records:
        return "– | – | –"
    removed = 30_162 - records
    found = sf.audit(study.replace(data={"header": True, "names": None, "na": (), "removed": removed}), path)
    loss = found["general_loss"] / (found.rows * len(study.named(sf.Role.QUASI_IDENTIFIER)))
    return f"{found['k']:.0f} | {loss:.1%} | {removed}"


if __name__ == "__main__":
    main()
