"""Compile the loops once, before several workers would each compile them for themselves: `python -m tests.warm`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import sfumato as sf
from sfumato.comparisons.baselines import baselines
from tests.systems.test_all_systems import MAKERS


def main() -> None:
    for name, make in MAKERS.items():
        with tempfile.TemporaryDirectory() as folder:
            study = sf.read(make(Path(folder)))
            sf.search(study)
            if name == "lattice":
                baselines(study, ks=(2,))


if __name__ == "__main__":
    main()
