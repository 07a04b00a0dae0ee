"""Profiles of columns before anything is declared about them, first rows and distributions of values.

Values that may mean "missing" are codes far from the other values of a column, a letter among numbers, and known
phrases. They are reported and never applied, because only the publisher knows whether 9 means nine or no answer.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sfumato.base.text import percent
from sfumato.data.cells import cleaned, numeric
from sfumato.data.engine import Engine, open_engine
from sfumato.data.source import Column, Source, quoted
from sfumato.errors import DataError, counted, nearest

# Text that nearly always means "missing"; a run file is written with those that occur.
NA_WORDS = ("?", "NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "-", ".", "#N/A", "missing", "unknown")
PHRASES = re.compile(
    r"(?i)not (in universe|applicable|stated|known|available|reported|asked|answered|recorded|specified|given)|"
    r"no (answer|data|response|information)|don'?t know|refused|n\.a\.?|\(?(blank|null|none given)\)?|-{2,}|\.{2,}|…|"
    r"undefined|unspecified|#null!?|keine angabe|k\.? ?a\.?|missing|unknown|n/?a"
)
AMONG_NUMBERS = re.compile(r"[^\W\d_]{1,4}|[^\w\s<>+]{1,4}")  # letters or marks, but not the "+" of an open end
HIGH = re.compile(r"[789]|9+[6-9]|7{2,}|8{2,}")
LOW = re.compile(r"-(?:[1-9]|6{2,}|7{2,}|8{2,}|9{2,})")
USUAL_LOW = re.compile(r"-(?:[789]|6{2,}|7{2,}|8{2,}|9{2,})")
MOST_WORDS = 3


def missing_candidates(
    numbers: Mapping[float, int],
    words: Sequence[str],
    others: int,
    spelled: Mapping[float, Sequence[str]] | None = None,
) -> tuple[str, ...]:
    """Return values that may mean "missing", from the lowest and highest numbers with counts, and other values.

    `others` is the number of different values that are no numbers, and `words` are some of them. Where it differs,
    `spelled` has the spelling of a number in the cells, because a code is compared with their text.

    >>> missing_candidates({-9: 40, 1: 90, 2: 80, 3: 70}, ["N"], 1)
    ('-9', 'N')
    >>> missing_candidates({-8: 40, 1: 90, 2: 80, 3: 70}, [], 0, {-8: ["-8.0"]})
    ('-8.0',)
    >>> missing_candidates({float(n): 5 for n in range(1, 10)}, [], 0)
    ()
    """
    codes = (*_low(numbers), *_high(numbers))
    result = [word for value in codes for word in (spelled or {}).get(value, (_text(value),))]
    if len(numbers) > 1 and others <= MOST_WORDS:
        result += [word for word in words if AMONG_NUMBERS.fullmatch(word)]
    result += [word for word in words if PHRASES.fullmatch(word)]
    return tuple(sorted({word for word in result if word not in NA_WORDS}))


def _high(numbers: Mapping[float, int]) -> list[float]:
    """Return codes such as 9, 99 or 998 above the highest other number, after a gap of several usual gaps.

    A code that is more frequent than its neighbour needs a smaller gap. One whose digits differ needs a larger gap.
    """
    codes = [value for value in numbers if HIGH.fullmatch(_text(value))]
    rest = sorted(set(numbers) - set(codes) - {value for value in numbers if LOW.fullmatch(_text(value))})
    codes = sorted(value for value in codes if rest and value > rest[-1])
    for position, code in enumerate(codes):
        steps = 5 if len(set(_text(code))) > 1 else 2 if numbers[code] > numbers[rest[-1]] else 3
        if len(rest) > 1 and code - rest[-1] >= steps * _usual_gap(rest[-10:]):
            return codes[position:]
        rest.append(code)
    return []


def _low(numbers: Mapping[float, int]) -> list[float]:
    """Return codes such as -9 or -1 below the lowest other number, unless the column has negative numbers."""
    codes = sorted((value for value in numbers if LOW.fullmatch(_text(value))), reverse=True)
    rest = sorted(set(numbers) - set(codes) - {value for value in numbers if HIGH.fullmatch(_text(value))})
    rest = rest or sorted(set(numbers) - set(codes))
    codes = [value for value in codes if rest and value < rest[0]]
    for position, code in enumerate(codes):
        usual = rest[0] >= 0 and USUAL_LOW.fullmatch(_text(code)) is not None
        steps = 2 if rest[0] >= 0 or numbers[code] > numbers[rest[0]] else 3
        if len(rest) > 1 and (usual or rest[0] - code >= steps * _usual_gap(rest[:10])):
            return codes[position:]
        rest.insert(0, code)
    return []


def _usual_gap(neighbours: Sequence[float]) -> float:
    """Return the median difference between neighbouring numbers."""
    gaps = sorted(b - a for a, b in itertools.pairwise(neighbours))
    return gaps[len(gaps) // 2]


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


ENDS = 40  # numbers that are examined at each end of a column
EXAMPLES = 40  # values of a column of text


@dataclass(frozen=True, repr=False)
class ColumnProfile:
    """Figures of one column. `kind` is whole, number, date or text. `typical` has nine in ten of its values.

    `na_words` are values that nearly always mean "missing", `candidates` values that may. `examples` are common values
    of a column of text, by which a role is suggested. No report shows them. `label` is the label of the codebook.
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

    def as_dict(self) -> dict[str, object]:
        figures: dict[str, object] = {
            name: getattr(self, name) for name in ("rows", "missing", "distinct", "uniques", "kind")
        }
        figures |= {"na_words": list(self.na_words), "missing_candidates": list(self.candidates)}
        return figures | ({"label": self.label} if self.label else {})


