"""Columns that number persons or households and repeat, in a study that does not say whether a row is a person."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.base.progress import stage
from sfumato.data.cells import cleaned
from sfumato.data.engine import Engine, open_engine
from sfumato.data.repeating import JOINED, Repeating, candidates, number_named, repeating
from sfumato.data.settings import Role
from sfumato.data.source import Source
from sfumato.data.value_counts import refuse_spellings
from sfumato.study import Study
from sfumato.study.declaration import Declaration

RAW = "raw"


def unstated(study: Study, source: Source | None = None) -> list[Repeating]:
    """Return the columns whose values repeat like numbers of persons or households, unless the study explains them.

    A declared unit that repeats explains them, and so does `unit = "row"`. A unit with a different value in every row
    only claims that rows are persons, without a reason. A declared household explains all columns that are constant
    within households, and so does the swapped unit under [groups]. A column with several values in one household may
    still be the number of a person.
    """
    if study.data.unit == "row":
        return []
    if study.channel.prior == study.data.path:  # the file has shares of categories, not rows
        return []
    roles = {name: column.role for name, column in study.columns.items()}
    source = source or study.opened()
    # Some methods need no role for columns that are not released. A number of persons among these counts too.
    roles |= {name: Role.DROP for name in source.names if name not in roles and number_named(name) is not None}
    if not candidates(roles):
        return []
    moving = None if study.groups is None else study.groups.unit
    roles = {name: role for name, role in roles.items() if name in source.names}
    household = [name for name in (*study.named(Role.HOUSEHOLD), moving) if name in source.names]
    with stage("look for numbers of persons"), open_engine(study.engine, study.engine_options) as engine:
        engine.attach(source, RAW)
        if any(_repeats(engine, source, name) for name in study.named(Role.UNIT)):
            return []
        found = [each for each in repeating(engine, source, roles, RAW) if each.column not in household]
        return [each for each in found if not household or _finer(engine, source, each.column, household[0])]


def _repeats(engine: Engine, source: Source, column: str) -> bool:
    """Return whether some rows of a table have the same value of a column."""
    cell = cleaned(source, source.column(column))
    values, rows = engine.rows(f"SELECT count(DISTINCT {cell}), count({cell}) FROM {RAW}")[0]
    return int(values) < int(rows)


def _finer(engine: Engine, source: Source, column: str, household: str) -> bool:
    """Return whether some household has several values of a column."""
    names = [name for name in source.names if name in column.split(JOINED)] if JOINED in column else [column]
    whose = cleaned(source, source.column(household))
    values = ", ".join(f"{cleaned(source, source.column(name))} AS v{place}" for place, name in enumerate(names))
    pairs = f"SELECT DISTINCT {whose} AS h, {values} FROM {RAW}"
    there = " AND ".join(f"v{place} IS NOT NULL" for place in range(len(names)))
    both, households = engine.rows(f"SELECT count(*), count(DISTINCT h) FROM ({pairs}) AS p WHERE {there}")[0]
    return int(both) > int(households)


def refuse_several_spellings(study: Study, source: Source) -> None:
    """Raise if values of a declared unit or household are written in several ways in a table."""
    holders = [(role, name) for role in (Role.UNIT, Role.HOUSEHOLD) for name in study.named(role)]
    present = [(role, name) for role, name in holders if name in source.names]
    if not present:
        return
    with open_engine(study.engine, study.engine_options) as engine:
        engine.attach(source, RAW)
        for role, name in present:
            refuse_spellings(engine, cleaned(source, source.column(name)), RAW, name, str(role))


def what_to_declare(found: Sequence[Repeating]) -> str:
    """Return what the publisher has to declare in the run file if it does not say whether a row is a person."""
    named = next((each for each in found if JOINED not in each.column), None)
    column = named.column if named is not None else "the column that numbers persons"
    role = named.holder if named is not None else Role.UNIT
    return (
        f'role = "{role}" for {column} under [columns]; or, if every row is a person of its own, unit = "row" and '
        "unit_reason under [data]"
    )


def unstated_notes(study: Study, source: Source | None = None) -> list[str]:
    """Return the notes of an audit or a search on such columns: nothing is published until they are declared."""
    found = unstated(study, source)
    if not found:
        return []
    seen = " ".join(each.sentence for each in found)
    return [
        f"{seen} All figures count rows; nothing is published until it is declared whose: {what_to_declare(found)}."
    ]


def counted_as(study: Declaration) -> dict[str, str]:
    """Return what the figures of a study count: a noun, a sentence for readers, and the publisher's reason if any.

    >>> counted_as(Declaration(data={"path": "a.csv"}))
    {'noun': 'record', 'says': 'All figures count records.'}
    """
    reason = {} if study.data.unit_reason is None else {"reason": study.data.unit_reason}
    if study.data.unit == "row":
        return {"noun": "record", "says": "All figures count records: rows are counted as persons."} | reason
    if study.named(Role.UNIT):
        return {"noun": "person", "says": "Groups are counted in persons: a person may have several records."}
    if study.named(Role.HOUSEHOLD):
        return {"noun": "record", "says": "Figures count records, or households where they say so."}
    return {"noun": "record", "says": "All figures count records."}
