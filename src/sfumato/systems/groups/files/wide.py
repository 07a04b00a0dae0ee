"""Many columns of a file as they are, for attackers that learn from everything that is released.

A column is a list of distinct values and a code for each record; missing is −1. Numbers stay numbers, anything else
is text. A learner's matrix is made from the values of the file it learned from, so that two files are read alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats
from sfumato.sources.cells import cleaned, numeric
from sfumato.sources.engines.engine import Engine
from sfumato.sources.source import Source

AT_ONCE = 64  # columns of one query
NUMBER = "CAST('NaN' AS DOUBLE)"


@dataclass(frozen=True)
class Wide:
    """Columns of a file by name: distinct values, numbers or text in rising order, and `codes[column, record]`."""

    names: tuple[str, ...]
    values: tuple[np.ndarray[Any, Any], ...]
    codes: Codes

    @property
    def records(self) -> int:
        return int(self.codes.shape[1])

    def part(self, chosen: Flags | Counts64) -> Wide:
        """Some of the records."""
        return Wide(self.names, self.values, self.codes[:, chosen])

    def only(self, names: Collection[str]) -> Wide:
        """Some of the columns, in their own order."""
        kept = [i for i, name in enumerate(self.names) if name in names]
        return Wide(tuple(self.names[i] for i in kept), tuple(self.values[i] for i in kept), self.codes[kept])

    def numbers(self, like: Wide) -> Floats:
        """A matrix, record by column, of the columns of `like`, coded as there; NaN where nothing is known.

        Text is its position among the values of `like`, so text that it does not have is unknown.

        >>> one = Wide(("a",), (np.array(["x", "z"]),), np.array([[0, 1, -1]], np.int32))
        >>> Wide(("a",), (np.array(["y", "z"]),), np.array([[1, 0]], np.int32)).numbers(one).tolist()
        [[1.0], [nan]]
        """
        matrix = np.full((self.records, len(like.names)), np.nan)
        for j, name in enumerate(like.names):
            if name in self.names:
                i = self.names.index(name)
                of_values = np.append(_coded(self.values[i], like.values[j]), np.nan)
                matrix[:, j] = of_values[self.codes[i]]
        return matrix


def _coded(mine: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> Floats:
    """Values as the other file has them: numbers as they are, text by position."""
    if theirs.dtype.kind == "f":
        return mine.astype(np.float64) if mine.dtype.kind == "f" else np.full(len(mine), np.nan)
    if mine.dtype.kind == "f" or not len(theirs):
        return np.full(len(mine), np.nan)
    where = np.minimum(np.searchsorted(theirs, mine), len(theirs) - 1)
    return np.where(theirs[where] == mine, where.astype(np.float64), np.nan)


def read_wide(engine: Engine, source: Source, names: Sequence[str], rows: str) -> Wide:
    """Columns of the view `raw` for the rows whose numbers (from 0) are the column `r` of a table, in that order.

    A column is a number if every value is one, and text otherwise.
    """
    listed = ", ".join(f"{cleaned(source, source.column(name))} AS w{i}" for i, name in enumerate(names))
    numbered = f"SELECT row_number() OVER () - 1 AS r, {', '.join(c.sql for c in source.columns)} FROM raw"
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE wide AS SELECT n.r AS r, {listed or '0 AS w0'} FROM ({numbered}) AS n "
        f"JOIN {rows} AS k ON n.r = k.r ORDER BY n.r"
    )
    values: list[np.ndarray[Any, Any]] = []
    codes: list[Codes] = []
    for start in range(0, len(names), AT_ONCE):
        cells = [f"w{i}" for i in range(start, min(start + AT_ONCE, len(names)))]
        counts = engine.rows(
            f"SELECT {', '.join(f'count({c}), count({numeric(source, c)})' for c in cells)} FROM wide"
        )[0]
        are_numbers = [int(counts[2 * i]) == int(counts[2 * i + 1]) for i in range(len(cells))]
        asked = [
            f"coalesce({numeric(source, c)}, {NUMBER}) AS {c}" if number else f"coalesce({c}, '') AS {c}"
            for c, number in zip(cells, are_numbers, strict=True)
        ]
        columns = engine.arrays(f"SELECT {', '.join(asked)} FROM wide ORDER BY r")
        for cell, number in zip(cells, are_numbers, strict=True):
            column = columns[cell].astype(np.float64) if number else columns[cell].astype(str)
            missing = np.isnan(column) if number else column == ""
            distinct, code = np.unique(column[~missing], return_inverse=True)
            coded = np.full(len(column), -1, np.int32)
            coded[~missing] = code.reshape(-1)
            values.append(distinct)
            codes.append(coded)
    empty: Codes = np.zeros((0, 0), np.int32)
    return Wide(tuple(names), tuple(values), np.stack(codes) if codes else empty)