def profile(engine: Engine, source: Source) -> list[ColumnProfile]:
    """Profile every column. The records are read once, into the table `profiled`, which numbers them as `r`."""
    as_text(engine, source)
    return [_profiled(engine, source, column) for column in source.columns]


def as_text(engine: Engine, source: Source, names: Sequence[str] | None = None) -> None:
    """Make the table `profiled` of the clean cells of some or all columns, and the row number `r`."""
    engine.attach(source, "raw")
    columns = source.columns if names is None else [source.column(name) for name in names]
    cells = "".join(f", {cleaned(source, column)} AS {column.sql}" for column in columns)
    engine.run(f"CREATE OR REPLACE TEMP TABLE profiled AS SELECT r{cells} FROM raw_numbered")


def values_of(source: Source, name: str) -> dict[str, int]:
    """Return the values of one column, missing ones left out, with their counts."""
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
    rows, missing, distinct, uniques, numbers, whole, low, high, days = engine.rows(
        "SELECT CAST(sum(n) AS BIGINT), CAST(sum(CASE WHEN v IS NULL THEN n ELSE 0 END) AS BIGINT), count(v), "
        "CAST(sum(CASE WHEN n = 1 AND v IS NOT NULL THEN 1 ELSE 0 END) AS BIGINT), "
        "count(x), count(CASE WHEN x = floor(x) THEN 1 END), min(x), max(x), count(day) FROM spread"
    )[0]
    words = ", ".join(quoted(word) for word in NA_WORDS)
    na_words = tuple(row[0] for row in engine.rows(f"SELECT v FROM spread WHERE v IN ({words}) ORDER BY v"))
    valued = distinct - len(na_words)
    kind = "text"
    if 0 < valued <= days:
        kind = "date"
    elif 0 < valued <= numbers:
        kind = "whole" if whole >= valued else "number"
    texts = f"SELECT v FROM spread WHERE v IS NOT NULL AND x IS NULL ORDER BY n DESC, v LIMIT {EXAMPLES}"
    examples = tuple(str(row[0]) for row in engine.rows(texts)) if numbers < distinct else ()
    known, spelled = _ends(engine) if numbers else ({}, {})
    return ColumnProfile(
        name=column.name,
        rows=rows or 0,
        missing=missing or 0,
        distinct=distinct,
        uniques=uniques or 0,
        kind=kind,
        lowest=low,
        highest=high,
        typical=_typical(engine, column, value) if numbers else None,
        na_words=na_words,
        candidates=missing_candidates(known, examples, distinct - numbers - len(na_words), spelled),
        examples=tuple(word for word in examples if word not in na_words) if kind == "text" else (),
        label=source.codebook.column(column.name).label,
    )


