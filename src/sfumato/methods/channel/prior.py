"""The prior of a channel: the categories, their shares and the number of records; and the extreme posteriors.

Every optimal channel is a mixture of extreme posteriors. While the best guess does not change, accuracy is linear in
the posterior, and the information S = Σ w q qᵀ grows when a posterior is split. So the best posteriors are corners:
uniform on a set of categories, or as high as δ allows on as many categories as fit, the rest on one more
(docs/readings.md, 3.9). A limit on the gain of a category lowers its δ.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sfumato.base.arrays import Flags, Floats
from sfumato.base.trust import note_input
from sfumato.data.cells import MISSING
from sfumato.data.engine import open_engine
from sfumato.data.settings import Role
from sfumato.data.value_counts import Tally, tally
from sfumato.errors import InputError, StudyError, nearest
from sfumato.plans.channel import checked_prior
from sfumato.study import Study

NO_VALUE = "(missing)"
MOST_JOINT = 16


@dataclass(frozen=True, eq=False)
class Prior:
    """Shares of the categories of one column, or of the cells of several; `cells` has their values.

    A matrix is optimised for the shares `design` if it must not reveal the true ones.
    """

    columns: tuple[str, ...]
    categories: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    shares: Floats
    records: int
    dropped: int = 0
    design: Floats | None = None

    @property
    def designed(self) -> Floats:
        """The shares that a matrix is optimised for."""
        return self.shares if self.design is None else self.design

    @property
    def joint(self) -> bool:
        return len(self.columns) > 1


def label_of(cell: Sequence[str]) -> str:
    """Return the name of a category from its values.

    >>> label_of(["Male", "White"]), label_of([""])
    ('Male & White', '(missing)')
    """
    return " & ".join(value if value != MISSING else NO_VALUE for value in cell)


def prior_of(study: Study) -> Prior:
    """Return the prior of a study's channel: from its data, or from its prior file."""
    settings = study.channel
    check_beside(study, (*settings.keep, *settings.given))
    if settings.prior is not None:
        return read_prior(study.folder / settings.prior, settings.records, settings.columns)
    if not settings.columns:
        raise StudyError(
            "no column to disguise is given", expected="columns under [channel]", remedy='columns = ["NAME"]'
        )
    for name in settings.columns if study.columns else ():
        if name not in study.columns:
            raise StudyError(f'there is no column "{name}"', expected="a column", remedy=nearest(name, study.columns))
        if study.columns[name].role is not Role.SENSITIVE:
            raise StudyError(
                f'the role of "{name}" is {study.columns[name].role}',
                expected='role = "sensitive" for a column that is to be disguised',
                remedy=f'{name} = {{ role = "sensitive" }} under [columns]',
            )
    with open_engine(study.engine, study.engine_options) as engine:
        complete = complete_columns(study, settings.columns)
        result = tally(engine, study.opened(), settings.columns, complete, unit_of(study))
    prior = prior_from(result, settings.records)
    design = coarse(prior.shares, settings.step) if settings.designed_for == "coarse" else None
    uniform = settings.designed_for == "uniform"
    return replace(prior, design=np.full(len(prior.shares), 1.0 / len(prior.shares)) if uniform else design)


def check_beside(study: Study, names: Sequence[str]) -> None:
    """Raise for columns that may not be released with the disguised one, such as the number of a person."""
    for name in names:
        column = study.columns.get(name)
        if column is not None and not column.role.released:
            raise StudyError(
                f"{name} has the role {column.role} and cannot be kept beside the disguised column",
                expected="columns without the role identifier, unit, household, drop or vital",
                remedy=f"leave {name} out",
            )


def unit_of(study: Study) -> str | None:
    """Return the column with the person that a row belongs to, if one is declared; a household is an error."""
    for name in study.named(Role.HOUSEHOLD):
        raise StudyError(
            f"{name} is a household column, and randomized response gives one report to each person",
            expected="at most a unit column; a value that all of a household share would have several reports",
            remedy=f'role = "unit" for {name} gives one report to each household and value, or role = "drop"',
        )
    return next(iter(study.named(Role.UNIT)), None)


