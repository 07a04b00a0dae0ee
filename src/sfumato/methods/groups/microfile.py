"""A harmonised microfile in memory: codes of the common attributes, the area, and the members of each group.

The mapping is SQL: conditions, and each attribute as an expression. For attackers that learn from all released columns
the columns are also read as they are: a list of distinct values, and a code for each record with −1 for missing.
Numbers stay numbers, and everything else is text. The matrix of a learner is made from the values of the file that it
learned from, so that two files are read alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.data.cells import cleaned, numeric
from sfumato.data.engine import Engine, require_order
from sfumato.data.source import Source, quoted
from sfumato.errors import DataError, StudyError, counted, nearest, shortened
from sfumato.study.census_mapping import Attribute, FileMapping, vital_columns

Conditions = Mapping[str, str | tuple[str, ...]]  # column → patterns; all columns must match, each any of its patterns


def matches(source: Source, column: str, patterns: str | Iterable[str]) -> str:
    """Return SQL that is true if a cell matches any of the patterns, and never NULL."""
    cell = cleaned(source, source.column(column))
    number = numeric(source, cell)
    listed = [patterns] if isinstance(patterns, str) else list(patterns)
    return "(" + " OR ".join(_pattern(cell, number, pattern) for pattern in listed) + ")"


def _pattern(cell: str, number: str, pattern: str) -> str:
    if pattern == "":
        return f"{cell} IS NULL"
    if pattern.endswith("*"):
        return f"coalesce({cell} LIKE {quoted(_literal(pattern[:-1]) + '%')} ESCAPE '!', FALSE)"
    low, dots, high = pattern.partition("..")
    if dots:
        bounds = [f"{number} {sign} {_number(end)}" for sign, end in ((">=", low), ("<=", high)) if end]
        return f"coalesce({' AND '.join(bounds) or f'{cell} IS NOT NULL'}, FALSE)"
    try:
        return f"coalesce({number} = {_number(pattern)}, FALSE)"
    except StudyError:
        return f"coalesce({cell} = {quoted(pattern)}, FALSE)"


def _literal(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _number(text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        raise StudyError(
            f'the pattern "{text}" has no number', expected='a range such as "2..7", or "55*", or a value'
        ) from None


def meets(source: Source, conditions: Iterable[Conditions]) -> str:
    """Return SQL that is true for rows that meet all parts of any of the conditions."""
    parts = [" AND ".join(matches(source, name, p) for name, p in one.items()) or "TRUE" for one in conditions]
    return "(" + " OR ".join(f"({part})" for part in parts) + ")" if parts else "FALSE"


def expression(source: Source, attribute: Attribute) -> str:
    """Return SQL for the value of an attribute; NULL if no case gives one."""
    cell = cleaned(source, source.column(attribute.column))
    number = numeric(source, cell)
    branches = [f"WHEN {meets(source, [case.when])} THEN {case.value!r}" for case in attribute.cases]
    if attribute.blank is not None:
        branches.append(f"WHEN {cell} IS NULL THEN {attribute.blank!r}")
    branches += [f"WHEN {_pattern(cell, number, pattern)} THEN {v!r}" for pattern, v in attribute.recode.items()]
    if attribute.recode:
        return f"CASE {' '.join(branches)} ELSE NULL END"
    for factor in attribute.multiply:
        by = numeric(source, cleaned(source, source.column(factor))) if isinstance(factor, str) else repr(factor)
        number = f"{number} * {by}"
    if attribute.divide != 1:
        number = f"{number} / {attribute.divide!r}"
    if attribute.rounded:  # SQL that every engine knows for rounding halves to the even number
        half = f"2 * floor((floor({number}) + 1) / 2)"
        number = f"CASE WHEN {number} - floor({number}) = 0.5 THEN {half} ELSE floor({number} + 0.5) END"
    return f"CASE {' '.join(branches)} ELSE {number} END" if branches else number


def check_columns(source: Source, mapping: FileMapping) -> None:
    """Raise unless every column that the mapping reads is in the file."""
    wanted: dict[str, str] = {}
    for name, attribute in mapping.attributes.items():
        wanted.update(dict.fromkeys(attribute.columns, f"the attribute {name}"))
    wanted.update(dict.fromkeys(mapping.area, "the area"))
    for conditions in (*mapping.leave_out, *mapping.only):
        wanted.update(dict.fromkeys(conditions, "a condition"))
    absent = [column for column in wanted if column not in source.names]
    if absent:
        listed = shortened(f"{column} (for {wanted[column]})" for column in absent)
        raise StudyError(
            f"{source.title} lacks {counted(len(absent), 'column')} that the mapping reads: {listed}",
            expected="every attribute in both files",
            remedy=nearest(absent[0], source.names),
        )


AT_ONCE = 64  # columns of one query
NUMBER = "CAST('NaN' AS DOUBLE)"


@dataclass(frozen=True)
class Wide:
    """Columns of a file by name: distinct values, numbers or text in rising order, and `codes[column, record]`."""

    names: tuple[str, ...]
    values: tuple[npt.NDArray[np.generic], ...]
    codes: Codes

    @property
    def records(self) -> int:
        return int(self.codes.shape[1])

    def part(self, chosen: Flags | Counts64) -> Wide:
        """Return the chosen records as a smaller file."""
        return Wide(self.names, self.values, self.codes[:, chosen])

    def only(self, names: Collection[str]) -> Wide:
        """Return some of the columns, in their order."""
        kept = [i for i, name in enumerate(self.names) if name in names]
        return Wide(tuple(self.names[i] for i in kept), tuple(self.values[i] for i in kept), self.codes[kept])

    def numbers(self, like: Wide) -> Floats:
        """Return a matrix, record by column, of the columns of `like`, coded as there; NaN for unknown values.

        Text becomes its position among the values of `like`, so other text is unknown.

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


