"""What a stage says of the process it ran in."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

PEAK = "from sfumato.runtime.stages import peak_memory; print(peak_memory())"


def test_the_memory_of_the_process_that_started_this_one_does_not_count() -> None:
    held = np.ones(100_000_000)  # 800 MB
    peak = int(subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True).stdout)
    assert 0 < peak < held.nbytes / 2
