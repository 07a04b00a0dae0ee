"""Ten million rows in memory: an audit needs little more than the same rows in a file, and no copy on disk."""

from __future__ import annotations

import pytest
from benchmarks.bench_frames import compared

pytestmark = pytest.mark.published


def test_ten_million_rows_of_polars() -> None:
    """Done when, 1: at most 1.3 times the memory of the job from Parquet, beyond the frame's own bytes."""
    found = compared(10_000_000)
    beyond = found["frame"]["peak"] - found["frame"]["held"]
    assert beyond <= 1.3 * found["parquet"]["peak"]
    assert found["frame"]["written"] < 2**20
    assert found["frame"]["figures"] == found["parquet"]["figures"]
