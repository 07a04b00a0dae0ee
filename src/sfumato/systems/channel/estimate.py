"""Estimate from a disguised file: the distribution of the truth, in all records or in each stratum of plain columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import DataError, InputError, counted, nearest
from sfumato.plans.channel import Channel, load_channels, product
from sfumato.runtime.arrays import Floats
from sfumato.sources.engines.engine import open_engine
from sfumato.sources.mark import SUFFIX, mark_of
from sfumato.sources.opening import open_source
from sfumato.sources.settings import DataSettings, EngineOptions
from sfumato.sources.source import Source
from sfumato.sources.value_counts import Tally, first_row, require, tally
from sfumato.systems.channel.prior import label_of
from sfumato.systems.channel.recovery import Recovered, em, inversion_matrix, linear, weighted_matrix

METHODS = ("auto", "inversion", "wls", "em")
MOST_STRATA = 10_000


@dataclass(frozen=True, eq=False)
class Stratum:
    """One combination of values of the plain columns (none: all records), and what was recovered in it."""

    values: tuple[str, ...]
    records: int
    recovered: Recovered
    most_likely: Recovered


@dataclass(frozen=True, eq=False)
class Estimate:
    """The distribution of the truth by strata."""

    channel: Channel
    by: tuple[str, ...]
    level: float
    strata: tuple[Stratum, ...]
    dropped: int

    @property
    def records(self) -> int:
        return sum(stratum.records for stratum in self.strata)

    def as_dict(self) -> dict[str, Any]:
        """As `sfumato channel estimate --json` prints it; counts are shares times the records of the stratum."""
        return {
            "columns": list(self.channel.columns),
            "records": self.records,
            "dropped": self.dropped,
            "method": self.strata[0].recovered.method,
            "level": self.level,
            "by": list(self.by),
            "strata": [self._said(stratum) for stratum in self.strata],
        }

    def _said(self, stratum: Stratum) -> dict[str, Any]:
        recovered, likely = stratum.recovered, stratum.most_likely
        return {
            "values": dict(zip(self.by, stratum.values, strict=True)),
            "records": stratum.records,
            "categories": [
                {
                    "category": name,
                    "share": float(recovered.shares[category]),
                    "unbiased": float(recovered.raw[category]),
                    "standard_error": float(recovered.error[category]),
                    "standard_error_to_file": float(recovered.error_to_file[category]),
                    "low": float(recovered.low[category]),
                    "high": float(recovered.high[category]),
                    "most_likely": float(likely.shares[category]),
                    "count": float(recovered.shares[category] * stratum.records),
                }
                for category, name in enumerate(self.channel.categories)
            ],
        }


def disguised_file(path: Path) -> Path:
    """The disguised file itself, or the one in the folder of a release or of its public part."""
    if not path.is_dir() or mark_of(path).is_file():  # a file in parts is a folder with a mark
        return path
    for folder in (path / "public", path):
        marks = sorted(folder.glob(f"*{SUFFIX}"))
        if len(marks) == 1:
            return marks[0].with_name(marks[0].name.removesuffix(SUFFIX))
    raise InputError(f"{path} holds no disguised file", expected="a disguised file, or the folder of its release")


def channels_of(path: Path) -> list[Channel]:
    """The channels a disguised file was made with, from the mark beside it."""
    mark = mark_of(path)
    if not mark.is_file():
        raise InputError(
            f"{path.name} has no channel file beside it",
            expected=f"{mark.name}, or another channel file",
            remedy="name its channel",
        )
    return load_channels(mark)


def estimate(
    path: str | Path,
    channels: Sequence[Channel] = (),
    *,
    by: Sequence[str] = (),
    method: str = "auto",
    level: float = 0.95,
    settings: DataSettings | None = None,
    options: EngineOptions | None = None,
) -> Estimate:
    """Recover the distribution of the truth from a disguised file; several channels give their cross-table.

    Args:
        path: the disguised file.
        channels: the channels that disguised it; those beside the file unless given.
        by: columns within whose values the shares are estimated.
        method: how: chosen by what the channel allows unless given.
        level: the confidence level of the intervals.
        settings: how the file is read.
        options: memory limit and threads of the engine.

    Returns:
        Shares with intervals.
    """
    if method not in METHODS:
        raise InputError(f'unknown method "{method}"', expected="a method", remedy=nearest(method, METHODS))
    if not 0.5 <= level < 1:
        raise InputError(f"the level is {level:g}", expected="a level from 0.5 to below 1", remedy="level = 0.95")
    path = disguised_file(Path(path))
    channels = list(channels) or channels_of(path)
    own = [channel.name for channel in channels]
    source = _source(path, own, settings)
    require(source, [*own, *by])
    if set(own) & set(by):
        raise InputError("a disguised column cannot be a stratum", expected="plain columns as strata")
    with open_engine(options=options) as engine:
        counted_cells = tally(engine, source, [*own, *by], own)
        _check_reports(engine, source, channels, counted_cells)
    whole = product(channels)
    inverse = _inverse(whole, method)
    strata = []
    for values, counts in _counts(channels, counted_cells):
        likely = em(whole.matrix, counts, level)
        chosen = likely if inverse is None else linear(*inverse, whole.matrix, counts, level)
        strata.append(Stratum(values, int(counts.sum()), chosen, likely))
    if not strata:
        raise DataError(f"{path.name} has no rows with a report", expected="a disguised file")
    return Estimate(whole, tuple(by), level, tuple(strata), counted_cells.dropped)


def _source(path: Path, own: Sequence[str], settings: DataSettings | None) -> Source:
    """The disguised file. Reports such as "a | b" look like separators, so the way we write is tried first."""
    if settings is None and path.suffix not in (".parquet", ".pq"):
        ours = open_source(DataSettings(path=str(path), separator=","))
        if set(own) <= set(ours.names):
            return ours
    return open_source(settings or DataSettings(path=str(path)))


def _inverse(channel: Channel, method: str) -> tuple[str, Floats] | None:
    square = channel.matrix.shape[0] == channel.matrix.shape[1]
    if method == "em":
        return None
    if method == "inversion" or (method == "auto" and square):
        return "inversion", inversion_matrix(channel.matrix)
    reference = channel.reference if channel.reference is not None else np.full(channel.size, 1.0 / channel.size)
    return "wls", weighted_matrix(channel.matrix, reference)


def _check_reports(engine: Any, source: Any, channels: Sequence[Channel], counted_cells: Tally) -> None:
    for position, channel in enumerate(channels):
        known = set(channel.outputs)
        strange = sorted({(cell[position],) for cell in counted_cells.cells if cell[position] not in known})
        if strange:
            rows = sum(
                n for c, n in zip(counted_cells.cells, counted_cells.counts, strict=True) if c[position] not in known
            )
            raise DataError(
                f"{counted(len(strange), 'value')} of {channel.name} unknown to the channel, in "
                f"{counted(rows, 'row')}; the "
                f"first is in row {first_row(engine, source, [channel.name], strange)}",
                expected="a column that was disguised with this channel",
                remedy="check that file and channel belong together",
            )


def _counts(channels: Sequence[Channel], counted_cells: Tally) -> list[tuple[tuple[str, ...], Floats]]:
    """Counts of the reports (of their product) in each stratum, in the order of the strata."""
    places = [{name: y for y, name in enumerate(channel.outputs)} for channel in channels]
    shape = tuple(len(channel.outputs) for channel in channels)
    gathered: dict[tuple[str, ...], Floats] = {}
    for cell, count in zip(counted_cells.cells, counted_cells.counts, strict=True):
        values = tuple(label_of([value]) for value in cell[len(channels) :])
        if values not in gathered:
            if len(gathered) == MOST_STRATA:
                raise InputError(
                    f"there are more than {MOST_STRATA:,} strata", expected="strata of plain columns with few values"
                )
            gathered[values] = np.zeros(shape)
        gathered[values][tuple(places[i][cell[i]] for i in range(len(channels)))] += count
    return [(values, gathered[values].ravel()) for values in sorted(gathered)]
