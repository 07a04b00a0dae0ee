"""What a report reveals to someone who also has the other columns of the file, and the policy rule `response` about it.

A cell is a combination of values of the other released columns. In a cell with enough records the largest posterior
given any report must not exceed δ, nor the allowed gain times the largest share that the cell has without a report.
Smaller cells are covered by ε alone: no report changes the odds of two categories by a factor above e^ε.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.errors import DataError, InputError
from sfumato.measures.channel import epsilon
from sfumato.plans.channel import Channel, product
from sfumato.release.policy import Finding
from sfumato.runtime.figures import percent
from sfumato.study.policy import RULE_RESPONSE, PolicySettings
from sfumato.systems.channel.cells import CellCounts, Target, best_guess, guess_from_file, worst_posteriors
from sfumato.systems.channel.readback import Rows

MOST_PAIRS = 4_000_000  # reports × categories of several channels together
SLACK = 1e-9
LIMITS = ("response", "response_posterior", "response_records", "response_epsilon")

Given = Mapping[str, Any]


def cell_counts(
    rows: Rows, coded: Sequence[tuple[Sequence[str], Sequence[tuple[str, ...]]]], kept: Sequence[str]
) -> CellCounts:
    """Count rows by cell and code: `coded` are columns with the values that are numbered, several as one product."""
    names, engine = [name for columns, _ in coded for name in columns], rows.engine
    joins, terms, taken, size = [], [], 0, math.prod(len(cells) for _, cells in coded)
    stride = size
    for number, (columns, cells) in enumerate(coded):
        table = f"{rows.view}_codes{number}"
        engine.upload(
            table,
            {f"v{i}": [cell[i] for cell in cells] for i in range(len(columns))} | {"code": np.arange(len(cells))},
        )
        stride //= len(cells)
        equal = " AND ".join(f"t.k{taken + i} = {table}.v{i}" for i in range(len(columns)))
        joins.append(f" LEFT JOIN {table} ON {equal}")
        terms.append(f"{table}.code * {stride}")
        taken += len(columns)
    cell = engine.hashed([f"t.k{taken + i}" for i in range(len(kept))]) if kept else "0"
    person = f", t.k{taken + len(kept)} AS person" if rows.unit else ""
    coded_rows = (
        f"SELECT {cell} AS cell, CAST(coalesce({' + '.join(terms)}, -1) AS BIGINT) AS code{person} "
        f"FROM ({rows.sql([*names, *kept, *rows.units])}) AS t{''.join(joins)}"
    )
    counted = "count(DISTINCT person)" if rows.unit else "count(*)"
    found = engine.arrays(f"SELECT cell, code, {counted} AS n FROM ({coded_rows}) AS c GROUP BY cell, code")
    codes = np.asarray(found["code"]).astype(np.int64)
    if (codes < 0).any():
        raise DataError(
            f"some rows have a value of {', '.join(names)} that is not in the list of the channel",
            expected="only known values",
        )
    counts = np.asarray(found["n"]).astype(np.float64)
    if not rows.unit:
        return CellCounts(_whole(found["cell"]), codes, counts, size)
    sizes = engine.arrays(f"SELECT cell, count(DISTINCT person) AS n FROM ({coded_rows}) AS c GROUP BY cell")
    order = np.argsort(_whole(sizes["cell"]))
    each = f"SELECT person FROM ({coded_rows}) AS c GROUP BY person HAVING count(DISTINCT cell) > 1"
    moving = engine.rows(f"SELECT count(*) FROM ({each}) AS p")[0][0]
    persons = np.asarray(sizes["n"]).astype(np.float64)[order]
    return CellCounts(_whole(found["cell"]), codes, counts, size, persons, int(moving))


def _whole(cells: Any) -> Any:
    """Hashes of 64 bits as signed numbers, whatever the engine calls them."""
    found = np.asarray(cells)
    return found.astype(np.uint64 if found.dtype.kind == "u" else np.int64).view(np.int64)


def given_others(
    source: Rows, written: Rows, channels: Sequence[Channel], kept: Sequence[str], policy: PolicySettings
) -> dict[str, Any] | None:
    """Every figure given the other columns; None where the file has a single report and nothing else."""
    if not kept and len(channels) < 2:
        return None
    truth = cell_counts(source, [(channel.columns, channel.cells) for channel in channels], kept)
    reports = cell_counts(written, [([channel.name], channel.output_cells) for channel in channels], kept)
    return figures_given(channels, kept, truth, reports, policy)


def figures_given(
    channels: Sequence[Channel], kept: Sequence[str], truth: CellCounts, reports: CellCounts, policy: PolicySettings
) -> dict[str, Any]:
    """The same from counts."""
    pairs = math.prod(len(channel.outputs) * channel.size for channel in channels)
    if pairs > MOST_PAIRS:
        raise InputError(
            f"{len(channels)} channels have {pairs:,} pairs of reports and categories together",
            expected=f"at most {MOST_PAIRS:,}: what several reports of a record reveal together is computed",
            remedy="disguise fewer columns, or columns with fewer categories",
        )
    matrix = product(channels).matrix
    large = np.flatnonzero(truth.sizes >= policy.response_records)
    table = truth.table(large)
    most = epsilon(matrix)
    limits = {name: getattr(policy, name) for name in LIMITS}
    small = float(truth.totals.sum() - truth.totals[large].sum())
    return {
        "columns": list(kept),
        "counted": "records" if truth.persons is None else "persons",
        "records": int(truth.records),
        "in_several_cells": truth.moving,
        "smallest": int(truth.sizes.min()),
        "alone": int((truth.sizes == 1).sum()),
        "cells": len(truth.names),
        "small_cells": len(truth.names) - len(large),
        "small_share": small / truth.records,
        "epsilon": most if math.isfinite(most) else None,
        "limits": limits,
        "channels": {
            channel.name: _of_channel(channel, target, matrix, truth, reports, (table, truth.totals[large]), policy)
            for channel, target in zip(channels, _targets(channels), strict=True)
        },
    }


def public_given(given: Given) -> dict[str, Any]:
    """What the public reads of the rule: its limits, ε, and how many records ε alone covers, which the file shows."""
    return {
        "columns": list(given["columns"]),
        "counted": given["counted"],
        "records_least": given["limits"]["response_records"],
        "small_share": math.ceil(given["small_share"] * 1000 - SLACK) / 1000,
        "epsilon": None if given["epsilon"] is None else math.ceil(given["epsilon"] * 1000 - SLACK) / 1000,
    }


def others_words(columns: Sequence[str]) -> str:
    """The other columns of the file in a sentence.

    >>> others_words(["sex", "age"]), others_words([])
    ('sex and age', 'the other reports')
    """
    return " and ".join(filter(None, [", ".join(columns[:-1]), columns[-1]])) if columns else "the other reports"


def headline_rows(figures: Given, beside: Given | None) -> list[list[str]]:
    """The figures given the other columns, which come first wherever there are other columns."""
    given = figures["given"]
    if given is None or beside is None:
        return []
    others, least = others_words(beside["columns"]), beside["limits"]["response_records"]
    worst = given["worst_posterior"]
    rows = [
        [f"given {others}: best guess right", percent(given["best_guess"])],
        [f"given {others}: guess learned from the file right", percent(given["guess_from_file"])],
        [
            f"given {others}: worst posterior (combinations of {least} {beside['counted']} or more)",
            "–" if worst is None else f"{worst:.4f}",
        ],
        [
            f"given {others}: largest share there without a report",
            "–" if worst is None else f"{given['largest_share']:.4f}",
        ],
    ]
    if beside["small_cells"]:
        rows.append(
            [f"{beside['counted']} in smaller combinations, covered by ε alone", percent(beside["small_share"])]
        )
    return rows


def _targets(channels: Sequence[Channel]) -> list[Target]:
    """What each channel hides, among the products of the categories of all."""
    if len(channels) == 1:
        return [Target()]
    numbers = np.indices([channel.size for channel in channels]).reshape(len(channels), -1)
    return [Target(np.eye(channel.size)[own]) for channel, own in zip(channels, numbers, strict=True)]


def _of_channel(
    channel: Channel,
    target: Target,
    matrix: Any,
    truth: CellCounts,
    reports: CellCounts,
    large: tuple[Any, Any],
    policy: PolicySettings,
) -> dict[str, Any]:
    """What the rule says of one channel; its δ is that of the design, and at most that of the policy."""
    designed = channel.notes.get("delta")
    delta = policy.response_posterior
    if isinstance(designed, int | float) and 0 < designed < delta:
        delta = float(designed)
    table, totals = large
    worst, shares = worst_posteriors(matrix, table, target)
    allowed = np.maximum(delta, policy.response * shares)
    over = worst > allowed + SLACK
    return {
        "delta": delta,
        "worst_posterior": float(worst.max()) if len(worst) else None,
        "largest_share": float(shares.max()) if len(worst) else None,
        "cells_over": int(over.sum()),
        "share_over": float(totals[over].sum() / truth.records),
        "epsilon_allowed": _epsilon_allowed(shares, allowed),
        "best_guess": best_guess(matrix, truth, target),
        "guess_from_file": guess_from_file(matrix, truth, reports, target),
        "attributes": _attributes(channel, target, matrix, truth, table),
    }


def _attributes(channel: Channel, target: Target, matrix: Any, truth: CellCounts, table: Any) -> dict[str, Any]:
    """The same for each column of a joint channel by itself; δ and the rule are about the combination."""
    found = {}
    for position, name in enumerate(channel.columns if len(channel.columns) > 1 else ()):
        values = sorted({cell[position] for cell in channel.cells})
        member = np.array([[cell[position] == value for value in values] for cell in channel.cells], dtype=np.float64)
        own = Target(member if target.member is None else target.member @ member)
        worst = worst_posteriors(matrix, table, own)[0]
        found[name] = {
            "worst_posterior": float(worst.max()) if len(worst) else None,
            "best_guess": best_guess(matrix, truth, own),
        }
    return found


def _epsilon_allowed(shares: Any, allowed: Any) -> float | None:
    """The largest ε, rounded down, with which every channel keeps what is allowed in these cells; None if any does."""
    bound = allowed < 1.0
    if not bound.any():
        return None
    least = float((np.log(allowed[bound] / (1 - allowed[bound])) - np.log(shares[bound] / (1 - shares[bound]))).min())
    return math.floor(least * 100) / 100


def response_findings(given: Given | None, policy: PolicySettings) -> list[Finding]:
    """What a file breaks of the rule `response`, each sentence with the nearest that can be met."""
    if given is None:
        return []
    listed = [
        _over(name, said, given, policy, several=len(given["channels"]) > 1)
        for name, said in given["channels"].items()
        if said["cells_over"]
    ]
    small = given["small_cells"] or given["in_several_cells"]
    if given["in_several_cells"] and (given["epsilon"] is None or given["epsilon"] > policy.response_epsilon):
        listed.append(
            f"{given['in_several_cells']:,} persons have rows with different values of {_names(given)}, which ε alone "
            f"covers, and at most {policy.response_epsilon:g} is allowed. The rule is met {_nearest(given, policy)}."
        )
    elif small and (given["epsilon"] is None or given["epsilon"] > policy.response_epsilon):
        listed.append(
            f"{percent(given['small_share'])} of the {given['counted']} are in combinations of {_names(given)} with "
            f"fewer than {policy.response_records} {given['counted']}, which are covered by ε alone: ε is "
            f"{'infinite' if given['epsilon'] is None else format(given['epsilon'], '.3g')}, and at most "
            f"{policy.response_epsilon:g} is allowed. The rule is met {_nearest(given, policy)}."
        )
    worst = [said["worst_posterior"] for said in given["channels"].values() if said["worst_posterior"] is not None]
    figures = {"response": max(worst, default=1.0)}
    return [Finding(RULE_RESPONSE, " ".join(listed), figures=figures)] if listed else []


def _over(name: str, said: Given, given: Given, policy: PolicySettings, several: bool) -> str:
    beside = _names(given) + (" and the other reports" if several and given["columns"] else "")
    return (
        f"Given {beside}, a report of {name} makes a category up to {percent(said['worst_posterior'])} probable. "
        f"Allowed are {percent(said['delta'])}, or {policy.response:g} times the largest share of the combination. "
        f"More is reached in {said['cells_over']} of {given['cells']} combinations, with "
        f"{percent(said['share_over'])} of the {given['counted']}. "
        f"The rule is met {_nearest(given, policy)}."
    )


def _names(given: Given) -> str:
    return others_words(given["columns"])


def _nearest(given: Given, policy: PolicySettings) -> str:
    """The release nearest to this one that keeps the rule."""
    allowed = [said["epsilon_allowed"] for said in given["channels"].values()]
    if given["small_cells"] or given["in_several_cells"]:
        allowed.append(policy.response_epsilon)
    known = [one for one in allowed if one is not None]
    without = f"without {_names(given)}" if given["columns"] else "with one disguised column"
    if not known or min(known) <= 0:
        return without
    most = math.floor(min(known) / len(given["channels"]) * 100) / 100
    return f"{without}, or with a search in which channel.epsilon is at most {most:g}"
