"""What a report reveals in addition to the other columns of the file, and the policy rules `response` and `dependence`.

A cell is a combination of values of the other released columns. An attacker who knows the cell of a record starts from
the shares of that cell, so every figure is computed cell by cell from exact counts. In a cell with enough records the
largest posterior given any report must not exceed δ, nor the allowed gain times the largest share of the cell without a
report. Smaller cells are covered by ε alone: no report changes the odds of two categories by a factor above e^ε.

The rule `response` limits what a report adds to the other columns. If these determine the value, no report adds
anything, and the disguise has no effect. The rule `dependence` reports such columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sfumato.base.arrays import Counts64, Flags, Floats
from sfumato.base.text import percent
from sfumato.data.cells import cleaned
from sfumato.errors import DataError, InputError
from sfumato.measures.channel import epsilon
from sfumato.methods.channel.draw import Rows
from sfumato.plans.channel import Channel, product
from sfumato.release.policy import Finding, findings_of, first_records
from sfumato.study import Study
from sfumato.study.sections import RULE_RESPONSE, PolicySettings
from sfumato.tables.dependence import Protected, dependences
from sfumato.tables.domain import present

Entries = Mapping[str, Any]  # figures and words in the shape of JSON

CHUNK = 2_000_000  # figures in one block of cells × reports × categories
STEPS = 400  # of EM in a cell; the best guess converges much earlier
STILL = 1e-7
Member = Floats | None  # `member[x, t]` states if category x has the value t, and None means the category itself
TIED = 1e-9  # scores that differ by less are ties: the guess is drawn among them


@dataclass(frozen=True, eq=False)
class CellCounts:
    """The number of records (or persons) with each code in each cell, one entry for each pair that occurs.

    `cells` are any integers that identify the cells, `codes` are positions of categories or of reports. `persons` are
    the persons of each cell in order, where one may have several codes. `moving` is the number of persons in several
    cells.
    """

    cells: Counts64
    codes: Counts64
    counts: Floats
    size: int
    persons: Floats | None = None
    moving: int = 0

    @cached_property
    def names(self) -> Counts64:
        """The cells, in order."""
        return np.unique(self.cells)

    @cached_property
    def places(self) -> Counts64:
        """For each entry the position of its cell."""
        return np.searchsorted(self.names, self.cells)

    @cached_property
    def totals(self) -> Floats:
        """The records of each cell."""
        return np.bincount(self.places, weights=self.counts, minlength=len(self.names)).astype(np.float64)

    @property
    def sizes(self) -> Floats:
        """The persons of each cell, or its records if these do not belong to persons."""
        return self.totals if self.persons is None else self.persons

    @property
    def records(self) -> float:
        return float(self.counts.sum())

    @cached_property
    def _rows(self) -> sparse.csr_array:
        return sparse.csr_array((self.counts, (self.places, self.codes)), (len(self.names), self.size))

    def table(self, places: Counts64) -> Floats:
        """Return the counts of the cells at some positions, cells × codes."""
        return np.asarray(self._rows[places].toarray())

    def kinds(self) -> tuple[Counts64, Counts64]:
        """Return groups of cells with the same counts: one cell of each group, and the group of each cell.

        Counts are compared by two random linear combinations modulo 2⁶⁴, so cells are grouped without sorting whole
        rows.
        """
        rng = np.random.default_rng(20)
        sums = np.zeros((2, len(self.names)), dtype=np.uint64)
        whole = self.counts.astype(np.uint64)
        for total in sums:
            weights = rng.integers(1, 2**63, self.size, dtype=np.uint64)
            np.add.at(total, self.places, whole * weights[self.codes])
        _, first, kind = np.unique(sums.T, axis=0, return_index=True, return_inverse=True)
        return first, kind.ravel()


def blocks(cells: int, numbers: int) -> Iterator[slice]:
    """Yield slices of the cells such that a block has a limited number of figures."""
    step = max(CHUNK // max(numbers, 1), 1)
    for start in range(0, cells, step):
        yield slice(start, min(start + step, cells))


def by_value(table: Floats, member: Member) -> Floats:
    """Return figures by category (the last axis) summed by what an attacker infers: the category, or its value."""
    return table if member is None else np.asarray(table @ member)


def worst_posteriors(matrix: Floats, table: Floats, member: Member) -> tuple[Floats, Floats]:
    """Return for each cell of a table of counts the largest posterior given any report, and the largest share."""
    shares = by_value(table, member).max(axis=1) / table.sum(axis=1)
    worst = np.empty(len(table))
    for block in blocks(len(table), matrix.size):
        both = matrix[None] * table[block][:, None, :]
        reported = both.sum(axis=2)
        top = by_value(both, member).max(axis=2)
        worst[block] = np.divide(top, reported, out=np.zeros_like(top), where=reported > 0).max(axis=1)
    return worst, shares


def best_guess(matrix: Floats, truth: CellCounts, member: Member) -> float:
    """Return how often the best guess is right if every cell's true shares are known: Σ_{y,z} max_x M[y,x]·P(x,z)."""
    first, kind = truth.kinds()
    right = 0.0
    weight = np.bincount(kind, minlength=len(first))
    for block in blocks(len(first), matrix.size):
        both = by_value(matrix[None] * truth.table(first[block])[:, None, :], member)
        right += float(weight[block] @ both.max(axis=2).sum(axis=1))
    return right / truth.records


