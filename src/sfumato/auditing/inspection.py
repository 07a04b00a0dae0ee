"""Look at a table nobody has declared anything about yet: its columns, and what singles its records out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.auditing.first_run_file import first_run_file
from sfumato.auditing.singling_out import Combination, sets_that_single_out
from sfumato.auditing.whole import Uniqueness, uniqueness_in_units, uniqueness_of
from sfumato.errors import InputError, counted, nearest, shortened
from sfumato.sources.address import IN_MEMORY
from sfumato.sources.engines.engine import Engine, open_engine
from sfumato.sources.frames import Frame, is_frame
from sfumato.sources.opening import open_source
from sfumato.sources.profile import ColumnProfile, MissingCost, complete_rows, missing_costs, profile
from sfumato.sources.repeating import Repeating, repeating
from sfumato.sources.roles import Role
from sfumato.sources.settings import DataSettings, EngineOptions
from sfumato.sources.source import Source
from sfumato.sources.suggest import Suggestion, suggest_all, with_holders
from sfumato.tables.missing import KEYED


@dataclass(frozen=True, repr=False)
class Inspection:
    """What a look at a table showed.

    `everything` is how unique its records are over all columns that may be released: all but those that are suggested
    as identifiers or to be left out. `rows_searched` is among how many rows `combinations` were looked for; their
    figures are of all rows. `complete` rows have no missing value in a column that may be measured. `missing_costs` say
    of each value that may mean missing what each rule would cost. `repeating` are the columns that number persons or
    households and repeat. `persons` is `everything` in persons, where a column is suggested as their number.
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
        """The columns that nothing is known about: nothing runs before each has a role."""
        return [c.name for c, s in zip(self.columns, self.suggestions, strict=True) if s.role is None]

    @property
    def na_words(self) -> list[str]:
        """What nearly always means missing: what was declared, and the usual words that occur."""
        return sorted({word for column in self.columns for word in column.na_words} | set(self.source.settings.na))

    @property
    def missing_candidates(self) -> dict[str, list[str]]:
        """What may mean missing, and in which columns. Declared in `na`, a value means missing in every column."""
        candidates: dict[str, list[str]] = {}
        for column, suggestion in zip(self.columns, self.suggestions, strict=True):
            for word in column.candidates if suggestion is not LEFT_OUT else ():
                candidates.setdefault(word, []).append(column.name)
        return candidates

    def as_dict(self) -> dict[str, Any]:
        """The inspection as JSON knows it.

        Returns:
            The inspection as `sfumato inspect --json` prints it.
        """
        described = zip(self.columns, self.suggestions, strict=True)
        return {
            "rows": self.rows,
            "columns": {column.name: column.as_dict() | suggestion.as_dict() for column, suggestion in described},
            "undecided": self.undecided,
            "missing_codes": {word: cost.as_dict() for word, cost in self.missing_costs.items()},
            "repeating": [each.as_dict() for each in self.repeating],
            "combinations": [{"columns": list(c.columns), "unique": c.unique} for c in self.combinations],
            "combinations_searched_in_rows": self.rows_searched,
            "all_columns": self.everything.as_dict(),
            **({} if self.persons is None else {"all_columns_in_persons": self.persons.as_dict()}),
        }

    def run_file(self, path: str, password_file: str | None = None, codebook: str | None = None) -> str:
        """A run file to start from; `path`, `password_file` and `codebook` are how it calls these files.

        Args:
            path: how the run file calls the table.
            password_file: how it calls the file with the password of a database.
            codebook: how it calls the codebook.

        Returns:
            The text of a run file, with every suggestion and its reason.
        """
        return first_run_file(
            self.source,
            list(zip(self.columns, self.suggestions, strict=True)),
            path=path,
            password_file=password_file,
            codebook=codebook,
            na=self.na_words,
            candidates=self.missing_candidates,
            costs=self.missing_costs,
            complete=self.complete,
        )


LEFT_OUT = Suggestion(Role.DROP, "not among the columns to keep")


def inspect(
    table: Any, /, options: EngineOptions | None = None, keep: Sequence[str] | None = None, **settings: Any
) -> Inspection:
    """Profile a table, suggest roles, and find the small sets of columns that single most records out.

    `table` is the path of a file, the address of a database, or a table in memory. `settings` are those of the [data]
    section; encoding and header are detected unless given.

    Args:
        table: the path of a file, the address of a database, or a table in memory.
        options: memory limit and threads of the engine.
        keep: the columns that the release is about, where they are few of many: the others are to be left out.
        **settings: settings of `[data]` by name, where they cannot be detected.

    Returns:
        What was seen: columns, suggested roles, sets of columns that single people out.
    """
    if is_frame(table):
        source = open_source(DataSettings.checked(path=IN_MEMORY, **settings), frame=Frame(table))
    else:
        source = open_source(
            DataSettings.checked(path=str(table), **({"encoding": "auto", "header": "auto"} | settings))
        )
    with open_engine("duckdb", options) as engine:
        columns = profile(engine, source)
        suggested = suggest_all(columns)
        found = repeating_in(engine, source, columns, suggested)
        suggestions = with_holders(_kept(suggested, columns, keep), columns, found)
        leaving = _leaving(columns, suggestions)
        singled = sets_that_single_out(engine, source, leaving, columns[0].rows)
        cells = [source.column(name).sql for name in leaving]
        everything = uniqueness_of(engine, cells, "profiled")
        numbers = [c.name for c, one in zip(columns, suggestions, strict=True) if one.role is Role.UNIT]
        unit = source.column(numbers[0]).sql if numbers else None
        persons = None if unit is None else uniqueness_in_units(engine, cells, "profiled", unit)
        measured = [c.name for c, s in zip(columns, suggestions, strict=True) if s.role is None or s.role.measured]
        words = {word for column in columns for word in column.na_words} | set(source.settings.na)
        complete = complete_rows(engine, source, measured, sorted(words))
        told = [column for column, suggestion in zip(columns, suggestions, strict=True) if suggestion is not LEFT_OUT]
        candidates = sorted({word for column in told for word in column.candidates})
        keyed = [c.name for c, s in zip(columns, suggestions, strict=True) if s.role is None or s.role in KEYED]
        costs = missing_costs(engine, source, candidates, keyed, sorted(words))
    return Inspection(
        source=source,
        columns=tuple(columns),
        suggestions=tuple(suggestions),
        combinations=singled.combinations,
        rows_searched=singled.rows_searched,
        everything=everything,
        complete=complete,
        missing_costs=costs,
        repeating=tuple(found),
        persons=persons,
    )


def repeating_in(
    engine: Engine, source: Source, columns: Sequence[ColumnProfile], suggestions: Sequence[Suggestion]
) -> list[Repeating]:
    """The columns of a profiled table that number persons or households and repeat, by the suggested roles."""
    roles = {column.name: one.role for column, one in zip(columns, suggestions, strict=True)}
    return repeating(engine, source, roles, "profiled", {column.name: column.sql for column in source.columns})


def _leaving(columns: Sequence[ColumnProfile], suggestions: Sequence[Suggestion]) -> list[str]:
    """The columns that may be released, as far as is known."""
    return [c.name for c, s in zip(columns, suggestions, strict=True) if s.role is None or s.role.released]


def _kept(
    suggestions: Sequence[Suggestion], columns: Sequence[ColumnProfile], keep: Sequence[str] | None
) -> list[Suggestion]:
    """The suggestions, but that what is not to be kept is left out."""
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
