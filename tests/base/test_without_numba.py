"""A machine that only audits does without numba and plotly; a search says that it does not."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
for name in ("numba", "llvmlite", "plotly"):
    sys.modules[name] = None  # as if it were not installed
import warnings
warnings.simplefilter("error")
import pyarrow
import sfumato as sf
ill = ["flu", "none", "flu", "flu", "flu"]
people = pyarrow.table({"age": [31, 31, 42, 42, 42], "zip": [1, 1, 2, 2, 2], "ill": ill})
study = sf.Study(people, quasi_identifiers=["age", "zip"], sensitive=["ill"])
audit = sf.audit(study)
print(audit["k"], audit["distinct_l"], audit["weighted_k"])
try:
    sf.search(study.with_hierarchies(age=sf.flat(), zip=sf.flat()))
except sf.InputError as error:
    print(error.what, "|", error.remedy)
"""


def test_an_audit_needs_neither_numba_nor_plotly() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "2.0 1.0 2.6",
        "a search needs numba, which is not installed | pip install numba",
    ]
