"""What some rows suggest, counted by the engine on all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from sfumato.runtime.arrays import Codes
from sfumato.sources.engines.engine import Engine
from sfumato.sources.source import Source
from sfumato.tables.dependence.counts import FOUND, Guess, count_by_order, count_by_value, count_rare
from sfumato.tables.dependence.lines import count_on_line
from sfumato.tables.dependence.rows import Hashes, number_sql, signed
from sfumato.tables.dependence.search import Search, adds
from sfumato.tables.dependence.types import Candidate, Dependence, Kind, Protected


def unique_share(engine: Engine, index: int, total: int) -> float:
    """The share of rows whose value of a column no other row has; a missing one is no value."""
    counted = f"SELECT t{index} FROM searched WHERE t{index} <> '' GROUP BY t{index} HAVING count(*) = 1"
    return int(engine.rows(f"SELECT count(*) FROM ({counted}) AS t")[0][0]) / total


def upload_labels(engine: Engine, protected: Sequence[Protected]) -> dict[str, tuple[Hashes, list[Codes]]]:
    """The labels of generalized columns as tables `labels0`, … and as arrays in the order of the values' hashes."""
    labels = {}
    for index, column in enumerate(protected):
        if not column.steps:
            continue
        values = sorted(set().union(*column.steps))
        coded = {f"s{i + 1}": _coded([step.get(value) for value in values]) for i, step in enumerate(column.steps)}
        engine.upload(f"labels{index}", {"value": values, **coded})
        hashed = engine.arrays(f"SELECT {engine.hashed(['value'])} AS h, {', '.join(coded)} FROM labels{index}")
        hashes = signed(hashed["h"])
        order = np.argsort(hashes)
        labels[column.name] = hashes[order], [np.asarray(hashed[s])[order].astype(np.int32) for s in coded]
    return labels


def _coded(labels: Sequence[str | None]) -> Codes:
    codes: dict[str | None, int] = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int32)


def hold(engine: Engine, names: Sequence[str], wanted: Collection[str]) -> None:
    """The cells of some columns as a table: a view would read the file again for every count."""
    cells = ", ".join(["r", *(f"t{i}" for i, name in enumerate(names) if name in wanted)])
    engine.run(f"CREATE OR REPLACE TEMP TABLE held_cells AS SELECT {cells} FROM searched")


def confirm(engine: Engine, source: Source, search: Search, candidate: Candidate) -> Dependence | None:
    """The dependence, if all rows bear it out."""
    column, names, dates = candidate.protected, search.names, search.looks.dates
    target = f"t{names.index(column.name)}"
    given = [f"t{names.index(name)}" for name in candidate.kept]
    steps = [f"m.s{i + 1} AS s{i + 1}" for i in range(len(column.steps))]
    label = f"coalesce(m.s{len(column.steps)}, -1)" if steps else "0"
    joined = f" LEFT JOIN labels{search.protected.index(column)} AS m ON a.{target} = m.value" if steps else ""
    rows = f"SELECT {', '.join(['a.*', *steps, f'{label} AS g'])} FROM held_cells AS a{joined} WHERE a.{target} <> ''"
    if candidate.way == "finds":
        return _finds(engine, candidate, rows, given[0], target)
    number = number_sql(source, target, column.name in dates)
    numbers = [number_sql(source, cell, name in dates) for cell, name in zip(given, candidate.kept, strict=True)]
    if candidate.line is not None:
        guess = count_on_line(engine, rows, candidate.line, numbers, number, candidate.near)
    elif candidate.way == "follows":
        rows += f" AND a.{given[0]} <> ''"
        if candidate.by_order:
            guess = count_by_order(engine, rows, number, given[0], "g")
        else:
            guess = count_by_value(engine, rows, [target], given[0], "g")
    else:
        guessed = f"s{candidate.step}" if candidate.step else target
        if candidate.by_order:
            guess = count_by_order(engine, rows, numbers[0], guessed, "g")
        else:
            guess = count_by_value(engine, rows, given, guessed, "g")
    if not guess.tells() or (len(given) == 2 and not adds(guess.share, candidate.alone)):
        return None
    kind = _kind(engine, given, target) if _by_value(candidate) else _exact(guess, candidate)
    return Dependence(
        candidate.kept,
        column.name,
        column.status,
        candidate.way,
        kind,
        guess.share,
        guess.base_share,
        guess.rows,
        candidate.step,
    )


def _finds(engine: Engine, candidate: Candidate, rows: str, given: str, target: str) -> Dependence | None:
    column = candidate.protected
    there, hits = count_rare(engine, rows, given, target, column.rare or "")
    if hits <= FOUND * there:
        return None
    return Dependence(candidate.kept, column.name, column.status, "finds", "nearly", hits / there, 0.0, there)


def _by_value(candidate: Candidate) -> bool:
    return not candidate.by_order and candidate.line is None


def _exact(guess: Guess, candidate: Candidate) -> Kind:
    return "many_to_one" if guess.right == guess.rows and candidate.exact else "nearly"


def _kind(engine: Engine, given: Sequence[str], target: str) -> Kind:
    """Whether each side, or one side, follows from the other without exception."""
    keys = ", ".join(given)
    pairs = f"SELECT {keys}, {target} AS v FROM held_cells WHERE {target} <> '' GROUP BY {keys}, {target}"
    both, values = engine.rows(f"SELECT count(*), count(DISTINCT v) FROM ({pairs}) AS t")[0]
    sides = engine.rows(
        f"SELECT count(*) FROM (SELECT {keys} FROM held_cells WHERE {target} <> '' GROUP BY {keys}) AS t"
    )
    if both == values == sides[0][0]:
        return "one_to_one"
    return "many_to_one" if both in (values, sides[0][0]) else "nearly"
