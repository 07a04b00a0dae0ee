"""What the compiled walk carries beside the records of a class: sensitive values, labels, people of the population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.errors import MeasureError
from sfumato.measures.bits import bits_of
from sfumato.measures.criteria import EQUAL, HIERARCHICAL, ORDERED, Secrets, Tally
from sfumato.measures.privacy.t_closeness import in_order
from sfumato.runtime.arrays import Counts64
from sfumato.systems.lattice.rule import Keys, Rows
from sfumato.tables.frequency import FrequencyTable, Population, ValueCounts

TALLY_CELLS = 150_000_000  # of all buffers together; beyond it sensitive counts are left to the plain evaluator
WORD = 32  # sensitive values to a word, where it matters only which ones a class has


@dataclass(frozen=True)
class Reads:
    """What a search reads: how often sensitive values occur, or only which ones do, labels, the population."""

    counts: bool = False
    sets: bool = False
    label: bool = False
    people: bool = False


NOTHING = Reads()


@dataclass(frozen=True, eq=False)
class Tallies:
    """Figures of each tuple side by side: sensitive values, then labels (`label` says where), then the population.

    The first `bits` words are sets of values. `people` is the place of the population, or -1.
    """

    tally: Tally
    secrets: Secrets
    label: Counts64
    people: int
    mass: int
    bits: int

    @classmethod
    def of(cls, table: FrequencyTable, reads: Reads) -> Tallies:
        """The figures of a table's tuples, with room for the population."""
        units = table.units
        columns = list(table.sensitive.values()) if reads.counts or reads.sets else []
        sets = reads.sets and not reads.counts and units is None
        if units is not None:
            columns = [replace(values, counts=units.held_in(values.domain.name)) for values in columns]
        secrets = secrets_of(columns, sets, None if units is None else units.number)
        labels = [table.label] if reads.label and table.label is not None else []
        begin = int(secrets.start[-1])
        end = begin + sum(len(values.domain.labels) for values in labels)
        people, mass = (end if reads.people else -1), (-1 if units is None else end + reads.people)
        wide = end + reads.people + (units is not None)
        if len(table.domains) * table.tuples * wide > TALLY_CELLS:
            raise MeasureError("too many sensitive values for the walk", expected="the plain evaluator")
        tally = np.zeros((table.tuples, wide), dtype=np.int32)
        if units is not None:
            tally[:, mass] = table.counts
        for start, values in zip((*secrets.start.tolist(), begin), (*columns, *labels), strict=False):
            if sets and start < begin:
                place = bits_of(values.domain)[values.values].astype(np.int64)
                known = place >= 0  # a missing value is none
                word, bit = np.divmod(place[known], WORD)
                there = np.left_shift(np.uint32(1), bit.astype(np.uint32))
                np.bitwise_or.at(tally.view(np.uint32), (values.tuple_of[known], start + word), there)
            else:
                tally[values.tuple_of, start + values.values] = values.counts
        label = np.array([begin, end], dtype=np.int64)
        return cls(tally, secrets, label, people, mass, begin if sets else 0)

    @property
    def width(self) -> int:
        return int(self.tally.shape[1])

    def with_people(self, people: Population, theirs: Keys, keys: Keys, rows: Rows) -> tuple[Keys, Rows, Tally]:
        """Keys, records and figures with the tuples of the population: those that the table lacks have no records."""
        if people.counts.sum() >= 1 << 31 or (people.codes < 0).any():
            raise MeasureError("a population that the walk cannot count", expected="the plain evaluator")
        every, number = np.unique(np.concatenate([keys.astype(np.uint64), theirs]), return_inverse=True)
        here, there = number[: len(keys)], number[len(keys) :]
        all_rows = np.zeros(len(every), dtype=rows.dtype)
        all_rows[here] = rows
        tally = np.zeros((len(every), self.width), dtype=np.int32)
        tally[here] = self.tally
        tally[:, self.people] = np.bincount(there, weights=people.counts, minlength=len(every))
        return every.astype(np.uint32) if keys.dtype == np.uint32 else every, all_rows, tally


def secrets_of(columns: Sequence[ValueCounts], sets: bool = False, units: int | None = None) -> Secrets:
    """The sensitive columns as compiled loops read them; as `sets` their values take a bit each.

    With a number of `units` the counts are of units that hold a value.
    """
    widths = [len(values.domain.labels) for values in columns]
    start = (
        np.concatenate([[0], np.cumsum([int(bits_of(v.domain).max(initial=0)) // WORD + 1 for v in columns])])
        if sets
        else np.concatenate([[0], np.cumsum(widths)])
    )
    start = start.astype(np.int64)
    whole, orders, parents = [], [], []
    tallest = max((values.domain.hierarchy.height for values in columns), default=0)
    levels = np.zeros((len(columns), tallest + 1), dtype=np.int64)
    for b, values in enumerate(columns):
        counts = np.bincount(values.values, weights=values.counts, minlength=widths[b])
        shares = counts / max(counts.sum() if units is None else units, 1.0)
        whole.append(shares)
        orders.append(start[b] + in_order(shares, values.domain))
        tree = values.domain.hierarchy
        if values.domain.distance == "hierarchical" and len(values.domain.labels) != len(tree.leaves):
            raise MeasureError("labels behind the leaves of a tree", expected="the plain evaluator")
        levels[b, : tree.height + 1] = [len(level) for level in tree.levels]
        parents.append(np.concatenate([np.asarray(step) for step in (*tree.parents, np.empty(0))]))
    kinds = {"equal": EQUAL, "ordered": ORDERED, "hierarchical": HIERARCHICAL}

    def joined(parts: Sequence[Any]) -> Counts64:
        return np.concatenate([*parts, np.empty(0)]).astype(np.int64)

    def starts(parts: Sequence[Any]) -> Counts64:
        return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)

    return Secrets(
        start,
        np.concatenate([*whole, np.empty(0)]),
        np.array([kinds[values.domain.distance] for values in columns], dtype=np.int64),
        joined(orders),
        starts(orders),
        joined(parents),
        starts(parents),
        levels,
        np.array([values.domain.hierarchy.height for values in columns], dtype=np.int64),
        sets,
        units is not None,
    )