def _coded(mine: npt.NDArray[np.generic], theirs: npt.NDArray[np.generic]) -> Floats:
    """Return values as the other file codes them: numbers unchanged, text by position."""
    if theirs.dtype.kind == "f":
        return mine.astype(np.float64) if mine.dtype.kind == "f" else np.full(len(mine), np.nan)
    if mine.dtype.kind == "f" or not len(theirs):
        return np.full(len(mine), np.nan)
    where = np.minimum(np.searchsorted(theirs, mine), len(theirs) - 1)
    return np.where(theirs[where] == mine, where.astype(np.float64), np.nan)


def quantile_groups(counts: Counts64, limit: int) -> Counts64:
    """Return the group of each of many ordered values, so that the groups have about as many records.

    >>> quantile_groups(np.array([4, 1, 1, 2]), 2).tolist()
    [0, 1, 1, 1]
    """
    middle = np.cumsum(counts) - counts / 2
    groups: Counts64 = np.minimum((middle * limit / max(counts.sum(), 1)).astype(np.int64), limit - 1)
    return groups


def read_wide(engine: Engine, source: Source, names: Sequence[str], rows: str) -> Wide:
    """Read columns of the view `raw` for the rows whose numbers (from 0) are column `r` of a table, in that order.

    A column is numeric if every value is a number, and text if not.
    """
    listed = ", ".join(f"{cleaned(source, source.column(name))} AS w{i}" for i, name in enumerate(names))
    numbered = f"SELECT row_number() OVER () - 1 AS r, {', '.join(c.sql for c in source.columns)} FROM raw"
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE wide AS SELECT n.r AS r, {listed or '0 AS w0'} FROM ({numbered}) AS n "
        f"JOIN {rows} AS k ON n.r = k.r ORDER BY n.r"
    )
    values: list[npt.NDArray[np.generic]] = []
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


@dataclass(frozen=True)
class Dropped:
    """What harmonising dropped: rows left out by condition, and for each reason its rows and those with no other."""

    rows_read: int
    left_out: int
    kept: int
    reasons: Mapping[str, int]
    only_reason: Mapping[str, int]


