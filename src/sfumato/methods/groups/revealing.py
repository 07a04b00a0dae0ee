"""Released columns that would undo a protection: they reveal the area or the group, or mark exchanged records.

The area and the group are hidden columns. A column reveals one by the rule of `tables.dependence`: the value is right
for at least 95 % of the records, with at most half of the errors that are made without the column. So one mistyped cell
among thousands changes nothing. Members of the group are rare, so a column that finds more than half of them counts
too.

Columns are also ranked by how well they reveal the members, and what withholding or coarsening each one removes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.data.cells import cleaned
from sfumato.data.engine import Engine
from sfumato.data.source import Column, Source
from sfumato.errors import StudyError, shortened
from sfumato.methods.groups.attack.attackers import average_precision, fit
from sfumato.methods.groups.microfile import Microfile, Wide, quantile_groups
from sfumato.tables.dependence import Dependence, Protected, dependences
from sfumato.tables.dependence.count import count_by_value

AREA, GROUP = " area", " group"  # no column of a file has this name, since names are trimmed
MEMBER = "yes"
FEWEST = 10  # exchanged records that must be marked for a column to be refused
PART = 0.1  # and their least share of all that were exchanged
DOUBT = 0.5  # least part of the uncertainty about a marked record that is removed


def following_columns(
    engine: Engine, source: Source, columns: Sequence[Column], area: str, members: str, basic: Collection[str]
) -> set[str]:
    """Return the columns that follow from the area and are exchanged with it.

    Columns that reveal the area or the group are refused. `area` is an expression of the columns of the view `raw`, and
    `members` is the condition of the group. Attackers learn from the `basic` columns, and the protection is made
    against these, so they may reveal the group.
    """
    names = [column.name for column in columns]
    hidden = [Protected(AREA, "generalized"), Protected(GROUP, "withheld", rare=MEMBER)]
    made = {AREA: area, GROUP: f"CASE WHEN {members} THEN '{MEMBER}' ELSE 'no' END"}
    searched = dependences(engine, source, names, hidden, made=made)
    following = _moved_with(engine, source, area, [d for d in searched.dependences if d.protected == AREA])
    telling = [d.kept for d in searched.dependences if d.protected == AREA and not set(d.kept) & following]
    # Columns with mostly unique values, such as a household's number, are in no dependence, so each is checked.
    telling += [(one.column,) for one in searched.identifying if _reveals(engine, source, one.column, area)]
    if telling:
        raise StudyError(
            f"the original area follows from {_listed(telling)}",
            expected="no released column from which the area can be read back, such as a household's number",
            remedy="name it under withhold, or under swap if it is a place, in [groups]",
        )
    naming = [d.kept for d in searched.dependences if d.protected == GROUP and not set(d.kept) <= {*basic, *following}]
    if naming:
        least = dict.fromkeys(next(name for name in kept if name not in basic) for kept in naming)
        raise StudyError(
            f"released columns identify the group: {_listed(naming)}",
            expected="no released column that shows who is in the group, alone or with another one",
            remedy=f"withhold = [{', '.join(map(repr, least))}] under [groups]".replace("'", '"'),
        )
    return following


def _listed(kept: Sequence[tuple[str, ...]]) -> str:
    return shortened(list(dict.fromkeys(" with ".join(names) for names in kept)))


def _moved_with(engine: Engine, source: Source, area: str, dependent: Sequence[Dependence]) -> set[str]:
    """Return the columns that follow from the area alone. One with as many values as areas also reveals it."""
    following = {name for d in dependent if d.way == "follows" for name in d.kept}
    both = [d.kept[0] for d in dependent if d.way == "tells" and len(d.kept) == 1]
    return following | {name for name in both if _follows(engine, source, name, area)}


def _follows(engine: Engine, source: Source, name: str, area: str) -> bool:
    cell = f"coalesce({cleaned(source, source.column(name))}, '')"
    return count_by_value(engine, "SELECT * FROM raw", [area], cell, "0").tells()


def _reveals(engine: Engine, source: Source, name: str, area: str) -> bool:
    cell = cleaned(source, source.column(name))
    return count_by_value(engine, f"SELECT * FROM raw WHERE {cell} IS NOT NULL", [cell], area, "0").tells()


def refuse_marked(engine: Engine, rows: str, columns: Sequence[tuple[str, str]], area: str, swapped: str) -> None:
    """Raise if a released column reveals which records were exchanged.

    `rows` are the released rows as a query, `columns` names and expressions of those that stayed, `area` and `swapped`
    expressions of the released area and of whether a record was exchanged. A record looks exchanged if its value is
    rare in its area, or its area is rare for its value. The column is refused if the most unusual records contain at
    least a tenth of the exchanged ones, and half of the uncertainty about them is removed.
    """
    cells = [f"{area} AS a", f"CASE WHEN {swapped} THEN 1 ELSE 0 END AS s"]
    cells += [f"{cell} AS v{i}" for i, (_, cell) in enumerate(columns)]
    engine.run(f"CREATE OR REPLACE TEMP TABLE exchanged_rows AS SELECT {', '.join(cells)} FROM ({rows}) AS t")
    marking = [name for i, (name, _) in enumerate(columns) if _marks(engine, f"v{i}")]
    if marking:
        raise StudyError(
            f"{shortened(marking)} {'tells' if len(marking) == 1 else 'tell'} which records were exchanged",
            expected="no released column whose values stand out where a record was moved to another area",
            remedy="name it under withhold, or under swap if it is a place, in [groups]",
        )


def _marks(engine: Engine, cell: str) -> bool:
    value, area = engine.hashed([cell]), engine.hashed(["a"])
    cells = engine.arrays(
        f"SELECT {value} AS v, {area} AS a, count(*) AS n, CAST(sum(s) AS BIGINT) AS s FROM exchanged_rows "
        f"GROUP BY {value}, {area} ORDER BY {value}, {area}"
    )
    counts, exchanged = (np.asarray(cells[name]).astype(np.int64) for name in ("n", "s"))
    in_area, with_value = (_totals(cells[name], counts) for name in ("a", "v"))
    orders = (counts / in_area, counts / with_value, counts * counts.sum() / (in_area * with_value))
    return any(stands_out(order, counts, exchanged) for order in orders)


def _totals(keys: np.ndarray, counts: Counts64) -> Counts64:
    index = np.unique(keys, return_inverse=True)[1]
    totals: Counts64 = np.bincount(index, counts).astype(np.int64)[index]
    return totals


def stands_out(typical: Floats, counts: Counts64, exchanged: Counts64) -> bool:
    """Return whether the least typical of some records are mostly exchanged ones.

    >>> rare, usual = np.array([0.1, 0.9]), np.array([20, 200])
    >>> stands_out(rare, usual, np.array([18, 2])), stands_out(rare, usual, np.array([2, 18]))
    (True, False)
    """
    total, records = int(exchanged.sum()), int(counts.sum())
    if total == 0 or total == records:
        return False
    # All cutting points between typical and unusual are tried, because an attacker may choose the best one.
    order = np.argsort(typical, kind="stable")
    last = np.r_[typical[order][1:] != typical[order][:-1], True]  # equally typical records stay together
    marked, hits = (np.cumsum(column[order])[last] for column in (counts, exchanged))
    share = total / records
    enough = hits >= max(min(FEWEST, total), PART * total)
    return bool((enough & (hits >= (share + DOUBT * (1 - share)) * marked)).any())


FINE, COARSE = 50, 4  # groups of a column with many values, and of a coarsened one
SHUFFLES = 2


@dataclass(frozen=True)
class Telling:
    """How well a column reveals the members of a group, by average precision: alone, and what coarsening it takes away.

    The last figure is the loss of the attacker with all columns if this one is withheld.
    """

    column: str
    alone: float
    coarsening_takes: float
    withholding_takes: float | None


def _half(members: Flags) -> Flags:
    """Return every other member and every other non-member."""
    half = np.zeros(len(members), np.bool_)
    for kind in (np.flatnonzero(members), np.flatnonzero(~members)):
        half[kind[::2]] = True
    return half


def alone(codes: Counts64, members: Flags) -> float:
    """Return the average precision of the members' share among the records with the same value in the other half.

    The figure depends on the order of the records. A value that occurs only once reveals nothing.

    >>> round(alone(np.array([0, 0, 0, 1, 1, 1, 1, 1]), np.array([1, 1, 0, 0, 0, 0, 0, 0], bool)), 2)
    0.58
    """
    half = _half(members)
    grades = np.zeros(len(members))
    base, size = float(members.mean()), int(codes.max(initial=0)) + 1
    for learned in (half, ~half):
        hit = np.bincount(codes[learned & members], minlength=size)
        seen = np.bincount(codes[learned], minlength=size)
        grades[~learned] = ((hit + base) / (seen + 1))[codes[~learned]]
    return average_precision(members, grades)


def grouped(wide: Wide, column: int, limit: int) -> Counts64:
    """Return a column in a limited number of groups: quantiles of a number, the most frequent values of text.

    Missing values are one group.
    """
    codes, values = wide.codes[column].astype(np.int64), wide.values[column]
    missing = codes < 0
    if len(values) > limit:
        counts = np.bincount(codes[~missing], minlength=len(values))
        if values.dtype.kind == "f":
            group_of = quantile_groups(counts, limit)
        else:
            group_of = np.full(len(values), limit - 1, np.int64)
            group_of[np.argsort(-counts, kind="stable")[: limit - 1]] = np.arange(limit - 1)
        codes = np.where(missing, -1, group_of[codes])
    numbered: Counts64 = codes + 1
    return numbered


def refuse_naming(target: Microfile, basic: Collection[str], limit: float) -> None:
    """Raise if a released column nearly names a group: its average precision exceeds the limit.

    Attributes that attackers learn from are not checked, because the protection is made against them.
    """
    wide = target.wide
    if wide is None:
        return
    for group, members in target.members.items():
        if not members.any():
            continue
        named = {
            name: precision
            for i, name in enumerate(wide.names)
            if name not in basic and (precision := alone(grouped(wide, i, FINE), members)) > limit
        }
        if named:
            listed = [f"{name} ({precision:.2f})" for name, precision in named.items()]
            raise StudyError(
                f"released columns nearly name the group {group}: {shortened(listed)}",
                expected=f"an average precision of at most naming = {limit:g} under [groups] for each column alone",
                remedy=f"withhold = [{', '.join(map(repr, named))}] under [groups]".replace("'", '"'),
            )


def ranked(target: Microfile, group: str, limit: int, seed: int | None = None) -> list[Telling]:
    """Return the columns that reveal most of a group by themselves, the best first.

    With a seed the effect of withholding is measured as well, by shuffling the column for a boosted attacker with all
    columns. This attacker learned from every other record of the file itself, so that one that learned elsewhere can
    hardly do better.
    """
    wide, members = target.wide, target.members[group]
    if wide is None or not members.any():
        return []
    singles = [alone(grouped(wide, i, FINE), members) for i in range(len(wide.names))]
    order = sorted(range(len(wide.names)), key=lambda i: (-singles[i], wide.names[i]))[:limit]
    taken: Mapping[int, float] = {} if seed is None else _withheld(wide, members, order, seed)
    order.sort(key=lambda i: -max(singles[i], taken.get(i, 0.0)))
    listed = []
    for i in order:
        coarsening = max(singles[i] - alone(grouped(wide, i, COARSE), members), 0.0)
        withholding = round(taken[i], 4) if taken else None
        listed.append(Telling(wide.names[i], round(singles[i], 4), round(coarsening, 4), withholding))
    return listed


def _withheld(wide: Wide, members: Flags, asked: Sequence[int], seed: int) -> dict[int, float]:
    """Return, for some columns, the fall of the average precision on the other half if the column is shuffled there."""
    rng = np.random.default_rng(seed)
    matrix = wide.numbers(wide)
    usable = [i for i, values in enumerate(wide.values) if len(values) > 1]
    half = _half(members)
    if not usable or not (members & half).any() or not (members & ~half).any():
        return dict.fromkeys(asked, 0.0)
    learned: Floats = matrix[:, usable]
    fitted = fit("boosted", learned[half], members[half], seed)
    held, truth = learned[~half], members[~half]
    full = average_precision(truth, fitted(held))
    taken = dict.fromkeys(asked, 0.0)
    for j, i in enumerate(usable):
        if i not in taken:
            continue
        falls = []
        for _ in range(SHUFFLES):
            kept = held[:, j].copy()
            held[:, j] = rng.permutation(kept)
            falls.append(full - average_precision(truth, fitted(held)))
            held[:, j] = kept
        taken[i] = float(np.mean(falls))
    return taken
