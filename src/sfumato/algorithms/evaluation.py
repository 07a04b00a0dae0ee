"""Evaluated nodes of a lattice and their cache, and a set of the candidates that were seen before."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.base.compiled import compiled


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The releases of nodes: their objective values, all minimised, and their violation of the limits.

    A node has one release or several, in consecutive rows. `bounds` are the bounds of the node. `details` are further
    figures that the problem keeps of each release.
    """

    nodes: Codes
    values: Floats
    bounds: Floats
    violation: Floats
    details: Floats

    @property
    def feasible(self) -> Flags:
        """Return whether each release meets the limits."""
        return np.asarray(self.violation == 0)

    def __getitem__(self, rows: Counts64 | Flags) -> Evaluated:
        return Evaluated(*(getattr(self, part)[rows] for part in PARTS))


PARTS = ("nodes", "values", "bounds", "violation", "details")
Evaluate = Callable[[Codes], Evaluated]


class Memory:
    """A cache of all evaluated nodes, in order. A node is evaluated and counted once.

    The index of a node is that of its first release. `known` are nodes that an earlier run evaluated. They are counted
    when they are requested, without an evaluation.
    """

    def __init__(self, evaluate: Evaluate, shape: tuple[int, ...], known: Evaluated | None = None) -> None:
        self._evaluate = evaluate
        self.shape = shape
        self.position: dict[Hashable, int] = {}
        self._parts: list[Evaluated] = []
        self._all: Evaluated | None = None
        self._rows = 0
        self._known = known
        strides = [math.prod(shape[j + 1 :]) for j in range(len(shape))]
        self._strides = np.array(strides, dtype=np.int64) if math.prod(shape) < 1 << 62 else None

    @property
    def count(self) -> int:
        """Return the number of different nodes that were evaluated."""
        return len(self.position)

    def number(self, nodes: Codes) -> Counts64:
        """Return nodes as numbers in the order of their levels, for lattices whose nodes can be numbered."""
        if self._strides is None:
            raise OverflowError("a lattice with more nodes than whole numbers of 62 bits")
        return np.asarray(nodes.astype(np.int64) @ self._strides)

    def keys(self, nodes: Codes) -> list[Hashable]:
        """Return a key of each node, for lattices of any size."""
        if self._strides is None:
            return [node.tobytes() for node in np.ascontiguousarray(nodes, dtype=np.int32)]
        return list(self.number(nodes).tolist())

    def ask(self, nodes: Codes) -> Counts64:
        """Return the indices of nodes in the memory, and evaluate those that are new."""
        keys = self.keys(nodes)
        new: dict[Hashable, int] = {}
        for row, key in enumerate(keys):
            if key not in self.position and key not in new:
                new[key] = row
        if new:
            made = self._looked_up(list(new), nodes[list(new.values())])
            self._parts.append(made)
            self._all = None
            for key, row in zip(new, first_rows(made.nodes).tolist(), strict=True):
                self.position[key] = self._rows + row
            self._rows += len(made.nodes)
        return np.array([self.position[key] for key in keys], dtype=np.int64)

    def seen(self, nodes: Codes) -> Flags:
        """Return which nodes were evaluated before."""
        return np.array([key in self.position for key in self.keys(nodes)], dtype=np.bool_)

    def _looked_up(self, keys: list[Hashable], nodes: Codes) -> Evaluated:
        """Return the values of new nodes: those of the earlier run if it has them, else evaluated."""
        if self._known is None:
            return self._evaluate(nodes)
        places = self._known_place
        asked = [key not in places for key in keys]
        new = self._evaluate(nodes[asked]) if any(asked) else None
        begin = iter(np.split(np.arange(len(new.nodes)), first_rows(new.nodes)[1:]) if new is not None else [])
        parts = [
            new[next(begin)] if new is not None and strange else self._known[places[key]]
            for key, strange in zip(keys, asked, strict=True)
        ]
        return _joined(parts)

    @cached_property
    def _known_place(self) -> dict[Hashable, Counts64]:
        known = self._known
        if known is None or not len(known.nodes):
            return {}
        first = first_rows(known.nodes)
        rows = np.split(np.arange(len(known.nodes)), first[1:])
        return dict(zip(self.keys(known.nodes[first]), rows, strict=True))

    @property
    def all(self) -> Evaluated:
        """Return all evaluated releases in order."""
        if self._all is None:
            self._all = _joined(self._parts)
            self._parts = [self._all]
        return self._all

    @property
    def first(self) -> Counts64:
        """Return the first release of each node, in the order of evaluation."""
        return np.fromiter(self.position.values(), dtype=np.int64, count=len(self.position))


def _joined(parts: list[Evaluated]) -> Evaluated:
    return Evaluated(*(np.concatenate([getattr(part, name) for part in parts]) for name in PARTS))


def first_rows(nodes: Codes) -> Counts64:
    """Return the first row of each node among releases that are grouped by node."""
    new = np.ones(len(nodes), dtype=np.bool_)
    new[1:] = (nodes[1:] != nodes[:-1]).any(axis=1)
    return np.flatnonzero(new)


def neighbours(nodes: Codes, shape: tuple[int, ...]) -> Codes:
    """Return every node one level up or down in one column, each once."""
    steps = []
    for column, size in enumerate(shape):
        for step in (-1, 1):
            moved = nodes.copy()
            moved[:, column] += step
            steps.append(moved[(moved[:, column] >= 0) & (moved[:, column] < size)])
    return np.unique(np.concatenate(steps), axis=0)


Hashes = npt.NDArray[np.uint64]


class Seen:
    """A set of 64-bit numbers that identify candidates. It grows by doubling.

    >>> seen = Seen()
    >>> seen.new(np.array([3, 5, 3], dtype=np.uint64)).tolist(), seen.new(np.array([5, 0], dtype=np.uint64)).tolist()
    ([True, True, False], [False, True])
    >>> len(seen)
    3
    """

    def __init__(self, keys: Hashes | None = None) -> None:
        self._table = np.zeros(1 << 12, dtype=np.uint64)
        self._count = 0
        if keys is not None:
            self.new(keys)

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> Hashes:
        """Return all numbers in ascending order."""
        return np.sort(self._table[self._table > 0])

    def new(self, hashes: Hashes) -> Flags:
        """Add numbers, and return which were new."""
        while 2 * (self._count + len(hashes)) > len(self._table):
            larger = np.zeros(2 * len(self._table), dtype=np.uint64)
            insert(larger, self._table[self._table > 0])
            self._table = larger
        fresh = insert(self._table, hashes)
        self._count += int(fresh.sum())
        return fresh


@compiled
def insert(table: Hashes, hashes: Hashes) -> Flags:
    """Insert numbers by open addressing. 0 marks an empty slot, so the number 0 is stored as another number."""
    mask = np.uint64(len(table) - 1)
    fresh = np.zeros(len(hashes), np.bool_)
    for i in range(len(hashes)):
        key = hashes[i] if hashes[i] != 0 else np.uint64(0x9E3779B97F4A7C15)
        slot = (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20) & mask
        while table[slot] != 0 and table[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] == 0:
            table[slot] = key
            fresh[i] = True
    return fresh
