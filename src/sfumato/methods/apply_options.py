"""What every application of a plan to another table needs: the request, and the values that the plan does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.base.text import percent
from sfumato.data.cells import MISSING
from sfumato.data.engine import Engine
from sfumato.data.settings import EngineOptions, Role
from sfumato.data.source import Source
from sfumato.data.value_counts import cell_sql
from sfumato.errors import DataError, shortened
from sfumato.front import Front
from sfumato.hierarchies import Hierarchy
from sfumato.release.manifest import MANIFEST, read_manifest
from sfumato.release.policy import Inherited, inherited_from
from sfumato.release.rows import complete_rows
from sfumato.study import Study
from sfumato.study.sections import Acceptance
from sfumato.tables.domain import missing_leaf


@dataclass(frozen=True)
class Applying:
    """A request to apply a plan: its folder, the point if that is a front, the new table and how to read it."""

    folder: Path
    point: int | None
    table: Any
    unseen: str
    accept: Mapping[str, str] | Sequence[Acceptance]
    engine: str
    options: EngineOptions
    run: str | Path | None


@dataclass(frozen=True)
class UnknownValues:
    """Values of a column that the plan's hierarchy does not know, and the number of records with one of them."""

    column: str
    values: tuple[str, ...]
    records: int


def unknown_values(
    engine: Engine, source: Source, study: Study, trees: Mapping[str, Hierarchy]
) -> tuple[UnknownValues, ...]:
    """Return the values of quasi-identifiers that the hierarchies do not know, in rows that the missing rule keeps."""
    engine.attach(source, "raw")
    complete = complete_rows(source, study)
    unknown = []
    for name in study.named(Role.QUASI_IDENTIFIER):
        tree, wildcard = trees[name], study.missing_rule(name) == "wildcard"
        keeps = missing_leaf(tree, study.data.na, wildcard=wildcard) is not None
        engine.upload("known", {"label": [*tree.leaves, *([MISSING] if keeps else [])]})
        rows = engine.rows(
            f"SELECT v, n FROM (SELECT {cell_sql(source, name)} AS v, count(*) AS n FROM raw WHERE {complete} "
            "GROUP BY 1) AS t WHERE v NOT IN (SELECT label FROM known) ORDER BY v"
        )
        if rows:
            unknown.append(UnknownValues(name, tuple(str(value) for value, _ in rows), sum(int(n) for _, n in rows)))
    return tuple(unknown)


def inherited_acceptances(folder: Path, study: Study) -> tuple[Study, tuple[Inherited, ...]]:
    """Return the study of an applied plan, and the acceptances that it inherits.

    From a release the rules that its file broke are inherited, with the figures, and no other acceptance of its run
    file. From a front the acceptances of its run file are inherited. The rule `earlier` is about the persons of one
    table, so its acceptance is never inherited.
    """
    if (folder / MANIFEST).is_file():
        accepted: Any = read_manifest(folder)["accepted"]
        return study.replace(policy={"accept": ()}), inherited_from(accepted)
    return study.replace(policy={"accept": [one for one in study.policy.accept if one.rule != "earlier"]}), ()


def limit_warnings(study: Study, front: Front) -> list[str]:
    """Return a warning if more records are suppressed than the search allowed."""
    share, limit = front.points[0].suppressed / max(front.rows, 1), study.search.max_suppression
    if share <= limit:
        return []
    return [f"{percent(share)} of the records are suppressed; the search that found the plan allowed {percent(limit)}."]


def unknown_error(unknown: Sequence[UnknownValues]) -> DataError:
    """Return the error for values that a plan does not know."""
    listed = "; ".join(
        f"{unseen.column}: {len(unseen.values)} {'value' if len(unseen.values) == 1 else 'values'} in {unseen.records} "
        f"{'record' if unseen.records == 1 else 'records'}, such as "
        f"{shortened((repr(value) if value != MISSING else '(missing)' for value in unseen.values), 3)}"
        for unseen in unknown
    )
    return DataError(
        f"the plan does not know values of {len(unknown)} {'column' if len(unknown) == 1 else 'columns'}: {listed}",
        expected="values that the plan's hierarchies hold",
        remedy='unseen = "star" hides them, or search again with hierarchies that hold them',
    )
