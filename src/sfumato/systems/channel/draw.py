"""Draw reports: each value is replaced by one drawn from its column of the matrix, and the rows are shuffled.

The rows stream through the engine in batches. Randomness comes from the operating system, batch by batch, and is
recorded nowhere. The rows come out in random order: a file sorted by the disguised column would tell it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import DataError, counted
from sfumato.plans.channel import Channel
from sfumato.runtime.arrays import Floats
from sfumato.sources.cells import cleaned
from sfumato.sources.dialect import Dialect
from sfumato.sources.engines.engine import Engine
from sfumato.sources.source import Source
from sfumato.sources.value_counts import Tally, cell_sql, first_row
from sfumato.tables.missing import present

TEST_COLUMN = "sfumato_test_seed"
BETWEEN = "\x1f"

Draw = Callable[[int], npt.NDArray[np.uint64]]


def check_known(engine: Engine, source: Source, channel: Channel, counted_cells: Tally) -> None:
    """Every value must be a category; which one is not is not told."""
    places = [counted_cells.columns.index(name) for name in channel.columns]
    known = set(channel.cells)
    cells = {tuple(cell[position] for position in places) for cell in counted_cells.cells}
    strange = sorted(cells - known)
    if strange:
        rows = sum(
            n
            for c, n in zip(counted_cells.cells, counted_cells.counts, strict=True)
            if tuple(c[p] for p in places) not in known
        )
        first = first_row(engine, source, channel.columns, strange)
        where = f"; the first is in row {first}" if first else ""
        raise DataError(
            f"{counted(len(strange), 'value')} of {channel.name} unknown to the channel, in "
            f"{counted(rows, 'row')}{where}",
            expected="the categories the channel was made for",
            remedy="search again with this table, or check how missing values are declared",
        )


def reading(
    source: Source, channels: Sequence[Channel], kept: Sequence[str], complete: Sequence[str], unit: str | None = None
) -> str:
    """The rows to disguise: truths, plain columns, and the person that a row belongs to."""
    parts = []
    for position, channel in enumerate(channels):
        joined = f" || chr({ord(BETWEEN)}) || ".join(cell_sql(source, name) for name in channel.columns)
        parts.append(f"{joined} AS t{position}")
    parts += [f"{cleaned(source, source.column(name))} AS k{position}" for position, name in enumerate(kept)]
    parts += [f"{cell_sql(source, unit)} AS person"] if unit is not None else []
    kept_rows = present(cleaned(source, source.column(name)) for name in complete)
    return f"SELECT {', '.join(parts)} FROM raw WHERE {kept_rows}"


def changer(
    channels: Sequence[Channel],
    kept: int,
    draw: Draw,
    keep_order: bool,
    test_seed: int | None,
    secret: bytes | None = None,
) -> Callable[[Any], Any]:
    """What happens to a batch: codes of the truth, reports drawn, a place in the new order.

    With a `secret` the last column names the person, who has one report for each different value.
    """
    import pyarrow
    import pyarrow.compute

    truths = [pyarrow.array([BETWEEN.join(cell) for cell in channel.cells]) for channel in channels]
    labels = [pyarrow.array(channel.outputs) for channel in channels]
    steps = [thresholds(channel.matrix) for channel in channels]
    seen = 0

    def change(batch: Any) -> Any:
        nonlocal seen
        arrays = []
        for position in range(len(channels)):
            codes = pyarrow.compute.index_in(batch.column(position), truths[position])
            codes = np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)
            if secret is None:
                bits = draw(len(codes))
            else:
                bits = drawn_once(secret, position, codes, batch.column(len(channels) + kept))
            reports = reported(codes, steps[position], bits)
            arrays.append(labels[position].take(pyarrow.array(reports)))
        arrays += [batch.column(len(channels) + position) for position in range(kept)]
        if test_seed is not None:
            arrays.append(pyarrow.array([str(test_seed)] * batch.num_rows, pyarrow.string()))
        order = np.arange(seen, seen + batch.num_rows) if keep_order else (draw(batch.num_rows) >> np.uint64(1))
        seen += batch.num_rows
        names = [f"x{position}" for position in range(len(arrays))]
        return pyarrow.record_batch([*arrays, pyarrow.array(order.astype(np.int64))], names=[*names, "place"])

    return change


def thresholds(matrix: Floats) -> Floats:
    """For each truth (row) the running sums of its probabilities; the last one that is reached is endless."""
    running = np.cumsum(matrix, axis=0).T.copy()
    for row, column in zip(running, matrix.T, strict=True):
        row[np.flatnonzero(column)[-1] :] = np.inf  # rounding must not lead to a report that cannot be
    return running


def reported(codes: npt.NDArray[np.int64], steps: Floats, bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The report of each truth from 64 random bits: how many of its thresholds a number in [0, 1) has passed."""
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    reports = np.empty(len(codes), dtype=np.int64)
    for truth in range(len(steps)):
        here = np.flatnonzero(codes == truth)
        reports[here] = np.searchsorted(steps[truth], uniform[here], side="right")
    return reports


def drawn_once(secret: bytes, channel: int, codes: npt.NDArray[np.int64], persons: Any) -> npt.NDArray[np.uint64]:
    """64 bits for each row that depend on the person and the value alone, by a keyed hash: a draw that is repeated.

    The key comes from the operating system and is recorded nowhere, so nothing but the file shows what was drawn.
    """
    listed = persons.dictionary_encode()
    held = listed.dictionary.to_pylist()
    numbers = np.asarray(listed.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    size = int(codes.max(initial=0)) + 1
    pairs, place = np.unique(numbers * size + codes, return_inverse=True)
    bits = np.empty(len(pairs), dtype=np.uint64)
    for row, pair in enumerate(pairs.tolist()):
        text = f"{channel}{BETWEEN}{pair % size}{BETWEEN}{held[pair // size]}".encode()
        bits[row] = int.from_bytes(blake2b(text, digest_size=8, key=secret).digest(), "little")
    return np.asarray(bits[place.ravel()])


def secret(test_seed: int | None) -> bytes:
    """The key of one publication."""
    return os.urandom(32) if test_seed is None else test_seed.to_bytes(32, "little", signed=True)


def system_draw(count: int) -> npt.NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def seeded_draw(seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(0, 2**64, count, dtype=np.uint64)


def plain_file(source: Source, path: Path) -> Source:
    """Parquet or plain CSV with a header, by the name of the file: whoever gets it needs no run file to read it."""
    if path.suffix in (".parquet", ".pq"):
        return replace(source, format="parquet", dialect=None)
    return replace(source, format="csv", dialect=Dialect(",", '"', ".", "utf-8", header=True))