@dataclass(frozen=True)
class Microfile:
    """Records in the order of the file. `rows` is each record's position in it, from 0.

    Usually they are the records in range. If all rows are read, `inside` flags the records in range, and an
    attribute may be NaN. Then `unit_of` numbers the records that stay together, and `wide` has the columns as they are.
    Each group has a flag per record in `members`, which is empty if the file lacks the vital columns. The members of
    each group per area over all rows, in range or not, are in `everyone`.
    """

    name: str
    attributes: tuple[str, ...]
    values: tuple[Floats, ...]
    codes: Codes
    areas: tuple[str, ...]
    area_of: Codes
    members: Mapping[str, Flags]
    rows: Counts64
    dropped: Dropped
    everyone: Mapping[str, Counts64]
    inside: Flags
    unit_of: Counts64 | None = None
    wide: Wide | None = None

    @property
    def records(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Floats:
        """Return the values of an attribute, record by record."""
        position = self.attributes.index(name)
        values: Floats = self.values[position][self.codes[position]]
        return values

    def table(self) -> Floats:
        """Return all attributes as numbers, one row per record."""
        return np.stack([self.values[j][self.codes[j]] for j in range(len(self.attributes))], axis=1)

    def sizes(self) -> Counts64:
        """Return the records per area."""
        return np.bincount(self.area_of, minlength=len(self.areas)).astype(np.int64)

    def quantity(self, group: str) -> Counts64:
        """Return the quantity signal q: the members per area."""
        return np.bincount(self.area_of[self.members[group]], minlength=len(self.areas)).astype(np.int64)

    def with_areas(self, area_of: Codes) -> Microfile:
        """Return the same records in other areas."""
        return replace(self, area_of=area_of)

    def part(self, chosen: Flags, name: str | None = None) -> Microfile:
        """Return the chosen records as a smaller file."""
        return replace(
            self,
            name=name or self.name,
            codes=self.codes[:, chosen],
            area_of=self.area_of[chosen],
            members={group: flags[chosen] for group, flags in self.members.items()},
            rows=self.rows[chosen],
            inside=self.inside[chosen],
            unit_of=None if self.unit_of is None else self.unit_of[chosen],
            wide=None if self.wide is None else self.wide.part(chosen),
        )

    def in_range(self) -> Microfile:
        """Return the records in range only."""
        return self if self.inside.all() else replace(self, wide=None).part(self.inside)


def read_microfile(
    engine: Engine,
    source: Source,
    mapping: FileMapping,
    name: str,
    *,
    need_members: bool = True,
    columns: Sequence[str] | None = None,
    unit: str | None = None,
) -> Microfile:
    """Harmonise a source with one scan in the engine, then one column of codes at a time.

    It reads the records in range or, with `columns` that are kept as they are, every row with an area. Rows with the
    same value of the `unit`, such as a household's number, stay together.
    """
    require_order(engine, "the groups system")
    check_columns(source, mapping)
    absent = [column for column in vital_columns(mapping) if column not in source.names]
    if absent and need_members:
        raise DataError(
            f"{name} lacks the vital columns {shortened(absent)}",
            expected="columns that say who is in the group",
            remedy="an auxiliary file with them, or other conditions under [groups.vital]",
        )
    groups = [] if absent else list(mapping.vital)
    engine.attach(source, "raw")
    dropped = _harmonise(engine, source, mapping, groups)
    if dropped.kept == 0:
        worst = max(dropped.reasons, key=lambda name: (dropped.only_reason[name], dropped.reasons[name]), default="")
        raise DataError(
            f"the ranges drop all {dropped.rows_read:,} rows of {name}",
            expected="ranges that keep records",
            remedy=f"{worst} drops {dropped.reasons.get(worst, 0):,} of them; widen it",
        )
    return _loaded(engine, source, mapping, name, groups, dropped, columns, unit)


def _loaded(
    engine: Engine,
    source: Source,
    mapping: FileMapping,
    name: str,
    groups: Sequence[str],
    dropped: Dropped,
    columns: Sequence[str] | None,
    unit: str | None,
) -> Microfile:
    """Return the harmonised rows as arrays."""
    areas = [str(row[0]) for row in engine.rows("SELECT DISTINCT area FROM harmonised WHERE area <> '' ORDER BY area")]
    engine.upload("areas", {"label": areas, "code": np.arange(len(areas), dtype=np.int32)})
    engine.run(
        "CREATE OR REPLACE TEMP TABLE kept AS SELECT h.*, a.code AS code FROM harmonised AS h "
        f"JOIN areas AS a ON h.area = a.label WHERE {'h.inside' if columns is None else 'TRUE'} ORDER BY h.r"
    )

    def kept(cell: str) -> np.ndarray:
        return engine.arrays(f"SELECT {cell} AS v FROM kept ORDER BY r")["v"]

    coded = [
        np.unique(kept(f"coalesce(a{i}, {NUMBER})").astype(np.float64), return_inverse=True)
        for i in range(len(mapping.attributes))
    ]
    return Microfile(
        name=name,
        attributes=tuple(mapping.attributes),
        values=tuple(values for values, _ in coded),
        codes=np.stack([codes.reshape(-1) for _, codes in coded]).astype(np.int32),
        areas=tuple(areas),
        area_of=kept("code").astype(np.int32),
        members={group: kept(f"g{i}").astype(np.bool_) for i, group in enumerate(groups)},
        rows=kept("r").astype(np.int64),
        dropped=dropped,
        everyone={group: _everyone(engine, i, len(areas)) for i, group in enumerate(groups)},
        inside=kept("coalesce(inside, FALSE)").astype(np.bool_),
        unit_of=_units(engine, source, unit, name) if unit else None,
        wide=read_wide(engine, source, columns, "kept") if columns is not None else None,
    )


def _units(engine: Engine, source: Source, unit: str, name: str) -> Counts64:
    """Return a number for each record's unit. A record without a unit is a unit by itself."""
    read: Counts64 = read_wide(engine, source, [unit], "kept").codes[0].astype(np.int64)
    alone = read < 0
    read[alone] = read.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    area_of = engine.arrays("SELECT code FROM kept ORDER BY r")["code"].astype(np.int64)
    spread = np.unique(np.stack([read, area_of]), axis=1).shape[1] - len(np.unique(read))
    if spread:
        raise DataError(
            f"{spread} of the units that {unit} names in {name} lie in more than one area",
            expected="a unit, such as a household, in one area",
            remedy="another column for unit under [groups], or none",
        )
    return read


def _harmonise(engine: Engine, source: Source, mapping: FileMapping, groups: list[str]) -> Dropped:
    """Create the table `harmonised`: position, attributes, area, group flags, whether the row is in range."""
    attributes = list(mapping.attributes.values())
    cells = [f"CAST({expression(source, attribute)} AS DOUBLE) AS a{i}" for i, attribute in enumerate(attributes)]
    area = " || '-' || ".join(f"{cleaned(source, source.column(name))}" for name in mapping.area)
    flags = [f"{meets(source, mapping.vital[group])} AS g{i}" for i, group in enumerate(groups)]
    inside = " AND ".join(f"({_inside(i, a.range)})" for i, a in enumerate(attributes)) or "TRUE"
    keep = f"NOT {meets(source, mapping.leave_out)}" + (f" AND {meets(source, mapping.only)}" if mapping.only else "")
    numbered = f"SELECT row_number() OVER () - 1 AS r, {', '.join(c.sql for c in source.columns)} FROM raw"
    cleaned_up = f"SELECT r, {', '.join([*cells, *flags])}, coalesce({area}, '') AS area FROM ({numbered}) WHERE {keep}"
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE harmonised AS SELECT *, (area <> '' AND {inside}) AS inside FROM ({cleaned_up})"
    )
    return _dropped(engine, mapping)