def guess_from_file(matrix: Floats, truth: CellCounts, reports: CellCounts, member: Member) -> float:
    """Return how often a guess is right that uses the file alone: the shares of each cell are estimated by EM.

    It is scored on the true values: Σ M[y, x̂]·P(x̂, z), with x̂ the most likely category by the estimate.
    """
    first, kind = reports.kinds()
    learned = np.empty((len(first), matrix.shape[1]))
    for block in blocks(len(first), matrix.size):
        shares = _estimated(matrix, reports.table(first[block]))
        score = by_value(matrix[None] * shares[:, None, :], member)
        best = score >= score.max(axis=2, keepdims=True) * (1.0 - TIED)
        guessed = best / best.sum(axis=2, keepdims=True)  # cells × reports × values
        by_category = guessed if member is None else guessed @ member.T
        learned[block] = np.einsum("zyx,yx->zx", by_category, matrix)
    place = np.searchsorted(reports.names, truth.cells)
    return float((learned[kind[place], truth.codes] * truth.counts).sum() / truth.records)


def _estimated(matrix: Floats, counts: Floats) -> Floats:
    """Return the shares of each cell by EM from equal ones (equation 3; docs/readings.md, 3.2)."""
    shares = np.full((len(counts), matrix.shape[1]), 1.0 / matrix.shape[1])
    observed = counts / counts.sum(axis=1, keepdims=True)
    moving: Flags = np.ones(len(counts), dtype=np.bool_)
    for _ in range(STEPS):
        now = shares[moving]
        expected = now @ matrix.T
        ratio = np.divide(observed[moving], expected, out=np.zeros_like(expected), where=expected > 0)
        fresh = now * (ratio @ matrix)
        shares[moving] = fresh
        moving[moving] = np.abs(fresh - now).max(axis=1) >= STILL
        if not moving.any():
            break
    return shares


MOST_PAIRS = 4_000_000  # reports × categories of several channels together
SLACK = 1e-9
LIMITS = ("response", "response_posterior", "response_records", "response_epsilon")


def cell_counts(
    rows: Rows, coded: Sequence[tuple[Sequence[str], Sequence[tuple[str, ...]]]], kept: Sequence[str]
) -> CellCounts:
    """Count rows by cell and code: `coded` are columns with their numbered values, several as one product."""
    names, engine = [name for columns, _ in coded for name in columns], rows.engine
    joins, terms, taken, size = [], [], 0, math.prod(len(cells) for _, cells in coded)
    stride = size
    for number, (columns, cells) in enumerate(coded):
        table = f"{rows.view}_codes{number}"
        values = {f"v{i}": list(own) for i, own in enumerate(zip(*cells, strict=True))}
        engine.upload(table, {**values, "code": np.arange(len(cells))})
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
        return CellCounts(_signed(found["cell"]), codes, counts, size)
    sizes = engine.arrays(f"SELECT cell, count(DISTINCT person) AS n FROM ({coded_rows}) AS c GROUP BY cell")
    order = np.argsort(_signed(sizes["cell"]))
    each = f"SELECT person FROM ({coded_rows}) AS c GROUP BY person HAVING count(DISTINCT cell) > 1"
    moving = int(engine.rows(f"SELECT count(*) FROM ({each}) AS p")[0][0])
    persons = np.asarray(sizes["n"]).astype(np.float64)[order]
    return CellCounts(_signed(found["cell"]), codes, counts, size, persons, moving)


def _signed(cells: npt.ArrayLike) -> Counts64:
    """Return hashes of 64 bits as signed integers, whatever type the engine uses."""
    found = np.asarray(cells)
    return found.astype(np.uint64 if found.dtype.kind == "u" else np.int64).view(np.int64)


