"""Hierarchies: show, build, edit, import and save them, with the number of records under each label.

Which records of the raw table are at risk, and by which columns: rows with their classes, sets of columns.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing.inspect import best_sets
from sfumato.auditing.uniqueness import PERSON, holder_cells, uniqueness
from sfumato.base.json_types import Json
from sfumato.data.codebook import shown_values
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.profile import values_of
from sfumato.data.settings import Role
from sfumato.data.source import Source
from sfumato.errors import HierarchyError, InputError, counted, nearest
from sfumato.hierarchies import Hierarchy, load, save
from sfumato.hierarchies.hierarchy import edited
from sfumato.hierarchies.recipes import HierarchyFile, HierarchyPaths, builder
from sfumato.hierarchies.recipes import recipe as recipe_named
from sfumato.measures.classes import ClassTable, classify
from sfumato.plans.segments import segment_of
from sfumato.study import ColumnSettings, Study
from sfumato.tables.compress import secret_hierarchy
from sfumato.tables.domain import by_number, domain_of, in_order, leaf_values
from sfumato.tables.frequency import FrequencyTable
from sfumato.web.api.shelf import keep_study, refuse_stale, study_of, table_of, undecided_columns
from sfumato.web.workspace import Places, version_of

MOST_BARS = 120


def show(places: Places, study: str, column: str) -> Json:
    """Return the hierarchy that is declared for a column; without one, the values alone."""
    declared = study_of(places, study)
    tree = _column(declared, column).hierarchy
    if tree is None:
        return described_recipe(places, study, column, {"build": "flat"}) | {"declared": None}
    if isinstance(tree, str | HierarchyFile):
        file = HierarchyFile(path=tree) if isinstance(tree, str) else tree
        path = places.allowed(str((declared.folder / file.path).absolute()))
        hierarchy = load(path, name=column, header=file.header, separator=file.separator)
        return _described(declared, column, hierarchy) | {"declared": {"file": places.shown(path)}}
    if isinstance(tree, HierarchyPaths):
        own = Hierarchy.from_paths(column, tree.paths)
        return _described(declared, column, own) | {"declared": {"file": "the run file"}}
    given = tree.model_dump(mode="json", exclude_none=True)
    return described_recipe(places, study, column, given) | {"declared": given}


def described_recipe(places: Places, study: str, column: str, recipe: Json) -> Json:
    """Build what a recipe makes of a column. Nothing is saved."""
    declared = study_of(places, study)
    _column(declared, column)
    kind = str(recipe.get("build", ""))
    chosen = recipe_named(kind, {name: value for name, value in recipe.items() if name != "build"})
    counts, source = _values(declared, column)
    with_values = {value: count for value, count in counts.items() if value != "*"}
    labels = in_order(list(with_values), source.decimal)
    try:
        tree = builder(column, chosen, source.decimal)(labels, [with_values[label] for label in labels])
    except HierarchyError as error:
        raise _discreet(declared, column, error) from None
    return _described(declared, column, tree, counts)


def edit(places: Places, study: str, column: str, paths: list[list[str]], **change: Any) -> Json:
    """Return the paths after one change: rename, join, move, add_level, remove_level. Nothing is saved."""
    declared = study_of(places, study)
    _column(declared, column)
    tree = Hierarchy.from_paths(column, edited(column, paths, **change))
    return _described(declared, column, tree)


def imported(places: Places, study: str, column: str, text: str) -> Json:
    """Read and check the text of a hierarchy file of ARX, anjana or Sfumato. Nothing is saved."""
    declared = study_of(places, study)
    _column(declared, column)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hierarchy.csv"
        path.write_text(text, "utf-8")
        return _described(declared, column, load(path, name=column))


def keep(
    places: Places,
    study: str,
    column: str,
    version: str,
    recipe: Json | None = None,
    paths: list[list[str]] | None = None,
) -> Json:
    """Declare a hierarchy for a column: a recipe, or paths that are saved as a file of the study."""
    refuse_stale(places, study, version)
    declared = study_of(places, study)
    before = _column(declared, column)
    if (recipe is None) == (paths is None):
        raise InputError("a recipe or paths", expected="one of them")
    tree: Any = None
    if paths is not None:
        edited_tree = Hierarchy.from_paths(column, [tuple(map(str, path)) for path in paths])
        described = _described(declared, column, edited_tree)
        if not described["covers"]:
            raise HierarchyError(described["badge"], expected="a hierarchy of all values", remedy="add the values")
        folder = places.study(study) / "hierarchies"
        folder.mkdir(exist_ok=True)
        tree = str(_saved(edited_tree, folder, list(declared.columns).index(column)))
    elif recipe is not None:
        described = described_recipe(places, study, column, recipe)
        tree = recipe
    settings = ColumnSettings.checked(**(before.model_dump(exclude_none=True) | {"hierarchy": tree}))
    changed = declared.replace(columns={column: settings})
    keep_study(places, study, changed)
    return described | {"version": version_of(places.study(study))}


def _saved(tree: Hierarchy, folder: Path, position: int) -> Path:
    """Save a tree in a file of its own: fronts that were found with an earlier tree still read that one."""
    digest = hashlib.sha256(json.dumps(tree.paths).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    path = folder / f"{position}-{re.sub(r'[^A-Za-z0-9_-]+', '-', tree.name)[:40]}-{digest}.csv"
    if not path.exists():
        save(tree, path)
    return path


def order(places: Places, study: str, column: str) -> Json:
    """Return the order in which cuts may join neighbouring values of a column, and where that order comes from."""
    declared = study_of(places, study)
    _column(declared, column)
    return joined(declared, column)


def joined(study: Study, column: str) -> Json:
    """The same for a study that is not saved yet; an order or breaks that are wrong are refused."""
    given = study.columns[column]
    counts, source = _values(study, column)
    tree: Any = given.hierarchy
    if isinstance(tree, str | HierarchyFile):
        file = HierarchyFile(path=tree) if isinstance(tree, str) else tree
        tree = load(study.folder / file.path, name=column, header=file.header, separator=file.separator)
    elif isinstance(tree, HierarchyPaths):
        tree = Hierarchy.from_paths(column, tree.paths)
    elif tree is not None:
        tree = builder(column, tree, source.decimal)
    try:
        # A value that the tree lacks may occur only in records that are left out: the audit reports it, not the order.
        own = tree if isinstance(tree, Hierarchy) else None
        present = {value: count for value, count in counts.items() if value and (own is None or value in own.nodes)}
        decimal, along = source.decimal, given.along_tree
        domain = domain_of(column, present, tree, decimal=decimal, order=given.order, along_tree=along)
        segment = segment_of(domain, breaks=given.breaks)
    except HierarchyError as error:
        raise _discreet(study, column, error) from None
    numeric = leaf_values(domain.hierarchy, source.decimal) is not None
    kind = "given" if given.order else "value" if numeric else "tree" if own else "alphabet"
    leaves = domain.hierarchy.leaves
    return {
        "column": column,
        "order": [leaves[code] for code in domain.order],
        "by": kind,
        "numbers": numeric,
        "has_tree": tree is not None,
        "units": len(segment.leaves),
    }


def _described(study: Study, column: str, tree: Hierarchy, counts: Mapping[str, int] | None = None) -> Json:
    """Describe a hierarchy: its paths, the records under each label of each level, whether it covers the data."""
    observed, source = _values(study, column)
    counts = observed if counts is None else counts
    shown = shown_values((label for level in tree.levels for label in level), source.codebook.column(column).values)
    levels = []
    for labels, groups in zip(tree.levels, tree.maps, strict=True):
        records = [0] * len(labels)
        for leaf, label in enumerate(tree.leaves):
            records[int(groups[leaf])] += counts.get(label, 0)
        levels.append({"labels": len(labels), "bars": _bars(labels, records)})
    path_of = {path[0]: path for path in tree.paths}
    covers, badge = _covered(study, column, tree, counts)
    secret = study.columns[column].role is Role.SENSITIVE
    return {
        "column": column,
        "height": tree.height,
        "paths": [path_of[leaf] for leaf in by_number(tree.leaves, source.decimal)],
        "counts": {leaf: counts.get(leaf, 0) for leaf in tree.leaves},
        "levels": levels,
        "shown": shown,
        "covers": covers,
        "badge": badge,
        "sensitive": secret,
    }


def _bars(labels: Sequence[str], records: Sequence[int]) -> list[list[Any]]:
    return [[label, count] for label, count in zip(labels, records, strict=True)][:MOST_BARS]


def _covered(study: Study, column: str, tree: Hierarchy, counts: Mapping[str, int]) -> tuple[bool, str]:
    try:
        domain_of(column, {v: c for v, c in counts.items() if v}, tree)
    except HierarchyError as error:
        return False, _discreet(study, column, error).what
    unused = sum(1 for leaf in tree.leaves if leaf not in counts)
    return True, f"nested, one root, covers all {counted(len(counts), 'value')}" + (
        f"; {unused:,} more do not occur" if unused else ""
    )


def _values(study: Study, column: str) -> tuple[dict[str, int], Source]:
    source = open_source(study.data, study.folder)
    return values_of(source, column), source


def _column(study: Study, column: str) -> ColumnSettings:
    if column not in study.columns:
        raise InputError(
            f'there is no column "{column[:80]}"', expected="a column", remedy=nearest(column, study.columns)
        )
    return study.columns[column]


def _discreet(study: Study, column: str, error: HierarchyError) -> HierarchyError:
    """Errors about a sensitive column do not show its values."""
    return secret_hierarchy(column) if study.columns[column].role is Role.SENSITIVE else error


MOST_UNCOUNTED = 24  # columns in no figure that are looked at: each is a count over the whole table


def counted_in(study: Study) -> Study:
    """Return the study with every column without a role as a quasi-identifier."""
    names = undecided_columns(study)
    counted = study.replace(columns={name: ColumnSettings(role=Role.QUASI_IDENTIFIER) for name in names})
    if not counted.named(Role.QUASI_IDENTIFIER):
        raise InputError(
            "no column is a quasi-identifier",
            expected="at least one column that outsiders know",
            remedy="give a column the role quasi-identifier",
        )
    return counted


def grid(places: Places, study: str, rows: int) -> Json:
    """Return records of the raw table, the smallest classes first, each with its class; sensitive values are masked."""
    table = table_of(counted_in(study_of(places, study)))
    classes = classify(table)
    size = classes.size[classes.index]
    order = np.argsort(size, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(rows, len(order))).astype(np.int64))]
    return {
        "columns": list(table.columns),
        "masked": list(table.sensitive),
        "rows": [
            {
                "cells": [
                    domain.shown(domain.labels[int(codes[position])]) or None
                    for domain, codes in zip(table.domains, table.codes, strict=True)
                ],
                "class": int(size[position]),
            }
            for position in chosen.tolist()
        ],
        "combinations": _combinations(table),
        "below": _below(classes),
        "records": table.records,
    }


def uncounted(places: Places, study: str) -> Json:
    """Count how unique records are with each column that is released and in no figure."""
    declared = counted_in(study_of(places, study))
    source = declared.source()
    roles = {name: column.role for name, column in declared.columns.items()}
    known = [name for name in source.names if roles.get(name) is Role.QUASI_IDENTIFIER]
    kept = [name for name in source.names if roles.get(name) is Role.OTHER]
    with open_engine(declared.engine, declared.engine_options) as engine:
        engine.attach(source, "raw")
        unit = holder_cells(source, declared).get(PERSON)
        base = uniqueness(engine, source, known, "raw", unit)
        columns = [
            {"column": name, "unique_share": uniqueness(engine, source, [*known, name], "raw", unit).unique_share}
            for name in kept[:MOST_UNCOUNTED]
        ]
    return {"without": base.unique_share, "columns": columns, "left_out": max(len(kept) - MOST_UNCOUNTED, 0)}


def _combinations(table: FrequencyTable) -> list[Json]:
    codes = np.repeat(table.codes, table.counts, axis=1).astype(np.int64)
    return [
        {"columns": [table.columns[position] for position in places], "unique": share}
        for places, share in best_sets(codes)
        if share > 0
    ]


def _below(classes: ClassTable) -> dict[str, int]:
    """Return how many records are in classes below common limits."""
    return {str(limit): int(classes.rows[classes.size < limit].sum()) for limit in (2, 3, 5, 10)}