def coarse(shares: Floats, step: float) -> Floats:
    """Return shares rounded to powers of 1 + step, so that each is right to within half a step, and scaled to sum to 1.

    >>> coarse(np.array([0.634, 0.361, 0.005]), 0.5).round(4).tolist()
    [0.6886, 0.3061, 0.0053]
    """
    rounded = (1.0 + step) ** np.round(np.log(shares) / np.log1p(step))
    return np.asarray(rounded / rounded.sum())


def complete_columns(study: Study, columns: Sequence[str]) -> list[str]:
    """Return the columns whose missing values exclude a row; in other columns missing values are a category."""
    rules = {name: study.missing_rule(name) for name in columns}
    if any(rules[name] == "wildcard" for name in columns if name in study.columns):
        raise StudyError(
            "a missing value cannot be a wildcard in a disguised column", expected='missing = "drop" or "category"'
        )
    return [name for name in columns if rules[name] == "drop"]


def prior_from(counted_cells: Tally, records: int | None = None) -> Prior:
    """Return the prior from counts. Combinations without records are not categories."""
    names, cells = counted_cells.columns, counted_cells.cells
    if len(names) > 1 and len(cells) > MOST_JOINT:
        raise InputError(
            f"{' × '.join(names)} has {len(cells)} cells",
            expected=f"at most {MOST_JOINT} for a joint channel",
            remedy="disguise the columns one by one, or join rare values into groups",
        )
    if len(cells) < 2:
        raise InputError(
            f"{names[0]} has {len(cells)} value",
            expected="at least two",
            remedy="a single value needs no protection",
        )
    shares = checked_prior(np.array(counted_cells.counts) / max(counted_cells.records, 1))
    categories = tuple(map(label_of, cells))
    return Prior(names, categories, cells, shares, records or counted_cells.records, counted_cells.dropped)


def read_prior(path: Path, records: int | None, columns: Sequence[str] = ()) -> Prior:
    """Return the prior from a CSV file: columns `category` (or the names of the columns) and `share` or `p`."""
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
    return Prior(named, tuple(map(label_of, cells)), cells, checked_prior(shares), records)


SLACK = 1e-12


def corners(caps: Floats) -> Floats:
    """Return all corners as columns, where the posterior of each category has its own limit.

    Within the posteriors whose best guess is x, a corner has each other category at zero, at its limit or level with x.
    Either nothing else determines x, and the level follows from the sum. Or x is at its limit, and one more category
    takes the rest.

    >>> corners(np.full(3, 0.6)).T.round(2).tolist()[:4]
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.33, 0.33, 0.33]]
    >>> corners(np.full(10, 0.8)).shape
    (10, 1103)
    """
    sets = _sets(len(caps))[1:]
    sets = sets[np.argsort(sets.sum(axis=1), kind="stable")]
    rows = [_levelled(sets, caps)]
    for height in np.unique(caps):
        rows.append(_topped(sets, np.minimum(caps, height), np.abs(caps - height) < SLACK))
    every = np.concatenate(rows)
    first = np.unique(every.round(9), axis=0, return_index=True)[1]
    return np.asarray(every[np.sort(first)].T)


def _sets(categories: int) -> Flags:
    return np.asarray(((np.arange(2**categories)[:, None] >> np.arange(categories)) & 1) > 0)


def _levelled(sets: Flags, caps: Floats) -> Floats:
    """Return for each set whose limits reach 1 its categories at one level, those with lower limits at their limits."""
    sets = sets[sets @ caps >= 1.0 - SLACK]
    level = np.full(len(sets), np.nan)
    at_caps, free = np.zeros(len(sets)), sets.sum(axis=1).astype(np.float64)
    for position in np.argsort(caps, kind="stable"):
        member = sets[:, position] & np.isnan(level)
        height = (1.0 - at_caps[member]) / free[member]
        fits = height <= caps[position] + SLACK
        level[np.flatnonzero(member)[fits]] = height[fits]
        at_caps += np.where(member, caps[position], 0.0)
        free -= member
    return np.asarray(np.where(sets, np.minimum(level[:, None], caps), 0.0))


