"""Arrow tables without pandas, which takes longer to import than a small search takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.release.fronts import small

from sfumato.base.arrow import arrow_table
from sfumato.data.engine import open_engine

TEXTS = st.lists(st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=5), max_size=20)
PROGRAM = """
import sys, sfumato as sf
front = sf.search(sf.read(sys.argv[1]))
front.save(sys.argv[2])
sf.publish(sf.pick(sf.load_front(sys.argv[2]), point=0), sys.argv[3])
print("pandas" in sys.modules)
"""


@given(TEXTS, st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9))
def test_texts_and_numbers_are_what_pyarrow_makes_of_them(texts: list[str | None], numbers: list[int]) -> None:
    assert arrow_table({"a": texts})["a"].to_pylist() == pyarrow.array(texts, pyarrow.string()).to_pylist()
    assert arrow_table({"a": numbers})["a"].to_pylist() == numbers


@pytest.mark.parametrize("kind", ["int32", "int64", "uint64", "float32", "float64"])
def test_arrays_keep_their_type(kind: str) -> None:
    values = np.arange(6, dtype=kind)[::2]
    table = arrow_table({"a": values})
    assert table["a"].to_numpy().tolist() == values.tolist()
    assert table.schema.field("a").type == pyarrow.from_numpy_dtype(values.dtype)


def test_columns_without_anything_are_texts_to_the_engine() -> None:
    with open_engine() as engine:
        engine.upload("none", {"a": [], "b": np.array([], dtype=np.int64)})
        engine.upload("missing", {"a": [None, None], "b": [1, 2]})
        assert engine.rows("SELECT count(*) FROM missing WHERE b > 1 AND 'x' NOT IN (SELECT a FROM none)") == [(1,)]
        assert engine.rows("SELECT count(*) FROM missing WHERE a IS NULL") == [(2,)]


def test_a_search_and_a_release_do_not_import_pandas(tmp_path: Path) -> None:
    study = small(tmp_path, sex={"role": "quasi_identifier", "hierarchy": {"build": "flat"}})
    accepted = ("k", "uniques", "t", "l", "suppressed", "raw")
    policy = {"accept": [{"rule": rule, "reason": "a table made for a test"} for rule in accepted]}
    policy["accept"].append({"rule": "identifying", "column": "income", "reason": "a table made for a test"})
    (tmp_path / "run.toml").write_text(study.with_settings({"policy": policy}).as_toml(), "utf-8")
    command = [sys.executable, "-c", PROGRAM, *(str(tmp_path / name) for name in ("run.toml", "front", "release"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"
