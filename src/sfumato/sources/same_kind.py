"""Some rows of the caller's table with some columns recoded, as the same kind of table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.runtime.arrays import Counts64, Floats
from sfumato.sources.frames import Frame


@dataclass(frozen=True, eq=False)
class Labels:
    """A recoded column: for each row the place of its label. A label of None is a missing value."""

    labels: Sequence[str | None]
    codes: Counts64

    def values(self) -> np.ndarray[Any, Any]:
        held = np.empty(len(self.labels), dtype=object)
        held[:] = self.labels
        return held[self.codes]

    @property
    def categories(self) -> list[str]:
        return list(dict.fromkeys(label for label in self.labels if label is not None))


@dataclass(frozen=True, eq=False)
class Numbers:
    """A rounded column: the number of each row, NaN where it is missing."""

    values: Floats


def rebuilt(frame: Frame, rows: Counts64, places: Sequence[int], recoded: Mapping[int, Labels | Numbers]) -> Any:
    """The rows and columns at those places; columns that are not recoded keep their types.

    pandas keeps the index. A column of categories has categories again; a rounded column has numbers, and any other
    recoded column is text.
    """
    if frame.kind == "pandas":
        return _pandas(frame.native, rows, places, recoded)
    if frame.kind == "polars":
        return _polars(frame.native, rows, places, recoded)
    table = _arrow(frame.table(), rows, places, recoded)
    if frame.kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table)
    return table


def _pandas(native: Any, rows: Counts64, places: Sequence[int], recoded: Mapping[int, Labels | Numbers]) -> Any:
    import pandas

    out = native.iloc[rows, list(places)].copy()
    for at, position in enumerate(places):
        if position not in recoded:
            continue
        column, was = recoded[position], native.dtypes.iloc[position]
        if isinstance(column, Numbers):
            out.isetitem(at, pandas.Series(column.values, index=out.index))
            continue
        values: Any = column.values()
        if isinstance(was, pandas.CategoricalDtype):
            values = pandas.Categorical(values, categories=column.categories)
        text = isinstance(was, pandas.StringDtype) or str(was) == "string[pyarrow]"
        out.isetitem(at, pandas.Series(values, index=out.index, dtype=was if text else None))
    return out


def _polars(native: Any, rows: Counts64, places: Sequence[int], recoded: Mapping[int, Labels | Numbers]) -> Any:
    import polars

    names = [native.columns[position] for position in places]
    columns = []
    for position, column in recoded.items():
        name = native.columns[position]
        if isinstance(column, Numbers):
            columns.append(polars.Series(name, column.values, nan_to_null=True))
            continue
        text = polars.Series(name, list(column.labels), dtype=polars.String).gather(column.codes)
        categories = native.schema[name] in (polars.Categorical, polars.Enum)
        columns.append(text.cast(polars.Categorical) if categories else text)
    return native.select(names)[rows].with_columns(columns)


def _arrow(table: Any, rows: Counts64, places: Sequence[int], recoded: Mapping[int, Labels | Numbers]) -> Any:
    import pyarrow

    out = {}
    for position in places:
        name, cells = table.column_names[position], table.column(position)
        if position in recoded:
            column = recoded[position]
            if isinstance(column, Numbers):
                out[name] = pyarrow.array(column.values, from_pandas=True)
                continue
            text = pyarrow.array(list(column.labels), pyarrow.string()).take(pyarrow.array(column.codes))
            out[name] = text.dictionary_encode() if pyarrow.types.is_dictionary(cells.type) else text
        else:
            view = pyarrow.types.is_string_view(cells.type)  # which Arrow cannot take from
            out[name] = (cells.cast(pyarrow.large_string()) if view else cells).take(pyarrow.array(rows))
    return pyarrow.table(out)
