"""The answers and files of small tables are those of the golden corpus; a change that is meant records it anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools import golden

ROOT = Path(__file__).parents[1]


def compared(*words: str) -> None:
    """Compare in a process of its own: the command line changes how its process works."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.golden", "compare", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_one_case_of_each_system() -> None:
    """In one process, because loading takes as long as a case."""
    compared("--quick")


@pytest.mark.long
@pytest.mark.parametrize("system", golden.SYSTEMS)
def test_all_cases(system: str) -> None:
    compared(system)


def test_what_is_a_difference() -> None:
    """Figures may differ in their last digits; keys, texts that are data, and the kind of a value may not."""
    recorded = {"k": 3, "loss": 0.1, "kept": True, "points": [1, 2], "gone": None}
    computed = {"k": 3, "loss": 0.1 + 1e-11, "kept": 1, "points": [1], "new": "x"}
    assert sorted(golden.differences(recorded, computed, "case")) == [
        "case > gone: recorded null, computed nothing",
        "case > kept: recorded true, computed 1",
        "case > loss: recorded 0.1, computed 0.10000000001",
        'case > new: recorded nothing, computed "x"',
        "case > points: recorded 2 entries, computed 1",
    ]
    assert not list(golden.differences({"loss": 0.1}, {"loss": 0.1 + 1e-14}))
    assert not list(golden.differences({"loss": 0.1}, {"loss": 0.1 + 1e-8}, close=golden.SOLVED))


def test_what_is_packed_is_unpacked() -> None:
    content = {"one": {"figures": {"a long name of a figure": 0.123456789, "another": [1, 2, 3]}}}
    content["two"] = {"again": content["one"]["figures"]}
    packed = golden.packed(content, {}, "")
    assert packed["two"] == {"again": {"<as>": "|one|figures"}}
    assert golden.unpacked(packed, packed) == content


def test_a_digest_of_a_data_file_is_compared(tmp_path: Path) -> None:
    """A digest alone becomes the name of its file, so that of the bytes must not stand alone."""
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,4\n", "utf-8")
    recorded = golden.content(tmp_path / "data.csv")
    (tmp_path / "data.csv").write_text("a,b\n3,4\n1,2\n", "utf-8")
    names = {golden.digest(tmp_path / "data.csv"): "<sha256 of data.csv>"}
    sides = [
        golden.plain(each, "", tmp_path, names, drawn=False)
        for each in (recorded, golden.content(tmp_path / "data.csv"))
    ]
    found = [text.partition(":")[0] for text in golden.differences(*sides)]
    assert {"bytes", "head[1]", "head[2]"} == set(found)  # not the sorted rows


def test_every_case_is_recorded() -> None:
    for system in golden.SYSTEMS:
        names = [case.name for case in golden.cases() if case.system == system]
        assert list(golden.load(system)) == names
        assert sum(case.quick for case in golden.cases() if case.system == system) == 1
