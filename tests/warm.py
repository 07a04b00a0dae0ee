"""Compile the loops once, before several workers would each compile them for themselves: `python -m tests.warm`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import sfumato as sf
from sfumato.papers.baselines import baselines
from tests.methods.test_all_systems import MAKERS


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SFUMATO_STATE"] = str(Path(folder) / "state")
        for name, make in MAKERS.items():
            own = Path(folder) / name
            own.mkdir()
            study = sf.read(make(own))
            front = sf.search(study)
            if name == "lattice":
                sf.publish(sf.pick(front, point=0), own / "release")
                baselines(study, ks=(2,))
            if name == "channel":
                sf.search(study.replace(channel={"engine": "optrr", "generations": 2}))


if __name__ == "__main__":
    main()
