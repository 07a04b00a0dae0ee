"""Compression of a source to its frequency table, by one scan of the records with the same SQL on every engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.base.arrays import Codes, Counts64
from sfumato.base.progress import stage
from sfumato.data.cells import MISSING, cleaned, numeric
from sfumato.data.engine import Engine
from sfumato.data.settings import Missing, Role
from sfumato.data.source import Arrays, Source, quoted
from sfumato.data.value_counts import cell_sql, first_row, refuse_spellings
from sfumato.errors import DataError, HierarchyError, StudyError, counted, shortened
from sfumato.hierarchies.hierarchy import Hierarchy
from sfumato.tables.domain import KEYED, Builder, Domain, UncoveredError, domain_of, present
from sfumato.tables.frequency import FrequencyTable, Population, ValueCounts, value_counts
from sfumato.tables.units import Kind, Units, units_from


@dataclass(frozen=True)
class Use:
    """Use of a column in a frequency table: its role, its missing rule and its hierarchy."""

    name: str
    role: Role
    missing: Missing = "category"
    hierarchy: Hierarchy | Builder | None = None
    distance: str | None = None
    order: Sequence[str] | None = None
    along_tree: bool = False
    harmless: Sequence[str] = ()


def compress(engine: Engine, source: Source, uses: Sequence[Use], population: Source | None = None) -> FrequencyTable:
    """Return the distinct tuples of the quasi-identifiers with counts, and counts of sensitive values and labels.

    Columns whose role takes no part in measuring may be among `uses`; they are passed over.
    """
    keyed = [use for role in KEYED for use in uses if use.role is role]  # the quasi-identifiers come first
    weight = next((use for use in uses if use.role is Role.WEIGHT), None)
    holders = {kind: use.name for kind, role in HOLDERS.items() for use in uses if use.role is role}
    if not any(use.role is Role.QUASI_IDENTIFIER for use in keyed):
        raise StudyError(
            "no column is a quasi_identifier",
            expected="at least one column that outsiders may know",
            remedy='role = "quasi_identifier" for columns such as age, sex or postcode',
        )
    with stage("count distinct rows"):
        read, kept = _group(engine, source, keyed, weight, holders)
    if kept < 2:
        raise _too_few(source, keyed, read, kept)
    with stage("fingerprint"):
        fingerprint = source.fingerprint
    with stage("encode"):
        others = _population_labels(engine, population, keyed) if population else {}
        domains = [
            _domain(engine, source, position, use, others.get(use.name, ())) for position, use in enumerate(keyed)
        ]
        _encode(engine, domains, weighted=weight is not None, holders=holders)
        table = _table(engine, keyed, domains, weighted=weight is not None)
        return replace(
            _with_units(engine, table, keyed, holders),
            population=_population(engine, len(table.domains)) if population else None,
            rows_read=read,
            left_out=read - kept + source.settings.left_out,
            removed=source.settings.removed,
            fingerprint=fingerprint,
        )


HOLDERS: dict[Kind, Role] = {"unit": Role.UNIT, "household": Role.HOUSEHOLD}


def _group(
    engine: Engine, source: Source, keyed: Sequence[Use], weight: Use | None, holders: Mapping[Kind, str]
) -> tuple[int, int]:
    """Group the raw rows by every column at once (their only scan), then leave out what the missing rule drops."""
    engine.attach(source, "raw")
    cells = [f"{cleaned(source, source.column(use.name))} AS k{i}" for i, use in enumerate(keyed)]
    keys = ", ".join(f"k{i}" for i in range(len(keyed)))
    sums = "count(*) AS n"
    for kind, name in holders.items():
        cells.append(f"{cleaned(source, source.column(name))} AS {kind}_text")
        keys += f", {kind}_text"
    if weight is not None:
        # Exact decimals: a sum of floats would depend on the order the threads finish in.
        cells.append(f"{numeric(source, cleaned(source, source.column(weight.name)), 'DECIMAL(28, 6)')} AS w")
        sums += ", sum(w) AS w, count(w) AS weighed, min(w) AS least"
    texts = f"SELECT {', '.join(cells)} FROM raw"
    engine.run(f"CREATE OR REPLACE TEMP TABLE cells AS SELECT {keys}, {sums} FROM ({texts}) AS r GROUP BY {keys}")
    complete = present(f"k{i}" for i, use in enumerate(keyed) if use.missing == "drop")
    full = ", ".join(f"coalesce(k{i}, {quoted(MISSING)}) AS k{i}" for i in range(len(keyed)))
    columns = ", ".join(["n", *(["w"] if weight is not None else []), *(f"{kind}_text" for kind in holders)])
    if holders:
        _check_holders(engine, holders)
    engine.run(f"CREATE OR REPLACE TEMP VIEW kept AS SELECT {full}, {columns} FROM cells WHERE {complete}")
    if weight is not None:
        _check_weights(engine, weight.name, complete)
    return _total(engine, "cells"), _total(engine, "kept")


def _total(engine: Engine, table: str) -> int:
    """Return the number of rows in a table of tuples with their counts."""
    return int(engine.rows(f"SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM {table}")[0][0])


def _check_holders(engine: Engine, holders: Mapping[Kind, str]) -> None:
    """Check that every row has a person, and every person one household."""
    for kind, name in holders.items():
        without = _total(engine, f"cells WHERE {kind}_text IS NULL")
        if without:
            raise DataError(
                f"{without:,} rows have no value in {name}, the {kind} column",
                expected=f"the number of a {kind} in every row",
                remedy="complete the column, or leave these rows out of the table",
            )
        refuse_spellings(engine, f"{kind}_text", "cells", name, kind)
    if len(holders) == len(HOLDERS):
        several = "SELECT sum(n) AS n FROM cells GROUP BY unit_text HAVING min(household_text) <> max(household_text)"
        rows = _total(engine, f"({several}) AS t")
        if rows:
            raise DataError(
                f"{rows:,} rows belong to units of {holders['unit']} "
                f"that are in two or more households of {holders['household']}",
                expected="one household for every unit",
                remedy="correct the numbers, or exchange the roles unit and household if persons and households are "
                "the wrong way round",
            )


def _check_weights(engine: Engine, name: str, complete: str) -> None:
    unweighed, least = engine.rows(f"SELECT CAST(sum(n - weighed) AS BIGINT), min(least) FROM cells WHERE {complete}")[
        0
    ]
    if unweighed or (least is not None and least < 0):
        wrong = f"{counted(unweighed, 'row has', 'rows have')} no number" if unweighed else "there are negative values"
        raise DataError(
            f"the weight column {name} cannot be used: {wrong}",
            expected="a number from 0 in every row",
            remedy='correct it, or set decimal = "," or role = "drop"',
        )


def _too_few(source: Source, keyed: Sequence[Use], read: int, kept: int) -> DataError:
    if read == 0:
        return DataError(f"{source.title} has no rows", expected="a table with rows")
    if kept == 0:
        return DataError(
            f"all {read} rows have a missing value and are dropped",
            expected="rows that are complete in " + shortened(use.name for use in keyed),
            remedy='missing = "category" under [data], or give a column that is mostly empty another role',
        )
    return DataError(
        f"the table has one row{'' if read == 1 else ' that is complete'}",
        expected="at least two records: a person alone in a table cannot be hidden",
    )


def _domain(engine: Engine, source: Source, position: int, use: Use, others: Sequence[str]) -> Domain:
    counts = engine.rows(
        f"SELECT k{position}, CAST(sum(n) AS BIGINT) FROM kept GROUP BY k{position} ORDER BY k{position}"
    )
    observed = dict.fromkeys(others, 0) | {str(label): int(count) for label, count in counts}
    settings = source.settings
    try:
        domain = domain_of(
            use.name,
            observed,
            use.hierarchy,
            missing=use.missing,
            na=settings.na,
            decimal=source.decimal,
            distance=use.distance,
            order=use.order,
            along_tree=use.along_tree,
        )
        harmless = tuple(code for code, label in enumerate(domain.labels) if label in use.harmless)
        return replace(domain, value_labels=source.codebook.column(use.name).values, harmless=harmless)
    except UncoveredError as error:
        row = first_row(engine, source, [use.name], [(label,) for label in error.labels])
        if use.role is Role.SENSITIVE:
            raise secret_hierarchy(use.name, len(error.labels), row) from None
        raise UncoveredError(use.name, error.labels, row) from None
    except HierarchyError:
        if use.role is Role.SENSITIVE:
            raise secret_hierarchy(use.name) from None
        raise


def secret_hierarchy(name: str, count: int | None = None, row: int | None = None) -> HierarchyError:
    """Return an error about the values of a sensitive column, without the values."""
    where = f"; the first is in row {row}" if row else ""
    what = f"lacks {counted(count, 'value')} of the data{where}" if count else "cannot be used"
    return HierarchyError(
        f"the hierarchy of {name} {what}",
        expected="a hierarchy that covers the column",
        remedy="look at it with the data at hand; its values are sensitive and are not shown here",
    )


def _encode(engine: Engine, domains: Sequence[Domain], weighted: bool, holders: Iterable[Kind] = ()) -> None:
    """Make the table `coded` of the kept rows with a code for every label and every person or household."""
    for position, domain in enumerate(domains):
        labels = [MISSING if code == domain.missing else label for code, label in enumerate(domain.labels)]
        engine.upload(f"domain{position}", {"label": labels, "code": np.arange(len(labels), dtype=np.int32)})
    codes, joins = _codes_from("kept", len(domains))
    for kind in holders:
        engine.run(
            f"CREATE OR REPLACE TEMP TABLE {kind}_codes AS SELECT t.label AS label, "
            "CAST(row_number() OVER (ORDER BY t.label) - 1 AS INTEGER) AS code "
            f"FROM (SELECT DISTINCT {kind}_text AS label FROM kept) AS t"
        )
        codes += f", {kind}_codes.code AS {kind}_code"
        joins += f" JOIN {kind}_codes ON kept.{kind}_text = {kind}_codes.label"
    weight = ", w" if weighted else ""
    engine.run(f"CREATE OR REPLACE TEMP TABLE coded AS SELECT {codes}, n{weight} FROM kept {joins}")


def _codes_from(table: str, columns: int) -> tuple[str, str]:
    """Return the codes q0, q1, … of the labels k0, k1, … of a table as SQL, and the joins that find them."""
    codes = ", ".join(f"d{i}.code AS q{i}" for i in range(columns))
    return codes, " ".join(f"JOIN domain{i} AS d{i} ON {table}.k{i} = d{i}.label" for i in range(columns))


def _grouped(engine: Engine, width: int, *further: str, weighted: bool = False) -> tuple[Arrays, Counts64]:
    """Return the coded rows by tuple and by further columns, with counts and in order, and the tuple of each."""
    keys = ", ".join([*(f"q{position}" for position in range(width)), *further])
    weight = ", CAST(sum(w) AS DOUBLE) AS w" if weighted else ""
    arrays = engine.arrays(
        f"SELECT {keys}, CAST(sum(n) AS BIGINT) AS n{weight} FROM coded GROUP BY {keys} ORDER BY {keys}"
    )
    new = np.zeros(len(arrays["n"]), dtype=np.int64)
    for position in range(width):
        new[1:] |= arrays[f"q{position}"][1:] != arrays[f"q{position}"][:-1]
    return arrays, np.cumsum(new)


def _table(engine: Engine, keyed: Sequence[Use], domains: Sequence[Domain], weighted: bool) -> FrequencyTable:
    width = sum(use.role is Role.QUASI_IDENTIFIER for use in keyed)
    arrays, tuple_of = _grouped(engine, width, weighted=weighted)
    values: dict[Role, dict[str, ValueCounts]] = {Role.SENSITIVE: {}, Role.LABEL: {}}
    for position in range(width, len(keyed)):
        entries, entry_of = _grouped(engine, width, f"q{position}")  # in the order of the tuples already
        counts = value_counts(domains[position], entry_of, entries[f"q{position}"], entries["n"], len(tuple_of))
        values[keyed[position].role][keyed[position].name] = counts
    return FrequencyTable(
        tuple(domains[:width]),
        np.stack([arrays[f"q{position}"].astype(np.int32) for position in range(width)]),
        arrays["n"].astype(np.int64),
        values[Role.SENSITIVE],
        next(iter(values[Role.LABEL].values()), None),
        weights=arrays["w"].astype(np.float64) if weighted else None,
    )


def _with_units(engine: Engine, table: FrequencyTable, keyed: Sequence[Use], holders: Iterable[Kind]) -> FrequencyTable:
    """Return the table with the persons and households that its rows belong to."""
    secrets = {use.name: position for position, use in enumerate(keyed) if use.role is Role.SENSITIVE}
    units = {kind: _units(engine, kind, table, secrets) for kind in holders}
    person = units.get("unit")
    household_of: Codes | None = None
    if len(units) == len(HOLDERS):
        pairs = engine.arrays("SELECT DISTINCT unit_code, household_code FROM coded ORDER BY unit_code")
        household_of = pairs["household_code"].astype(np.int32)
    return replace(
        table,
        units=None if person is None or person.number == table.rows else person,
        households=units.get("household"),
        household_of=household_of,
    )


def _units(engine: Engine, kind: Kind, table: FrequencyTable, secrets: Mapping[str, int]) -> Units:
    """Return the units of a kind: which tuples their rows are in, and with which sensitive values."""
    columns = {name: f"q{position}" for name, position in secrets.items()}
    arrays, tuple_of = _grouped(engine, len(table.domains), f"{kind}_code", *columns.values())
    values = {name: arrays[column].astype(np.int32) for name, column in columns.items()}
    unit = arrays[f"{kind}_code"].astype(np.int32)
    return units_from(kind, table.tuples, tuple_of, unit, arrays["n"].astype(np.int64), values)


def _population_labels(engine: Engine, population: Source, keyed: Sequence[Use]) -> Mapping[str, list[str]]:
    """Group the population by the same quasi-identifiers, and return the labels it has for each."""
    uses = [use for use in keyed if use.role is Role.QUASI_IDENTIFIER]
    absent = [use.name for use in uses if use.name not in population.names]
    if absent:
        raise DataError(
            f"the population table lacks the columns {shortened(absent)}",
            expected="every quasi-identifier of the table",
        )
    engine.attach(population, "people")
    cells = ", ".join(f"{cell_sql(population, use.name)} AS k{i}" for i, use in enumerate(uses))
    keys = ", ".join(f"k{i}" for i in range(len(uses)))
    texts = f"SELECT {cells} FROM people"
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE everyone AS SELECT {keys}, count(*) AS n FROM ({texts}) AS p GROUP BY {keys}"
    )
    return {
        use.name: [
            str(row[0]) for row in engine.rows(f"SELECT DISTINCT k{i} FROM everyone WHERE k{i} <> '' ORDER BY k{i}")
        ]
        for i, use in enumerate(uses)
    }


def _population(engine: Engine, columns: int) -> Population:
    codes, joins = _codes_from("everyone", columns)
    order = ", ".join(f"q{i}" for i in range(columns))
    arrays = engine.arrays(f"SELECT {codes}, CAST(n AS BIGINT) AS n FROM everyone {joins} ORDER BY {order}")
    return Population(
        np.stack([arrays[f"q{i}"].astype(np.int32) for i in range(columns)]), arrays["n"].astype(np.int64)
    )