def given_others(
    source: Rows, written: Rows, channels: Sequence[Channel], kept: Sequence[str], policy: PolicySettings
) -> Entries | None:
    """Return every figure given the other columns; None if the file has a single report and no other column."""
    if not kept and len(channels) < 2:
        return None
    truth = cell_counts(source, [(channel.columns, channel.cells) for channel in channels], kept)
    reports = cell_counts(written, [([channel.name], channel.output_cells) for channel in channels], kept)
    return figures_given(channels, kept, truth, reports, policy)


def figures_given(
    channels: Sequence[Channel], kept: Sequence[str], truth: CellCounts, reports: CellCounts, policy: PolicySettings
) -> Entries:
    """Return the same figures from counts."""
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
            channel.name: _of_channel(channel, member, matrix, truth, reports, (table, truth.totals[large]), policy)
            for channel, member in zip(channels, _members(channels), strict=True)
        },
    }


def public_given(given: Entries) -> Entries:
    """Return what the public reads of the rule: its limits, ε, and the number of records covered by ε alone."""
    return {
        "columns": list(given["columns"]),
        "counted": given["counted"],
        "records_least": given["limits"]["response_records"],
        "small_share": math.ceil(given["small_share"] * 1000 - SLACK) / 1000,
        "epsilon": None if given["epsilon"] is None else math.ceil(given["epsilon"] * 1000 - SLACK) / 1000,
    }


def others_words(columns: Sequence[str]) -> str:
    """Return the names of the other columns of the file as part of a sentence.

    >>> others_words(["sex", "age"]), others_words([])
    ('sex and age', 'the other reports')
    """
    return " and ".join(filter(None, [", ".join(columns[:-1]), columns[-1]])) if columns else "the other reports"


def headline_rows(figures: Entries, beside: Entries | None) -> list[list[str]]:
    """Return the figures given the other columns, which come first if there are other columns."""
    given = figures["given"]
    if given is None or beside is None:
        return []
    others, least = others_words(beside["columns"]), beside["limits"]["response_records"]
    worst = given["worst_posterior"]
    people, largest = beside["counted"], given["largest_share"]
    rows = [
        ["best guess right", percent(given["best_guess"])],
        ["guess learned from the file right", percent(given["guess_from_file"])],
        [f"worst posterior (combinations of {least} {people} or more)", "–" if worst is None else f"{worst:.4f}"],
        ["largest share there without a report", "–" if worst is None else f"{largest:.4f}"],
    ]
    rows = [[f"given {others}: {name}", value] for name, value in rows]
    if beside["small_cells"]:
        rows.append([f"{people} in smaller combinations, covered by ε alone", percent(beside["small_share"])])
    return rows


def _members(channels: Sequence[Channel]) -> Sequence[Member]:
    """Return what each channel hides, among the products of the categories of all."""
    if len(channels) == 1:
        return [None]
    numbers = np.indices([channel.size for channel in channels]).reshape(len(channels), -1)
    return [np.eye(channel.size)[own] for channel, own in zip(channels, numbers, strict=True)]


def _of_channel(
    channel: Channel,
    member: Member,
    matrix: Floats,
    truth: CellCounts,
    reports: CellCounts,
    large: tuple[Floats, Floats],
    policy: PolicySettings,
) -> Entries:
    """Return the figures of the rule for one channel; its δ is that of the design, and at most that of the policy."""
    designed = channel.notes.get("delta")
    delta = policy.response_posterior
    if isinstance(designed, int | float) and 0 < designed < delta:
        delta = float(designed)
    table, totals = large
    worst, shares = worst_posteriors(matrix, table, member)
    allowed = np.maximum(delta, policy.response * shares)
    over = worst > allowed + SLACK
    return {
        "delta": delta,
        "worst_posterior": float(worst.max()) if len(worst) else None,
        "largest_share": float(shares.max()) if len(worst) else None,
        "cells_over": int(over.sum()),
        "share_over": float(totals[over].sum() / truth.records),
        "epsilon_allowed": _epsilon_allowed(shares, allowed),
        "best_guess": best_guess(matrix, truth, member),
        "guess_from_file": guess_from_file(matrix, truth, reports, member),
        "attributes": _attributes(channel, member, matrix, truth, table),
    }