def _topped(sets: Flags, values: Floats, tops: Flags) -> Floats:
    """Return sets at their values, with one of the tops among them, and the rest on one more category."""
    sums = sets @ values
    fits = (sets & tops).any(axis=1) & (sums < 1.0 - SLACK) & (sums + values.max() >= 1.0 - SLACK)
    sets, rest = sets[fits], 1.0 - sums[fits]
    row, last = np.nonzero(~sets & (values > rest[:, None] + SLACK))
    tall = np.where(sets[row], values, 0.0)
    tall[np.arange(len(row)), last] = rest[row]
    return np.asarray(tall)


def rays(prior: Floats, epsilon: float) -> Floats:
    """Return the posteriors of all reports that are e^ε times as likely under some categories as under the others.

    Every report that ε allows is a mixture of these, and splitting it adds to S. So no others are needed if ε is the
    only limit (docs/readings.md, 3.12).

    >>> rays(np.array([0.5, 0.5]), np.log(3)).round(2).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    tilted = prior * np.exp(epsilon * _sets(len(prior))[1:-1])
    return np.asarray((tilted / tilted.sum(axis=1, keepdims=True)).T)


def capped_rays(prior: Floats, caps: Floats, epsilon: float) -> Floats:
    """Return posteriors under ε and limits, as columns: a candidate set, not all corners.

    If a ray exceeds a limit, its likelihoods are raised to a power below one until it does not.
    """
    sets = _sets(len(prior))[1:-1].astype(np.float64)
    low, high = np.zeros(len(sets)), np.ones(len(sets))
    for _ in range(50):
        power = np.where(_excess(sets, prior, caps, epsilon * high) <= 0.0, high, 0.5 * (low + high))
        fits = _excess(sets, prior, caps, epsilon * power) <= 0.0
        low, high = np.where(fits, power, low), np.where(fits, high, power)
    power = np.where(_excess(sets, prior, caps, epsilon * high) <= 0.0, high, low)
    tilted = prior * np.exp(sets * (epsilon * power)[:, None])
    return np.concatenate([(tilted / tilted.sum(axis=1, keepdims=True)).T, prior[:, None]], axis=1)


def _excess(sets: Floats, prior: Floats, caps: Floats, epsilon: Floats) -> Floats:
    tilted = prior * np.exp(sets * epsilon[:, None])
    return np.asarray((tilted / tilted.sum(axis=1, keepdims=True) - caps).max(axis=1))


def output_name(posterior: Floats, categories: Sequence[str]) -> str:
    """Return a name for the report with this posterior: "a | b" for either, "a > b" for a, or less likely b.

    >>> output_name(np.array([0.5, 0.5, 0.0]), ["a", "b", "c"]), output_name(np.array([0.2, 0.0, 0.8]), ["a", "b", "c"])
    ('a | b', 'c > a')
    """
    values = sorted({round(float(value), 9) for value in posterior if value > 0}, reverse=True)
    groups = [[name for name, q in zip(categories, posterior, strict=True) if round(float(q), 9) == v] for v in values]
    return " > ".join(" | ".join(group) for group in groups)


def set_name(likelihoods: Floats, categories: Sequence[str]) -> str:
    """Return a name for a report that is likelier under some categories: "a | b", or "not c" if that is shorter.

    >>> set_name(np.array([0.6, 0.2, 0.6]), ["a", "b", "c"]), set_name(np.array([0.6, 0.2, 0.2]), ["a", "b", "c"])
    ('not b', 'a')
    """
    likelier = likelihoods > np.sqrt(likelihoods.min() * likelihoods.max())
    members = list(itertools.compress(categories, likelier))
    others = list(itertools.compress(categories, ~likelier))
    return " | ".join(members) if len(members) <= len(others) else "not " + " | ".join(others)
