"""What a table's columns look like, before anything is declared about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import DataError, counted, nearest
from sfumato.sources.cells import cleaned, numeric
from sfumato.sources.engines.engine import Engine, open_engine, quoted
from sfumato.sources.sentinels import NA_WORDS, missing_candidates
from sfumato.sources.source import Column, Source

ENDS = 40  # numbers looked at from each end of a column
EXAMPLES = 40  # values of a column of text


@dataclass(frozen=True, repr=False)
class ColumnProfile:
    """The figures of one column. `kind` is whole, number, date or text; `typical` holds nine in ten of its values.

    `na_words` are the values that nearly always mean "missing", `candidates` those that may. `examples` are common
    values of a column of text, for whoever suggests a role; no report shows them. `label` is what the column's codebook
    calls it.
    """

    name: str
    rows: int
    missing: int
    distinct: int
    uniques: int
    kind: str
    lowest: float | None
    highest: float | None
    typical: tuple[float, float] | None
    na_words: tuple[str, ...]
    candidates: tuple[str, ...]
    examples: tuple[str, ...]
    label: str = ""

    def __repr__(self) -> str:
        return f"<ColumnProfile of {self.name}: {self.kind}, {counted(self.distinct, 'value')}>"

    @property
    def present(self) -> int:
        return self.rows - self.missing

    @property
    def unique_share(self) -> float:
        """The share of the records that have a value of their own."""
        return self.uniques / max(self.present, 1)

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "missing": self.missing,
            "distinct": self.distinct,
            "uniques": self.uniques,
            "kind": self.kind,
            "na_words": list(self.na_words),
            "missing_candidates": list(self.candidates),
            **({"label": self.label} if self.label else {}),
        }


def profile(engine: Engine, source: Source) -> list[ColumnProfile]:
    """Profile every column; the raw rows are scanned once, into the table `profiled`, which numbers them as `r`."""
    engine.attach(source, "raw")
    cells = ", ".join(f"{cleaned(source, column)} AS {column.sql}" for column in source.columns)
    engine.run(f"CREATE OR REPLACE TEMP TABLE profiled AS SELECT r, {cells} FROM raw_numbered")
    return [_profiled(engine, source, column) for column in source.columns]


def values_of(source: Source, name: str) -> dict[str, int]:
    """The values of one column, missing ones left out, with their counts."""
    if name not in source.names:
        raise DataError(f'there is no column "{name}"', expected="a column", remedy=nearest(name, source.names))
    with open_engine() as engine:
        engine.attach(source, "raw")
        cell = cleaned(source, source.column(name))
        result = engine.rows(f"SELECT v, count(*) FROM (SELECT {cell} AS v FROM raw) AS r GROUP BY v ORDER BY v")
    return {str(value): int(count) for value, count in result if value is not None}


def _profiled(engine: Engine, source: Source, column: Column) -> ColumnProfile:
    value = f"CASE WHEN {numeric(source, 'v')} BETWEEN -1e300 AND 1e300 THEN {numeric(source, 'v')} END"
    grouped = f"SELECT {column.sql} AS v, count(*) AS n FROM profiled GROUP BY {column.sql}"
    day = "CASE WHEN v LIKE '____-__-__' THEN TRY_CAST(v AS DATE) END"
    engine.run(f"CREATE OR REPLACE TEMP TABLE spread AS SELECT v, n, {value} AS x, {day} AS day FROM ({grouped}) AS g")
    result = engine.rows(
        "SELECT CAST(sum(n) AS BIGINT), CAST(sum(CASE WHEN v IS NULL THEN n ELSE 0 END) AS BIGINT), count(v), "
        "CAST(sum(CASE WHEN n = 1 AND v IS NOT NULL THEN 1 ELSE 0 END) AS BIGINT), "
        "count(x), count(CASE WHEN x = floor(x) THEN 1 END), min(x), max(x), count(day) FROM spread"
    )[0]
    rows, missing, distinct, uniques, numbers, whole, low, high, days = result
    typical = None
    if numbers:
        ends = ", ".join(f"percentile_cont({share}) WITHIN GROUP (ORDER BY x)" for share in (0.05, 0.95))
        each = f"SELECT {value} AS x FROM (SELECT {column.sql} AS v FROM profiled) AS c"
        fifth, last = engine.rows(f"SELECT {ends} FROM ({each}) AS t")[0]
        typical = (float(fifth), float(last))
    words = ", ".join(quoted(word) for word in NA_WORDS)
    na_words = tuple(row[0] for row in engine.rows(f"SELECT v FROM spread WHERE v IN ({words}) ORDER BY v"))
    valued = distinct - len(na_words)
    kind = "text"
    if valued > 0 and days >= valued:
        kind = "date"
    elif valued > 0 and numbers >= valued:
        kind = "whole" if whole >= valued else "number"
    texts = f"SELECT v FROM spread WHERE v IS NOT NULL AND x IS NULL ORDER BY n DESC, v LIMIT {EXAMPLES}"
    examples = tuple(str(row[0]) for row in engine.rows(texts)) if numbers < distinct else ()
    known: dict[float, int] = {}
    spelled: dict[float, list[str]] = {}
    for order in ("x", "x DESC") if numbers else ():
        ends = f"SELECT x, n, v FROM spread WHERE x IS NOT NULL ORDER BY {order}, v LIMIT {ENDS}"
        for value, count, word in engine.rows(ends):
            if word not in spelled.setdefault(float(value), []):
                spelled[float(value)].append(word)
                known[float(value)] = known.get(float(value), 0) + int(count)
    return ColumnProfile(
        name=column.name,
        rows=rows or 0,
        missing=missing or 0,
        distinct=distinct,
        uniques=uniques or 0,
        kind=kind,
        lowest=low,
        highest=high,
        typical=typical,
        na_words=na_words,
        candidates=missing_candidates(known, examples, distinct - numbers - len(na_words), spelled),
        examples=tuple(word for word in examples if word not in na_words) if kind == "text" else (),
        label=source.codebook.column(column.name).label,
    )


def complete_rows(engine: Engine, source: Source, names: Sequence[str], na: Sequence[str]) -> int:
    """How many rows of the profiled table have no missing value in some columns."""
    words = ", ".join(quoted(word) for word in na) or "''"
    there = [f"{source.column(n).sql} IS NOT NULL AND {source.column(n).sql} NOT IN ({words})" for n in names]
    return int(engine.rows(f"SELECT count(*) FROM profiled WHERE {' AND '.join(there) or '1 = 1'}")[0][0])
