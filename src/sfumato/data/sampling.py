"""Estimates for a large source without reading it completely: the number of rows, and a sample of them."""

from __future__ import annotations

import gzip
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow
import pyarrow.parquet

from sfumato.base.arrays import Counts64
from sfumato.data.source import Source
from sfumato.data.treatment import treated

HEAD = 1 << 23  # bytes of a text from which the length of its lines is taken
BATCH = 20_000  # rows held at a time
PLACES = 50  # of a source that rows are taken from


def rows_of(source: Source) -> int:
    """Return the number of rows of a source: exact for Parquet, estimated for text from the length of its first lines.

    It is 0 for a database or a frame, which is read completely and not sampled.
    """
    files = source.files
    if not files:
        return 0
    if source.dialect is None:
        return sum(pyarrow.parquet.ParquetFile(file).metadata.num_rows for file in files)
    return max(sum(_lines(file, source.dialect.header) for file in files), 1)


def sampled(source: Source, rows: int, wanted: int, folder: Path) -> Source:
    """Write about `wanted` rows from all parts of a source to a file in `folder`, or return a smaller source itself.

    Only the beginning of a compressed text is used.
    """
    if rows <= wanted:
        return source
    if source.untreated is not None:
        return treated(sampled(source.untreated, rows, wanted, folder), source.treatments)
    files = source.files
    if source.dialect is None:
        path = _parquet(files, wanted, folder / f"sample{wanted}.parquet")
        return replace(source, path=path, files=(path,))
    target = folder / f"sample{wanted}.csv"
    with target.open("wb") as out:
        for file in files:
            share = wanted * file.stat().st_size / sum(f.stat().st_size for f in files)
            _text(file, source.dialect.header and not out.tell(), source.dialect.header, round(share), out)
    return replace(source, path=target, files=(target,))


def distinct(counts: Counts64, rows: int, limit: float = math.inf) -> float:
    """Return the estimated number of distinct tuples of `rows` rows, at most `limit`, from the counts of a sample.

    Chao's estimate is too low with many rare tuples. An extrapolation of the growth over the second half of the sample
    is too high, because growth slows down. The geometric mean of the two is wrong by the same factor at most.

    >>> distinct(np.array([5, 5]), 1000), round(distinct(np.array([1, 1, 1, 2]), 10))
    (2.0, 6)
    """
    seen, sample = len(counts), int(counts.sum())
    once, twice = int(np.count_nonzero(counts == 1)), int(np.count_nonzero(counts == 2))
    if rows <= sample or once == 0:
        return float(seen)
    unseen = (sample - 1) / sample * (once * once / (2 * twice) if twice else once * (once - 1) / 2)
    least = seen + unseen * (1 - (1 - once / (sample * unseen + once)) ** (rows - sample))
    half = float((1 - 0.5**counts).sum())  # what half of the sample would have
    highest = min(seen * (rows / sample) ** math.log2(seen / half), limit, rows)
    return math.sqrt(least * max(highest, least))


def _lines(file: Path, header: bool) -> int:
    """Return the number of rows of a text file: counted for small files, else estimated from the first lines."""
    size = file.stat().st_size
    if file.suffix == ".gz":
        with file.open("rb") as raw, gzip.open(raw) as text:
            head = text.read(HEAD)
            whole = len(head) < HEAD
            reckoned = len(head) * size / max(raw.tell(), 1)  # what was read of it, against all of it
            raw.seek(-4, os.SEEK_END)
            stated = int.from_bytes(raw.read(4), "little")  # the size of the text, but for multiples of 4 GiB
            size = stated + max(round((reckoned - stated) / 2**32), 0) * 2**32
    else:
        with file.open("rb") as raw:
            head = raw.read(HEAD)
            whole = len(head) == size
    lines = head.count(b"\n") + (whole and not head.endswith(b"\n"))
    return round(lines if whole else lines * size / len(head)) - header


def _parquet(files: tuple[Path, ...], wanted: int, target: Path) -> Path:
    opened = [pyarrow.parquet.ParquetFile(file) for file in files]
    groups = [(file, group) for file in opened for group in range(file.metadata.num_row_groups)]
    chosen = [groups[int(position)] for position in np.unique(np.linspace(0, len(groups) - 1, PLACES).round())]
    each = -(-wanted // len(chosen))
    with pyarrow.parquet.ParquetWriter(target, opened[0].schema_arrow) as writer:
        for file, group in chosen:
            rows = file.metadata.row_group(group).num_rows
            step = max(rows // each, 1)  # a group may be sorted too
            begin = 0
            for batch in file.iter_batches(BATCH, row_groups=[group]):
                some = batch.take(np.arange(-begin % step, batch.num_rows, step))
                begin += batch.num_rows
                writer.write_table(pyarrow.Table.from_batches([some]).cast(opened[0].schema_arrow))
    return target


def _text(file: Path, write_header: bool, header: bool, wanted: int, out: BinaryIO) -> None:
    """Copy whole lines from places all over a text; its first line is the header if it has one."""
    packed = file.suffix == ".gz"
    size = file.stat().st_size
    with gzip.open(file) if packed else file.open("rb") as text:
        first = text.readline()
        if write_header or not header:
            out.write(first)
        each = -(-wanted // (1 if packed else PLACES))
        for position in range(1 if packed else PLACES):
            if position:
                text.seek(size * position // PLACES)
                text.readline()
            for _ in range(each):
                line = text.readline()
                out.write(line if line.endswith(b"\n") or not line else line + b"\n")