def _typical(engine: Engine, column: Column, value: str) -> tuple[float, float]:
    """Return the ends between which nine in ten numbers of a column are."""
    ends = ", ".join(f"percentile_cont({share}) WITHIN GROUP (ORDER BY x)" for share in (0.05, 0.95))
    each = f"SELECT {value} AS x FROM (SELECT {column.sql} AS v FROM profiled) AS c"
    low, high = engine.rows(f"SELECT {ends} FROM ({each}) AS t")[0]
    return float(low), float(high)


def _ends(engine: Engine) -> tuple[dict[float, int], dict[float, list[str]]]:
    """Return the lowest and highest numbers of the table `spread`, with their counts and spellings."""
    known: dict[float, int] = defaultdict(int)
    spelled: dict[float, list[str]] = defaultdict(list)
    for order in ("x", "x DESC"):
        ends = f"SELECT x, n, v FROM spread WHERE x IS NOT NULL ORDER BY {order}, v LIMIT {ENDS}"
        for value, count, word in engine.rows(ends):
            if word not in spelled[float(value)]:
                spelled[float(value)].append(word)
                known[float(value)] += int(count)
    return known, spelled


@dataclass(frozen=True)
class MissingCost:
    """Effect of declaring a value as a code for missing, in the measured columns that hold it.

    `records` hold the value in at least one of these columns, in `cells` cells. `left_out` is the number of records
    that the rule "drop" would then leave out, with the codes that are declared already, and `left_out_now` without this
    one. The rules "category" and "wildcard" leave out none.
    """

    columns: tuple[str, ...]
    records: int
    cells: int
    left_out: int
    left_out_now: int
    rows: int

    def sentences(self) -> dict[str, str]:
        """Return what each rule would do, in a clause.

        >>> MissingCost(("a", "b"), 30, 40, 35, 5, 100).sentences()["drop"]
        '35 of 100 records are left out (35.0 %)'
        """
        cells = f"{counted(self.cells, 'cell')} {'becomes' if self.cells == 1 else 'become'}"
        return {
            "category": f"no record is left out; {cells} a separate category",
            "drop": f"{self.left_out:,} of {counted(self.rows, 'record')} "
            f"{'is' if self.left_out == 1 else 'are'} left out ({percent(self.left_out / max(self.rows, 1))})",
            "wildcard": f"no record is left out; {counted(self.cells, 'cell')} "
            f"{'matches' if self.cells == 1 else 'match'} any value",
        }

    def as_dict(self) -> dict[str, object]:
        return asdict(self) | {"columns": list(self.columns), "rules": self.sentences()}


def missing_costs(
    engine: Engine, source: Source, words: Sequence[str], measured: Sequence[str], na: Sequence[str] = ()
) -> dict[str, MissingCost]:
    """Return the effect of each of some values as a code for missing, counted in the profiled table.

    The other codes do not change for it. Those in `na` are not yet missing in the profiled table.
    """
    if not measured:
        return {}
    names = [source.column(name).sql for name in measured]
    known = ", ".join(quoted(word) for word in na)
    empty = " OR ".join(f"{name} IS NULL" + (f" OR {name} IN ({known})" if known else "") for name in names)
    counts = ["count(*)", f"count(CASE WHEN {empty} THEN 1 END)"]
    for word in words:
        some = " OR ".join(f"{name} = {quoted(word)}" for name in names)
        counts += [f"count(CASE WHEN {some} THEN 1 END)", f"count(CASE WHEN {some} OR {empty} THEN 1 END)"]
        counts += [f"count(CASE WHEN {name} = {quoted(word)} THEN 1 END)" for name in names]
    rows, now, *found = engine.rows(f"SELECT {', '.join(counts)} FROM profiled")[0] if words else (0, 0)
    costs = {}
    for position, word in enumerate(words):
        records, left_out, *cells = found[position * (len(names) + 2) :][: len(names) + 2]
        there = tuple(name for name, count in zip(measured, cells, strict=True) if count)
        costs[word] = MissingCost(there, records, sum(cells), left_out, now, rows)
    return costs


