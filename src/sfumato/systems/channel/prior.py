"""What is known before a report is seen: the categories, their shares and how many records there are."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.errors import InputError, StudyError, nearest
from sfumato.plans.channel import checked_prior
from sfumato.runtime.arrays import Floats
from sfumato.runtime.inputs import note_input
from sfumato.sources.cells import MISSING
from sfumato.sources.engines.engine import open_engine
from sfumato.sources.roles import Role
from sfumato.sources.value_counts import Tally, tally
from sfumato.study import Study

NO_VALUE = "(missing)"
MOST_JOINT = 16


@dataclass(frozen=True, eq=False)
class Prior:
    """Shares of the categories of one column, or of the cells of several; `cells` has their values."""

    columns: tuple[str, ...]
    categories: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    shares: Floats
    records: int
    dropped: int = 0

    @property
    def joint(self) -> bool:
        return len(self.columns) > 1


def label_of(cell: Sequence[str]) -> str:
    """A category's name from the values that make it.

    >>> label_of(["Male", "White"]), label_of([""])
    ('Male & White', '(missing)')
    """
    return " & ".join(value if value != MISSING else NO_VALUE for value in cell)


def prior_of(study: Study) -> Prior:
    """The prior of a study's channel: from its data, or from its prior file."""
    settings = study.channel
    if settings.prior is not None:
        return read_prior(study.folder / settings.prior, settings.records, settings.columns)
    if not settings.columns:
        raise StudyError(
            "no column to disguise is given", expected="columns under [channel]", remedy='columns = ["NAME"]'
        )
    for name in settings.columns:
        column = study.columns.get(name)
        if study.columns and column is None:
            raise StudyError(f'there is no column "{name}"', expected="a column", remedy=nearest(name, study.columns))
        if column is not None and column.role is not Role.SENSITIVE:
            raise StudyError(
                f'the role of "{name}" is {column.role}',
                expected='role = "sensitive" for a column that is to be disguised',
                remedy=f'{name} = {{ role = "sensitive" }} under [columns]',
            )
    with open_engine(study.engine, study.engine_options) as engine:
        source = study.opened()
        found = tally(engine, source, settings.columns, complete_columns(study, settings.columns))
    return prior_from(found, settings.records)


def complete_columns(study: Study, columns: Sequence[str]) -> list[str]:
    """Those of the columns whose missing values drop a row; elsewhere they are a category of their own."""
    rules = {name: study.columns[name].missing or study.data.missing for name in columns if name in study.columns}
    if "wildcard" in rules.values():
        raise StudyError(
            "a missing value cannot be a wildcard in a disguised column", expected='missing = "drop" or "category"'
        )
    return [name for name in columns if rules.get(name, study.data.missing) == "drop"]


def prior_from(found: Tally, records: int | None = None) -> Prior:
    """The prior from counts. Cells of a product that nobody has are no categories."""
    if len(found.columns) > 1 and len(found.cells) > MOST_JOINT:
        raise InputError(
            f"{' × '.join(found.columns)} has {len(found.cells)} cells",
            expected=f"at most {MOST_JOINT} for a joint channel",
            remedy="disguise the columns one by one, or join rare values into groups",
        )
    if len(found.cells) < 2:
        raise InputError(
            f"{found.columns[0]} has {len(found.cells)} value",
            expected="at least two",
            remedy="a single value needs no protection",
        )
    shares = checked_prior(np.array(found.counts) / max(found.records, 1))
    categories = tuple(label_of(cell) for cell in found.cells)
    return Prior(found.columns, categories, found.cells, shares, records or found.records, found.dropped)


def read_prior(path: Path, records: int | None, columns: Sequence[str] = ()) -> Prior:
    """The prior from a CSV file: a column `category` (or the names of the columns) and a column `share` or `p`."""
    if not path.is_file():
        raise InputError(f"there is no prior file {path}", expected="a CSV file with the columns category and share")
    if records is None:
        raise InputError(
            "a prior needs a number of records",
            expected="how many people report",
            remedy="records = 10000 under [channel]",
        )
    try:
        with note_input(path).open(encoding="utf-8-sig", newline="") as stream:
            rows = [
                {(k or "").strip().lower(): (v or "").strip() for k, v in row.items()} for row in csv.DictReader(stream)
            ]
        heads = list(rows[0]) if rows else []
        share = next(name for name in ("share", "p", "probability", "prior") if name in heads)
        names = [name for name in heads if name != share]
        shares = [float(row[share]) for row in rows]
    except (StopIteration, ValueError, UnicodeDecodeError, csv.Error, AttributeError):
        raise InputError(
            f"{path.name} cannot be read as a prior",
            expected="a header, a column of categories and a column called share with numbers",
            remedy="category,share",
        ) from None
    if len(names) != max(len(columns), 1):
        raise InputError(
            f"{path.name} has {len(names)} columns beside {share}", expected="one column for each disguised column"
        )
    cells = tuple(tuple(row[name] for name in names) for row in rows)
    if len(set(cells)) < len(cells):
        raise InputError(f"{path.name} lists a category twice", expected="each category once")
    named = tuple(columns) or tuple(names)
    return Prior(named, tuple(label_of(cell) for cell in cells), cells, checked_prior(shares), records)
