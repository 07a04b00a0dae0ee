"""Treatments, which round numbers and dates or put them in bands, of released columns that are no quasi-identifiers.

A column is treated when the source is read, so that every figure and every released row has the treated values. The SQL
is the same on every engine and computes in exact decimals: a number is read with twelve decimals, and halves are
rounded away from zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Literal, Protocol

from sfumato.data.cells import cleaned, numeric
from sfumato.data.codebook import Codebook, ColumnLabels
from sfumato.data.source import TEXT, Column, Row, Source, Treated, quoted
from sfumato.errors import DataError, counted

DateUnit = Literal["day", "month", "quarter", "year", "decade"]
EXACT = "DECIMAL(30, 12)"
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


class Engine(Protocol):
    """An engine, as far as the views of treated columns need it."""

    def attach(self, source: Source, view: str) -> None: ...
    def run(self, sql: str) -> None: ...
    def rows(self, sql: str) -> list[Row]: ...


@dataclass(frozen=True)
class Treatment:
    """What a column's values are released as: multiples of `step`, `bands` between edges, or the `unit` of a date.

    >>> Treatment(bands=(Decimal(0), Decimal(1000))).labels("."), Treatment(step=Decimal("0.5")).words()
    (('<0', '[0, 1000)', '>=1000'), 'Rounded to multiples of 0.5.')
    """

    step: Decimal | None = None
    bands: tuple[Decimal, ...] = ()
    unit: DateUnit | None = None

    @classmethod
    def of(cls, rounding: float | str | None, bands: Sequence[float] | None) -> Treatment | None:
        """Return the treatment that the settings of a column declare, if they declare one."""
        if bands is not None:
            return cls(bands=tuple(exact(edge) for edge in bands))
        if rounding is None:
            return None
        return cls(unit=rounding) if isinstance(rounding, str) else cls(step=exact(rounding))  # type: ignore[arg-type]

    def labels(self, decimal: str) -> tuple[str, ...]:
        """Return the labels of bands, from the lowest; none for other treatments."""
        if not self.bands:
            return ()
        edges = [_shown(edge, decimal) for edge in self.bands]
        between = "; " if decimal == "," else ", "
        inner = [f"[{low}{between}{high})" for low, high in pairwise(edges)]
        return (f"<{edges[0]}", *inner, f">={edges[-1]}")

    @property
    def done(self) -> str:
        """What was done to the column, in a word."""
        return "banded" if self.bands else "rounded"

    def words(self) -> str:
        """Return the treatment of the column in a sentence."""
        if self.bands:
            return f"Put in {len(self.bands) + 1} bands with the edges {', '.join(_shown(e, '.') for e in self.bands)}."
        if self.unit is not None:
            return f"Rounded to the {self.unit}."
        return f"Rounded to multiples of {_shown(self.step or Decimal(1), '.')}."

    def expects(self) -> str:
        """Return the expected kind of each value."""
        if self.unit is not None:
            return "dates written YYYY-MM-DD, with a time or without, or DD.MM.YYYY; or missing values declared in na"
        return "numbers, or missing values declared in na"

    def type_of(self, column: Column) -> str:
        """Return the type of the treated column."""
        if column.is_text or self.step is None:
            return TEXT
        return "BIGINT" if column.type in WHOLE and self._scale == 0 else "DOUBLE"

    def sql(self, source: Source, column: Column) -> str:
        """Return the treated cell of a column of a source, NULL where it is missing or cannot be treated."""
        cell = cleaned(source, column)
        if self.unit is not None:
            return _date_sql(cell, self.unit)
        # What only a floating number can hold is taken through one.
        number = f"coalesce({numeric(source, cell, EXACT)}, TRY_CAST({numeric(source, cell)} AS {EXACT}))"
        if self.bands:
            labels = self.labels(source.decimal)
            cases = [f"WHEN {cell} IN ({', '.join(map(quoted, labels))}) THEN {cell}"] if column.is_text else []
            cases += [
                f"WHEN {number} < {_literal(edge)} THEN {quoted(label)}"
                for edge, label in zip(self.bands, labels, strict=False)
            ]
            return f"CASE {' '.join(cases)} WHEN {number} IS NOT NULL THEN {quoted(labels[-1])} END"
        rounded = self._rounded(number)
        if not column.is_text:
            return f"CAST({rounded} AS {self.type_of(column)})"
        text = f"CAST({rounded} AS STRING)"
        return f"replace({text}, '.', ',')" if source.decimal == "," else text

    @property
    def _scale(self) -> int:
        exponent = (self.step or Decimal(1)).as_tuple().exponent
        return max(-exponent, 0) if isinstance(exponent, int) else 0

    def _rounded(self, number: str) -> str:
        """Return the nearest multiple of the step; of two that are equally near, the one further from zero."""
        step = _literal(self.step or Decimal(1))
        rest = f"({number} % {step})"
        up = f"CASE WHEN {rest} + {rest} >= {step} THEN {step} WHEN {rest} + {rest} <= -{step} THEN -{step} ELSE 0 END"
        return f"CAST({number} - {rest} + {up} AS DECIMAL(34, {self._scale}))"


def exact(number: float) -> Decimal:
    """Return a number of a run file as it is written there.

    >>> exact(0.1), exact(1000.0)
    (Decimal('0.1'), Decimal('1000'))
    """
    value = Decimal(repr(number))
    return value.quantize(Decimal(1)) if value == value.to_integral_value() else value.normalize()


def treated(source: Source, treatments: Mapping[str, Treated]) -> Source:
    """Return the source with some columns treated wherever it is read; the same source where none is."""
    wanted = {name: treatment for name, treatment in treatments.items() if name in source.names}
    if not wanted:
        return source
    columns = tuple(replace(c, type=wanted[c.name].type_of(c)) if c.name in wanted else c for c in source.columns)
    labels = source.codebook.columns
    labels = {name: ColumnLabels(label=about.label) if name in wanted else about for name, about in labels.items()}
    book = Codebook(labels, source.codebook.title)
    return replace(source, columns=columns, codebook=book, untreated=source, treatments=wanted)


def attach_treated(engine: Engine, source: Source, before: Source, view: str, create: str) -> None:
    """Make a treated source readable as views of the view with its values as they are, those of `before`."""
    as_read = f"{view}_as_read"
    engine.attach(before, as_read)
    _refuse_untreatable(engine, source, before, as_read)
    cells = ", ".join(
        f"{source.treatments[c.name].sql(before, c)} AS {c.sql}" if c.name in source.treatments else c.sql
        for c in before.columns
    )
    engine.run(f"{create} {view} AS SELECT {cells} FROM {as_read}")
    engine.run(f"{create} {view}_numbered AS SELECT r, {cells} FROM {as_read}_numbered")


def _refuse_untreatable(engine: Engine, source: Source, before: Source, view: str) -> None:
    """Raise unless every value that is not missing can be treated, and none is treated to a code for missing values."""
    names = list(source.treatments)
    counts = []
    for name in names:
        column, treatment = before.column(name), source.treatments[name]
        cell, after = cleaned(before, column), treatment.sql(before, column)
        codes = ", ".join(quoted(code) for code in ("", *source.settings.na))
        counts.append(f"count(CASE WHEN {cell} IS NOT NULL AND {after} IS NULL THEN 1 END)")
        counts.append(f"count(CASE WHEN CAST({after} AS STRING) IN ({codes}) THEN 1 END)")
    found = engine.rows(f"SELECT {', '.join(counts)} FROM {view}")[0]
    for position, name in enumerate(names):
        wrong, missing = (int(str(found[2 * position + which])) for which in (0, 1))
        if wrong:
            raise DataError(
                f"{counted(wrong, 'value')} of {name} cannot be treated as declared",
                expected=source.treatments[name].expects(),
                remedy="correct these values, declare them as missing in na, or leave the treatment out",
            )
        if missing:
            raise DataError(
                f"{counted(missing, 'value')} of {name} would be released as a code that na declares as missing",
                expected="treated values that are not in na under [data]",
                remedy="another step or other bands, or another na",
            )


def _literal(number: Decimal) -> str:
    return f"CAST('{number:f}' AS {EXACT})"


def _shown(number: Decimal, decimal: str) -> str:
    return f"{number:f}".replace(".", decimal)


def _date_sql(cell: str, unit: DateUnit) -> str:
    """Return the label of a date's month, quarter, year or decade. A cell that is such a label already is kept."""
    turned = f"substr({cell}, 7, 4) || '-' || substr({cell}, 4, 2) || '-' || substr({cell}, 1, 2)"
    day = (
        f"CASE WHEN {cell} LIKE '____-__-__' OR {cell} LIKE '____-__-__ %' OR {cell} LIKE '____-__-__T%' "
        f"THEN TRY_CAST(substr({cell}, 1, 10) AS DATE) "
        f"WHEN {cell} LIKE '__.__.____' THEN TRY_CAST({turned} AS DATE) END"
    )
    iso = f"CAST({day} AS STRING)"
    year, month = f"substr({iso}, 1, 4)", f"CAST(substr({iso}, 6, 2) AS INTEGER)"
    quarters = " ".join(f"WHEN {month} <= {3 * q} THEN '{q}'" for q in (1, 2, 3))
    label = {
        "day": iso,
        "month": f"substr({iso}, 1, 7)",
        "quarter": f"{year} || '-Q' || CASE {quarters} WHEN {month} <= 12 THEN '4' END",
        "year": year,
        "decade": f"substr({iso}, 1, 3) || '0s'",
    }[unit]
    already = {
        "day": "1 = 0",
        "month": f"{cell} LIKE '____-__' AND TRY_CAST({cell} || '-01' AS DATE) IS NOT NULL",
        "quarter": f"substr({cell}, 5) IN ('-Q1', '-Q2', '-Q3', '-Q4') AND {_four(cell)}",
        "year": f"length({cell}) = 4 AND {_four(cell)}",
        "decade": f"substr({cell}, 4) = '0s' AND TRY_CAST(substr({cell}, 1, 3) AS INTEGER) IS NOT NULL",
    }[unit]
    return f"CASE WHEN {already} THEN {cell} ELSE {label} END"


def _four(cell: str) -> str:
    return f"TRY_CAST(substr({cell}, 1, 4) || '-01-01' AS DATE) IS NOT NULL"
