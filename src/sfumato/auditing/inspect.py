"""The inspection of a table without declarations: its columns, the sets that single out records, and a first run file.

The search for small sets of columns that single out most records considers every column, every pair, and the sets of
three that extend the best pairs. For a large table it uses a part of the rows. The reported shares are always of all
rows. The run file has a comment at every decision that is left to the publisher.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from sfumato.auditing.uniqueness import Uniqueness, uniqueness_in_units, uniqueness_of
from sfumato.base.arrays import Counts64
from sfumato.base.settings import Noted, toml_text, toml_value
from sfumato.data.engine import Engine, open_engine
from sfumato.data.frame import Frame, is_frame
from sfumato.data.open import open_source
from sfumato.data.profile import ColumnProfile, MissingCost, complete_rows, missing_costs, profile
from sfumato.data.repeating import Repeating, repeating, with_holders
from sfumato.data.settings import IN_MEMORY, DataSettings, EngineOptions, Role
from sfumato.data.source import Source
from sfumato.data.suggest import Suggestion, spelled, suggest_all
from sfumato.errors import InputError, counted, nearest, shortened
from sfumato.hierarchies.build import default_widths
from sfumato.tables.domain import KEYED

WORK = 300_000_000  # most rows times pairs that are counted
LEAST_ROWS, MOST_ROWS = 2_000, 1_000_000
BEAM = 12  # pairs that are extended to three columns
SHOWN = 3  # sets of each size
ALONE = 0.5  # a column that singles out this share alone is in no larger set, where it would show nothing new

Sets = dict[tuple[int, ...], int]  # the number of records that the columns at some positions single out


@dataclass(frozen=True)
class Combination:
    """Columns, and the share of records whose values in these columns no other record has."""

    columns: tuple[str, ...]
    unique: float


def sets_that_single_out(
    engine: Engine, source: Source, names: Sequence[str], rows: int
) -> tuple[tuple[Combination, ...], int]:
    """Return the sets of up to three columns that single out most records, by size, and the rows that were searched.

    The table `profiled` has the columns of the source as clean text.
    """
    if not names or rows < 2:
        return (), rows
    step = _step(len(names), rows)
    codes = _codes(engine, source, names, step)
    sets = []
    for places in _chosen(codes):
        columns = tuple(names[column] for column in places)
        cells = [source.column(name).sql for name in columns]
        share = uniqueness_of(engine, cells, "profiled").unique_share if step > 1 else _share(codes, places)
        sets.append(Combination(columns, share))
    return tuple(sorted(sets, key=lambda one: (len(one.columns), -one.unique, one.columns))), codes.shape[1]


def _step(columns: int, rows: int) -> int:
    """Return the sampling interval: with every n-th row, all pairs of columns can be counted in time."""
    pairs = max(columns * (columns - 1) // 2, 1)
    return -(-rows // min(max(WORK // pairs, LEAST_ROWS), MOST_ROWS))


def best_sets(codes: Counts64) -> list[tuple[tuple[int, ...], float]]:
    """Return the sets of up to three columns that single out most records, each with its share of the records.

    `codes` are by column and row. Of very many rows only every n-th is used.

    >>> best_sets(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]))[-1]
    ((0, 1), 1.0)
    """
    if not codes.size:
        return []
    some = codes[:, :: _step(*codes.shape)]
    return [(places, _share(some, places)) for places in _chosen(some)]


def _codes(engine: Engine, source: Source, names: Sequence[str], step: int) -> Counts64:
    """Return the values of each column as numbers, for every `step`-th row."""
    cells = (f"coalesce({source.column(name).sql}, '')" for name in names)
    hashed = ", ".join(f"{engine.hashed([cell])} AS h{position}" for position, cell in enumerate(cells))
    rows = engine.arrays(f"SELECT {hashed} FROM profiled WHERE r % {step} = 0")
    return np.stack([np.unique(np.asarray(rows[f"h{i}"]), return_inverse=True)[1] for i in range(len(names))])


def _chosen(codes: Counts64) -> list[tuple[int, ...]]:
    """Return the best sets of one, two and three columns, as positions."""
    alone: Sets = {(column,): _unique(codes[column]) for column in range(len(codes))}
    rest = [column for column in range(len(codes)) if alone[(column,)] < ALONE * codes.shape[1]]
    widths = [int(codes[column].max()) + 1 for column in range(len(codes))]
    two: Sets = {(a, b): _unique(codes[a] * widths[b] + codes[b]) for a, b in combinations(rest, 2)}
    three: Sets = {}
    for pair in _best(two, BEAM):
        joined = np.unique(codes[pair[0]] * widths[pair[1]] + codes[pair[1]], return_inverse=True)[1]
        for column in rest:
            triple = tuple(sorted({*pair, column}))
            if len(triple) == 3 and triple not in three:
                three[triple] = _unique(joined * widths[column] + codes[column])
    return [*_best(alone, SHOWN), *_best(two, SHOWN), *_best(three, SHOWN)]


def _best(unique: Sets, limit: int) -> list[tuple[int, ...]]:
    return sorted(unique, key=lambda places: (-unique[places], places))[:limit]


def _share(codes: Counts64, places: Sequence[int]) -> float:
    key = np.zeros(codes.shape[1], dtype=np.int64)
    for column in places:
        key = np.unique(key * (int(codes[column].max()) + 1) + codes[column], return_inverse=True)[1]
    return _unique(key) / int(codes.shape[1])


def _unique(key: Counts64) -> int:
    """Return how many numbers occur once."""
    top = int(key.max()) + 1
    if top <= 4 * len(key):
        return int(np.count_nonzero(np.bincount(key, minlength=top) == 1))
    return int(np.count_nonzero(np.unique(key, return_counts=True)[1] == 1))


def first_run_file(found: Inspection, path: str, password_file: str | None, codebook: str | None) -> str:
    """Return the text of a run file. A column without a suggestion has no role, so no command runs until it has one."""
    source, rows, undecided = found.source, found.rows, len(found.undecided)
    head = ["A first run file. The roles are suggestions: check each line and correct it where needed."]
    if undecided:
        head.append(
            f"{counted(undecided, 'column')} {'has' if undecided == 1 else 'have'} no role yet: nothing runs until "
            "each has one. Remove the # and write a role."
        )
    rule = Noted(
        "category",
        f'category | drop | wildcard; "drop" would leave out {rows - found.complete:,} of {rows:,} rows',
        _candidates(found.missing_candidates, found.missing_costs),
    )
    declared = [n for n in source.names if (about := source.codebook.column(n)).missing or about.ranges]
    applied = f"The codebook declares missing codes for {shortened(map(_shown, declared))}: they are applied."
    na = Noted(found.na_words, "codes for missing values, in addition to empty cells", [applied] if declared else [])
    columns = {column.name: _column(column, suggestion) for column, suggestion in found.described}
    settings = {
        "version": 1,
        "data": _data(source, path, password_file, codebook) | {"na": na, "missing": rule},
        "columns": Noted(columns, above=[f"Roles: {', '.join(Role)}."]),
    }
    return toml_text(settings, head)


def _data(source: Source, path: str, password_file: str | None, codebook: str | None) -> dict[str, object]:
    """Return the first part of the section [data]: all settings that reading the table needs, with none to detect."""
    asked = {"path": path, "table": source.settings.table, "query": source.settings.query}
    settings: dict[str, object] = _given(asked | {"password_file": password_file})
    dialect = source.dialect
    if dialect is not None:
        settings["separator"] = dialect.separator
        if source.settings.quote is not None:
            settings["quote"] = dialect.quote
        if dialect.decimal == "," or source.settings.decimal is not None:
            settings["decimal"] = dialect.decimal
        if dialect.encoding != "utf-8":
            settings["encoding"] = Noted(dialect.encoding, "detected; check that letters such as é and ß look right")
        if not dialect.header:
            settings["header"] = False
    settings |= _given({"sheet": source.settings.sheet, "header_row": source.settings.header_row, "codebook": codebook})
    if source.settings.names is not None or (dialect is not None and not dialect.header):
        settings["names"] = Noted(list(source.names), "change them to your own")
    return settings


def _given(settings: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in settings.items() if value is not None}


def _candidates(candidates: Mapping[str, Sequence[str]], costs: Mapping[str, MissingCost]) -> list[str]:
    """Return the values that may mean missing as comments. `na` is for every column, so a code is never entered."""
    if not candidates:
        return []
    said = "These may also be codes for missing values; a value listed in na is missing in every column of the table:"
    lines = [said]
    for word, names in candidates.items():
        lines.append(f"  {toml_value(word)} in {shortened(map(_shown, names))}")
        if word in costs:
            lines += [f"    {rule}: {says}" for rule, says in costs[word].sentences().items()]
    return lines


def _column(column: ColumnProfile, suggestion: Suggestion) -> Noted:
    label = f"{_shown(column.label)}: " if column.label else ""
    about = f"{label}{suggestion.reason}; {_seen(column)}"
    tree = recipe(column)
    if suggestion.role is None:
        about += f"; as a quasi_identifier: hierarchy = {toml_value(tree)}"
        return Noted({"role": ""}, about, active=False)
    own = {"hierarchy": tree} if suggestion.role is Role.QUASI_IDENTIFIER else {}
    return Noted({"role": str(suggestion.role)} | own, about)


def _seen(column: ColumnProfile) -> str:
    missing = f", {column.missing:,} missing" if column.missing else ""
    return f"{counted(column.distinct, 'value')}{missing}"


def _shown(name: str) -> str:
    """Return a name for a comment, always on one line."""
    return name if name.isprintable() else toml_value(name)


def recipe(column: ColumnProfile) -> dict[str, object]:
    """Return a first hierarchy for a column."""
    if column.kind == "date":
        return {"build": "date"}
    if re.search(r"\b(zip\w*|postal|postcode|plz)\b", spelled(column.name)):
        return {"build": "prefix"}
    if column.kind in ("whole", "number") and column.distinct > 20 and column.lowest is not None and column.typical:
        if (column.highest or 0.0) - column.lowest > 4 * (column.typical[1] - column.typical[0]):
            return {"build": "quantile"}  # equal widths would leave most records in one interval
        widths = default_widths([column.lowest, column.highest or column.lowest])
        return {"build": "interval", "widths": [int(width) if width == int(width) else width for width in widths]}
    return {"build": "frequency" if column.distinct > 20 else "flat"}


@dataclass(frozen=True, repr=False)
class Inspection:
    """The result of an inspection.

    `everything` is the uniqueness of records over all columns that may be released, which are all except suggested
    identifiers and columns to leave out. The `combinations` were searched in `rows_searched` rows, and their figures
    are of all rows. The `complete` rows have no missing value in a column that may be measured. For each value that may
    mean missing, `missing_costs` has the cost of each rule. Columns that number persons or households and repeat are
    `repeating`. If a column is suggested as the number of persons, `persons` is `everything` in persons.
    """

    source: Source
    columns: tuple[ColumnProfile, ...]
    suggestions: tuple[Suggestion, ...]
    combinations: tuple[Combination, ...]
    rows_searched: int
    everything: Uniqueness
    complete: int
    missing_costs: Mapping[str, MissingCost] = field(default_factory=dict)
    repeating: tuple[Repeating, ...] = ()
    persons: Uniqueness | None = None

    def __repr__(self) -> str:
        columns = counted(len(self.columns), "column")
        return f"<Inspection of {self.source.title}: {counted(self.rows, 'record')}, {columns}>"

    @property
    def rows(self) -> int:
        return self.columns[0].rows

    @property
    def undecided(self) -> list[str]:
        """Return the columns without a suggested role. No command runs until each has one."""
        return [column.name for column, suggestion in self.described if suggestion.role is None]

    @property
    def described(self) -> list[tuple[ColumnProfile, Suggestion]]:
        """Return each column with its suggestion."""
        return list(zip(self.columns, self.suggestions, strict=True))

    @property
    def na_words(self) -> list[str]:
        """Return the values that nearly always mean missing: declared ones, and usual words that occur."""
        return sorted({word for column in self.columns for word in column.na_words} | set(self.source.settings.na))

    @property
    def missing_candidates(self) -> dict[str, list[str]]:
        """Return the values that may mean missing, with their columns. A value in `na` means it in every column."""
        candidates: dict[str, list[str]] = {}
        for column, suggestion in self.described:
            for word in column.candidates if suggestion is not LEFT_OUT else ():
                candidates.setdefault(word, []).append(column.name)
        return candidates

    def as_dict(self) -> dict[str, object]:
        """Return the inspection as values of JSON.

        Returns:
            The inspection as `sfumato inspect --json` prints it.
        """
        return {
            "rows": self.rows,
            "columns": {column.name: column.as_dict() | suggested.as_dict() for column, suggested in self.described},
            "undecided": self.undecided,
            "missing_codes": {word: cost.as_dict() for word, cost in self.missing_costs.items()},
            "repeating": [each.as_dict() for each in self.repeating],
            "combinations": [{"columns": list(c.columns), "unique": c.unique} for c in self.combinations],
            "combinations_searched_in_rows": self.rows_searched,
            "all_columns": self.everything.as_dict(),
            **({} if self.persons is None else {"all_columns_in_persons": self.persons.as_dict()}),
        }

    def run_file(self, path: str, password_file: str | None = None, codebook: str | None = None) -> str:
        """Return a first run file, which refers to files by `path`, `password_file` and `codebook`.

        Args:
            path: how the run file calls the table.
            password_file: how it calls the file with the password of a database.
            codebook: how it calls the codebook.

        Returns:
            The text of a run file, with every suggestion and its reason.
        """
        return first_run_file(self, path, password_file, codebook)


LEFT_OUT = Suggestion(Role.DROP, "not among the columns to keep")


def inspect(
    table: Any, /, options: EngineOptions | None = None, keep: Sequence[str] | None = None, **settings: Any
) -> Inspection:
    """Profile a table, suggest roles, and find the small sets of columns that single out most records.

    Encoding and header are detected unless they are given.

    Args:
        table: the path of a file, the address of a database, or a table in memory.
        options: memory limit and threads of the engine.
        keep: the columns that the release is about, where they are few of many: the others are to be left out.
        **settings: settings of `[data]` by name, where they cannot be detected.

    Returns:
        The inspection: columns, suggested roles, and sets of columns that single out records.
    """
    if is_frame(table):
        source = open_source(DataSettings.checked(path=IN_MEMORY, **settings), frame=Frame(table))
    else:
        detected = {"encoding": "auto", "header": "auto"} | settings
        source = open_source(DataSettings.checked(path=str(table), **detected))
    with open_engine("duckdb", options) as engine:
        columns = profile(engine, source)
        suggested = suggest_all(columns)
        found = repeating_in(engine, source, columns, suggested)
        suggestions = with_holders(_kept(suggested, columns, keep), columns, found)
        described = list(zip(columns, suggestions, strict=True))
        leaving = [column.name for column, one in described if one.role is None or one.role.released]
        combinations, searched = sets_that_single_out(engine, source, leaving, columns[0].rows)
        cells = [source.column(name).sql for name in leaving]
        numbers = [source.column(column.name).sql for column, one in described if one.role is Role.UNIT]
        measured = [column.name for column, one in described if one.role is None or one.role.measured]
        keyed = [column.name for column, one in described if one.role is None or one.role in KEYED]
        words = sorted({word for column in columns for word in column.na_words} | set(source.settings.na))
        candidates = {word for column, one in described if one is not LEFT_OUT for word in column.candidates}
        return Inspection(
            source=source,
            columns=tuple(columns),
            suggestions=tuple(suggestions),
            combinations=combinations,
            rows_searched=searched,
            everything=uniqueness_of(engine, cells, "profiled"),
            persons=uniqueness_in_units(engine, cells, "profiled", numbers[0]) if numbers else None,
            complete=complete_rows(engine, source, measured, words),
            missing_costs=missing_costs(engine, source, sorted(candidates), keyed, words),
            repeating=tuple(found),
        )


def repeating_in(
    engine: Engine, source: Source, columns: Sequence[ColumnProfile], suggestions: Sequence[Suggestion]
) -> list[Repeating]:
    """Return the columns of a profiled table that number persons or households and repeat, by suggested roles."""
    roles = {column.name: one.role for column, one in zip(columns, suggestions, strict=True)}
    return repeating(engine, source, roles, "profiled", {column.name: column.sql for column in source.columns})


def _kept(
    suggestions: Sequence[Suggestion], columns: Sequence[ColumnProfile], keep: Sequence[str] | None
) -> list[Suggestion]:
    """Return the suggestions, in which columns that are not to be kept are left out."""
    if keep is None:
        return list(suggestions)
    names = [column.name for column in columns]
    wanted = [name for name in ([keep] if isinstance(keep, str) else keep) if name]
    if not wanted:
        raise InputError(
            "no columns to keep", expected="names of columns of the table", remedy=f'keep = ["{names[0]}"]'
        )
    if unknown := [name for name in wanted if name not in names]:
        raise InputError(
            f"no column {shortened(unknown)}", expected="columns of the table", remedy=nearest(unknown[0], names)
        )
    return [one if name in wanted else LEFT_OUT for name, one in zip(names, suggestions, strict=True)]
