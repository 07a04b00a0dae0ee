"""The joint distribution of true categories and other released columns, and what a report adds to it.

A cell is a combination of values of the other columns. An attacker who knows a record's cell starts from the shares
of that cell, so every figure here is worked out cell by cell, from exact counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.runtime.arrays import Counts64, Flags, Floats

CHUNK = 2_000_000  # numbers in one block of cells × reports × categories
STEPS = 400  # of EM in a cell; the best guess is settled long before
STILL = 1e-7
TIED = 1e-9  # scores that differ by less are one score: the guess is drawn among them


@dataclass(frozen=True, eq=False)
class CellCounts:
    """How many records (or persons) have each code in each cell; one entry for each pair that occurs.

    `cells` are any whole numbers that tell the cells apart, `codes` positions of categories or of reports. `persons`
    are the persons of each cell in order, where one may have several codes, and `moving` is how many persons are in
    more than one cell.
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
        """The persons of each cell; its records, where records are not of persons."""
        return self.totals if self.persons is None else self.persons

    @property
    def records(self) -> float:
        return float(self.counts.sum())

    @cached_property
    def _sorted(self) -> tuple[Counts64, Counts64]:
        """The entries by cell, and where those of each cell begin."""
        order = np.argsort(self.places, kind="stable")
        begins = np.searchsorted(self.places[order], np.arange(len(self.names) + 1))
        return order, begins

    def table(self, places: Counts64) -> Floats:
        """The counts of the cells at some positions, cells × codes."""
        order, begins = self._sorted
        lengths = begins[places + 1] - begins[places]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        entries = order[np.repeat(begins[places], lengths) + within]
        dense = np.zeros((len(places), self.size))
        np.add.at(dense, (np.repeat(np.arange(len(places)), lengths), self.codes[entries]), self.counts[entries])
        return dense

    def kinds(self) -> tuple[Counts64, Counts64]:
        """Cells with the same counts are one kind: a cell of each kind, and the kind of each cell.

        Counts are weighted by numbers drawn at random and added up without regard to overflow, twice over.
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
    """Slices of the cells, so that one block of them takes a bounded number of numbers."""
    step = max(CHUNK // max(numbers, 1), 1)
    for start in range(0, cells, step):
        yield slice(start, min(start + step, cells))


@dataclass(frozen=True, eq=False)
class Target:
    """What an attacker wants to know: `member[x, t]` says whether category x has the value t; None: the category."""

    member: Floats | None = None

    def of(self, table: Floats) -> Floats:
        """Numbers by category (the last axis) added up by value."""
        return table if self.member is None else np.asarray(table @ self.member)


def worst_posteriors(matrix: Floats, table: Floats, target: Target) -> tuple[Floats, Floats]:
    """For each cell of a table of counts: the largest posterior given any report, and the largest share."""
    shares = target.of(table).max(axis=1) / table.sum(axis=1)
    worst = np.empty(len(table))
    for block in blocks(len(table), matrix.size):
        both = matrix[None] * table[block][:, None, :]
        reported = both.sum(axis=2)
        top = target.of(both).max(axis=2)
        worst[block] = np.divide(top, reported, out=np.zeros_like(top), where=reported > 0).max(axis=1)
    return worst, shares


def best_guess(matrix: Floats, truth: CellCounts, target: Target) -> float:
    """How often the best guess is right for who knows every cell's true shares: Σ_{y,z} max_x M[y,x]·P(x,z)."""
    first, kind = truth.kinds()
    right = 0.0
    weight = np.bincount(kind, minlength=len(first))
    for block in blocks(len(first), matrix.size):
        both = target.of(matrix[None] * truth.table(first[block])[:, None, :])
        right += float(weight[block] @ both.max(axis=2).sum(axis=1))
    return right / truth.records


def guess_from_file(matrix: Floats, truth: CellCounts, reports: CellCounts, target: Target) -> float:
    """How often a guess is right that was learned from the file alone: the shares of each cell estimated by EM.

    Scored on the truth: Σ M[y, x̂]·P(x̂, z), with x̂ the most likely category by the estimate.
    """
    first, kind = reports.kinds()
    learned = np.empty((len(first), matrix.shape[1]))  # by category: how probable a report is that makes it the guess
    for block in blocks(len(first), matrix.size):
        shares = _estimated(matrix, reports.table(first[block]))
        score = target.of(matrix[None] * shares[:, None, :])
        best = score >= score.max(axis=2, keepdims=True) * (1.0 - TIED)
        guessed = best / best.sum(axis=2, keepdims=True)  # cells × reports × values
        by_category = guessed if target.member is None else guessed @ target.member.T
        learned[block] = np.einsum("zyx,yx->zx", by_category, matrix)
    place = np.searchsorted(reports.names, truth.cells)
    return float((learned[kind[place], truth.codes] * truth.counts).sum() / truth.records)


def _estimated(matrix: Floats, counts: Floats) -> Floats:
    """The shares of each cell by EM (equation 3; docs/readings.md, 3.2), from equal ones."""
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