def complete_rows(engine: Engine, source: Source, names: Sequence[str], na: Sequence[str]) -> int:
    """Return the number of rows of the profiled table without a missing value in some columns."""
    words = ", ".join(quoted(word) for word in na) or "''"
    there = [f"{source.column(n).sql} IS NOT NULL AND {source.column(n).sql} NOT IN ({words})" for n in names]
    return int(engine.rows(f"SELECT count(*) FROM profiled WHERE {' AND '.join(there) or '1 = 1'}")[0][0])


BINS = 24
TOP = 12


def first_rows(engine: Engine, source: Source, limit: int = 50) -> list[list[str | None]]:
    """Return the first rows as clean text; None where a value is missing."""
    return _rows(engine, source, f"LIMIT {int(limit)}")


def drawn_rows(engine: Engine, source: Source, limit: int) -> list[list[str | None]]:
    """Return rows from the whole table as clean text: those with the least digests, so the same each time."""
    text = ", ".join(f"coalesce({column.sql}, '')" for column in source.columns)
    return _rows(engine, source, f"ORDER BY md5(concat_ws('|', {text})) LIMIT {int(limit)}")


def _rows(engine: Engine, source: Source, which: str) -> list[list[str | None]]:
    engine.attach(source, "raw")
    cells = ", ".join(f"{cleaned(source, column)} AS {column.sql}" for column in source.columns)
    return [list(row) for row in engine.rows(f"SELECT * FROM (SELECT {cells} FROM raw) AS clean {which}")]


def spread(engine: Engine, source: Source, column: ColumnProfile) -> dict[str, object]:
    """Return the distribution of a profiled column: numbers in equal bins, other values by frequency."""
    position = source.column(column.name).sql
    low, high = column.lowest, column.highest
    if column.kind in ("whole", "number") and low is not None and high is not None and column.distinct > TOP:
        return _binned(engine, source, position, low, high, whole=column.kind == "whole")
    result = engine.rows(
        f"SELECT {position} AS v, count(*) AS n FROM profiled WHERE {position} IS NOT NULL GROUP BY {position} "
        f"ORDER BY n DESC, v LIMIT {TOP}"
    )
    labels, counts = [str(value) for value, _ in result], [int(count) for _, count in result]
    return {"kind": "values", "labels": labels, "counts": counts, "rest": column.present - sum(counts)}


def _binned(engine: Engine, source: Source, cell: str, low: float, high: float, *, whole: bool) -> dict[str, object]:
    wide = (high - low) / BINS
    if whole:  # bins of whole numbers hold equally many of them
        wide = max(float(-(-(high - low + 1) // BINS)), 1.0)
    wide = wide or 1.0
    bins = min(int((high - low) / wide) + 1, BINS)
    value = numeric(source, cell)
    result = engine.rows(
        f"SELECT least(CAST(floor(({value} - {low!r}) / {wide!r}) AS BIGINT), {bins - 1}) AS b, count(*) FROM profiled "
        f"WHERE {value} BETWEEN {low!r} AND {high!r} GROUP BY b"
    )
    held = {int(number): int(count) for number, count in result}
    edges = [low + wide * i for i in range(bins + 1)]
    return {"kind": "bins", "edges": edges, "counts": [held.get(i, 0) for i in range(bins)], "rest": 0}