def _inside(position: int, limits: tuple[float, float] | None) -> str:
    cell = f"a{position}"
    return f"{cell} IS NOT NULL" + (f" AND {cell} BETWEEN {limits[0]!r} AND {limits[1]!r}" if limits else "")


def _dropped(engine: Engine, mapping: FileMapping) -> Dropped:
    tests = {"area missing": "area <> ''"}
    for position, (name, attribute) in enumerate(mapping.attributes.items()):
        said = f" outside {attribute.range[0]:g}..{attribute.range[1]:g}" if attribute.range else " missing"
        tests[name + said] = f"coalesce({_inside(position, attribute.range)}, FALSE)"
    failing = " + ".join(f"CASE WHEN {test} THEN 0 ELSE 1 END" for test in tests.values())
    counts = ", ".join(
        f"count(*) FILTER (NOT ({test})), count(*) FILTER (NOT ({test}) AND failing = 1)" for test in tests.values()
    )
    of_rows = f"SELECT *, {failing} AS failing FROM harmonised"
    read = int(engine.rows("SELECT count(*) FROM raw")[0][0])
    left, kept, *each = map(
        int, engine.rows(f"SELECT count(*), count(*) FILTER (inside), {counts} FROM ({of_rows})")[0]
    )
    reasons = {name: count for name, count in zip(tests, each[::2], strict=True) if count}
    only = dict(zip(tests, each[1::2], strict=True))
    return Dropped(read, read - left, kept, reasons, {name: only[name] for name in reasons})


def _everyone(engine: Engine, position: int, areas: int) -> Counts64:
    joined = f"harmonised AS h JOIN areas AS a ON h.area = a.label WHERE h.g{position}"
    return np.bincount(engine.arrays(f"SELECT a.code AS v FROM {joined}")["v"], minlength=areas).astype(np.int64)