def _attributes(channel: Channel, member: Member, matrix: Floats, truth: CellCounts, table: Floats) -> Entries:
    """Return the same for each single column of a joint channel; δ and the rule refer to the combination."""
    found = {}
    for position, name in enumerate(channel.columns if len(channel.columns) > 1 else ()):
        values = sorted({cell[position] for cell in channel.cells})
        same = np.array([[cell[position] == value for value in values] for cell in channel.cells], dtype=np.float64)
        own = same if member is None else member @ same
        worst = worst_posteriors(matrix, table, own)[0]
        found[name] = {
            "worst_posterior": float(worst.max()) if len(worst) else None,
            "best_guess": best_guess(matrix, truth, own),
        }
    return found


def _epsilon_allowed(shares: Floats, allowed: Floats) -> float | None:
    """Return the largest ε, rounded down, with which every channel keeps the limits in these cells, or None."""
    bound = allowed < 1.0
    if not bound.any():
        return None
    least = float((np.log(allowed[bound] / (1 - allowed[bound])) - np.log(shares[bound] / (1 - shares[bound]))).min())
    return math.floor(least * 100) / 100


def response_findings(given: Entries | None, policy: PolicySettings) -> list[Finding]:
    """Return how a file breaks the rule `response`, each sentence with the nearest release that keeps it."""
    if given is None:
        return []
    listed = [
        _excess_sentence(name, said, given, policy, several=len(given["channels"]) > 1)
        for name, said in given["channels"].items()
        if said["cells_over"]
    ]
    most, people = given["epsilon"], given["counted"]
    if most is None or most > policy.response_epsilon:
        allowed = f"at most {policy.response_epsilon:g} is allowed. The rule is met {_nearest(given, policy)}."
        if given["in_several_cells"]:
            listed.append(
                f"{given['in_several_cells']:,} persons have rows with different values of {_names(given)}, which ε "
                f"alone covers, and {allowed}"
            )
        elif given["small_cells"]:
            listed.append(
                f"{percent(given['small_share'])} of the {people} are in combinations of {_names(given)} with fewer "
                f"than {policy.response_records} {people}, which are covered by ε alone: ε is "
                f"{'infinite' if most is None else format(most, '.3g')}, and {allowed}"
            )
    worst = [said["worst_posterior"] for said in given["channels"].values() if said["worst_posterior"] is not None]
    figures = {"response": max(worst, default=1.0)}
    return [Finding(RULE_RESPONSE, " ".join(listed), figures=figures)] if listed else []


def _excess_sentence(name: str, said: Entries, given: Entries, policy: PolicySettings, several: bool) -> str:
    beside = _names(given) + (" and the other reports" if several and given["columns"] else "")
    return (
        f"Given {beside}, a report of {name} makes a category up to {percent(said['worst_posterior'])} probable. "
        f"Allowed are {percent(said['delta'])}, or {policy.response:g} times the largest share of the combination. "
        f"More is reached in {said['cells_over']} of {given['cells']} combinations, with "
        f"{percent(said['share_over'])} of the {given['counted']}. "
        f"The rule is met {_nearest(given, policy)}."
    )


def _names(given: Entries) -> str:
    return others_words(given["columns"])


def _nearest(given: Entries, policy: PolicySettings) -> str:
    """Return the nearest release that keeps the rule."""
    allowed = [said["epsilon_allowed"] for said in given["channels"].values()]
    if given["small_cells"] or given["in_several_cells"]:
        allowed.append(policy.response_epsilon)
    known = [one for one in allowed if one is not None]
    without = f"without {_names(given)}" if given["columns"] else "with one disguised column"
    if not known or min(known) <= 0:
        return without
    most = math.floor(min(known) / len(given["channels"]) * 100) / 100
    return f"{without}, or with a search in which channel.epsilon is at most {most:g}"


def determined_findings(rows: Rows, study: Study, hidden: Sequence[str], kept: Sequence[str]) -> list[Finding]:
    """Return the plain columns, alone or in pairs, that determine a disguised column in nearly all records.

    Rows of a person that are equal in these columns count once, because the others only repeat the first.
    """
    if not kept:
        return []
    source, engine = rows.source, rows.engine
    complete, view = present(cleaned(source, source.column(name)) for name in rows.complete), rows.view
    if rows.unit is not None:
        alike = ", ".join(
            f"coalesce({cleaned(source, source.column(name))}, '')" for name in (rows.unit, *hidden, *kept)
        )
        view = first_records(engine, view, alike, complete)
    protected = [Protected(name, "disguised") for name in hidden]
    searched = dependences(engine, source, kept, protected, rows=complete, raw=view)
    return findings_of(searched, study, kept)
