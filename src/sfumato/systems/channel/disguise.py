"""Disguise a column of a table: each value is replaced by a report drawn from its column of the matrix.

The rows stream through the engine in batches. Randomness comes from the operating system, batch by batch, and is
recorded nowhere. The rows come out in random order: a file sorted by the disguised column would tell it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.data.arrays import Floats
from sfumato.data.atomic import refuse_existing, write_text
from sfumato.data.dialect import Dialect
from sfumato.data.disguised import mark_of
from sfumato.data.engine import Engine, open_engine, require_order
from sfumato.data.inputs import kept_inputs
from sfumato.data.rows import cleaned
from sfumato.data.source import Source, open_source
from sfumato.data.tally import Tally, cell_sql, first_row, require, tally
from sfumato.errors import DataError, InputError, StudyError, shortened
from sfumato.plans.channel import Channel
from sfumato.release.earlier import check, entered
from sfumato.release.policy import refuse_unaccepted
from sfumato.release.shown import describe_disguise
from sfumato.study import Study
from sfumato.systems.channel.prior import complete_columns

TEST_COLUMN = "sfumato_test_seed"
BETWEEN = "\x1f"

Draw = Callable[[int], npt.NDArray[np.uint64]]


@dataclass(frozen=True)
class Disguised:
    """What was written, and what became of the rows."""

    path: Path
    mark: Path
    rows: int
    dropped: int
    columns: tuple[str, ...]
    test_seed: int | None
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "file": str(self.path),
            "channel": str(self.mark),
            "rows": self.rows,
            "dropped": self.dropped,
            "columns": list(self.columns),
            "randomness": randomness_of(self.test_seed),
            "warnings": list(self.warnings),
        }


def randomness_of(test_seed: int | None) -> str:
    return "operating system" if test_seed is None else f"fixed test seed {test_seed}: not for release"


@kept_inputs()
def disguise(
    study: Study,
    channels: Sequence[Channel],
    path: str | Path,
    *,
    keep: Sequence[str] | None = (),
    keep_order: bool = False,
    test_seed: int | None = None,
    overwrite: bool = False,
    state: str | Path | None = None,
) -> Disguised:
    """Write a table in which the channels' columns are disguised, beside columns to `keep` (None keeps all others).

    Identifiers and columns with the role drop are never kept. A `test_seed` makes the draw repeatable and marks the
    file with a column of its own; never publish such a file. Any other file is entered in the ledger in `state`, the
    user's own unless given, and refused if earlier releases of the same people tell more of them together with it.
    """
    path = Path(path)
    source = open_source(study.data, study.folder)
    refuse_existing(path, overwrite=overwrite)
    refuse_existing(mark_of(path), overwrite=overwrite)
    own = [name for channel in channels for name in channel.columns]
    require(source, own)
    kept = _kept(study, source, own, keep)
    names = [*(channel.name for channel in channels), *kept]
    if len(set(own)) < len(own) or len(set(names)) < len(names):
        raise InputError("a column would stand twice in the disguised file", expected="each column once")
    draw = _system_draw if test_seed is None else _test_draw(test_seed)
    with open_engine(study.engine, study.engine_options) as engine:
        if keep_order or test_seed is not None:  # one stream of rows, one stream of numbers
            require_order(engine, "keeping the order of the rows" if keep_order else "a test seed")
        found = tally(engine, source, own, complete_columns(study, own))
        for channel in channels:
            _check_known(engine, source, channel, found)
        comparison = None
        if test_seed is None:
            complete = complete_columns(study, own)
            described = describe_disguise(study, source, channels, kept, complete, ordered=keep_order)
            comparison = check(engine, study, source, described, state=state)
            refuse_unaccepted(comparison.findings, study.policy.accept)
        sql = _reading(source, channels, kept, complete_columns(study, own))
        engine.stream(sql, _changer(channels, len(kept), draw, keep_order, test_seed), "disguised")
        names = [*names, TEST_COLUMN] if test_seed is not None else names
        listed = ", ".join(f"x{i} AS c{i}" for i in range(len(names)))
        with entered(comparison, path) as late:
            mark_of(path).unlink(missing_ok=True)  # a file without its channel is refused; another's would mislead
            engine.write(f"SELECT {listed} FROM disguised ORDER BY place", path, _like(source, path), names)
    notes = {"file": path.name, "rows": found.records, "disguised": own, "randomness": randomness_of(test_seed)}
    mark = _write_mark(channels, notes, path)
    earlier = (*comparison.warnings, *(f.what for f in comparison.findings)) if comparison is not None else ()
    return Disguised(path, mark, found.records, found.dropped, tuple(names), test_seed, (*earlier, *late))


def _kept(study: Study, source: Source, own: Sequence[str], keep: Sequence[str] | None) -> list[str]:
    private = [name for name, column in study.columns.items() if not column.role.released]
    if keep is None:
        return [name for name in source.names if name not in own and name not in private]
    require(source, keep)
    refused = [name for name in keep if name in private or name in own]
    if refused:
        raise StudyError(
            f"{shortened(refused)} cannot be kept beside the disguised column",
            expected="columns other than the disguised ones, and none with the role identifier, drop or vital",
        )
    return list(keep)


def _check_known(engine: Engine, source: Source, channel: Channel, found: Tally) -> None:
    """Every value must be a category; which one is not is not told."""
    places = [found.columns.index(name) for name in channel.columns]
    known = set(channel.cells)
    cells = {tuple(cell[place] for place in places) for cell in found.cells}
    strange = sorted(cells - known)
    if strange:
        rows = sum(
            n for c, n in zip(found.cells, found.counts, strict=True) if tuple(c[p] for p in places) not in known
        )
        first = first_row(engine, source, channel.columns, strange)
        where = f"; the first is in row {first}" if first else ""
        raise DataError(
            f"{rows} rows have {len(strange)} values of {channel.name} that the channel does not know{where}",
            expected="the categories the channel was made for",
            remedy="search again with this table, or check how missing values are declared",
        )


def _reading(source: Source, channels: Sequence[Channel], kept: Sequence[str], complete: Sequence[str]) -> str:
    parts = []
    for place, channel in enumerate(channels):
        joined = f" || chr({ord(BETWEEN)}) || ".join(cell_sql(source, name) for name in channel.columns)
        parts.append(f"{joined} AS t{place}")
    parts += [f"{cleaned(source, source.column(name))} AS k{place}" for place, name in enumerate(kept)]
    present = " AND ".join(f"{cell_sql(source, name)} <> ''" for name in complete) or "1 = 1"
    return f"SELECT {', '.join(parts)} FROM raw WHERE {present}"


def _changer(
    channels: Sequence[Channel], kept: int, draw: Draw, keep_order: bool, test_seed: int | None
) -> Callable[[Any], Any]:
    """What happens to a batch: codes of the truth, reports drawn, a place in the new order."""
    import pyarrow
    import pyarrow.compute

    truths = [pyarrow.array([BETWEEN.join(cell) for cell in channel.cells]) for channel in channels]
    labels = [pyarrow.array(channel.outputs) for channel in channels]
    steps = [thresholds(channel.matrix) for channel in channels]
    seen = 0

    def change(batch: Any) -> Any:
        nonlocal seen
        arrays = []
        for place in range(len(channels)):
            codes = pyarrow.compute.index_in(batch.column(place), truths[place])
            codes = np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)
            reports = reported(codes, steps[place], draw(len(codes)))
            arrays.append(labels[place].take(pyarrow.array(reports)))
        arrays += [batch.column(len(channels) + place) for place in range(kept)]
        if test_seed is not None:
            arrays.append(pyarrow.array([str(test_seed)] * batch.num_rows, pyarrow.string()))
        order = np.arange(seen, seen + batch.num_rows) if keep_order else (draw(batch.num_rows) >> np.uint64(1))
        seen += batch.num_rows
        names = [f"x{place}" for place in range(len(arrays))]
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


def _system_draw(count: int) -> npt.NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def _test_draw(seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(0, 2**64, count, dtype=np.uint64)


def _like(source: Source, path: Path) -> Source:
    """Parquet or plain CSV with a header, by the name of the file: whoever gets it needs no run file to read it."""
    if path.suffix in (".parquet", ".pq"):
        return replace(source, format="parquet", dialect=None)
    return replace(source, format="csv", dialect=Dialect(",", '"', ".", "utf-8", header=True))


def _write_mark(channels: Sequence[Channel], notes: dict[str, Any], path: Path) -> Path:
    found = [channel.as_dict() for channel in channels]
    about: dict[str, Any] = found[0] if len(found) == 1 else {"format": "sfumato-channels", "channels": found}
    about["notes"] = dict(about.get("notes", {})) | notes
    return write_text(mark_of(path), json.dumps(about, indent=1, ensure_ascii=False) + "\n", overwrite=True)
