"""What an algorithm asks of a problem, and the memory that never asks twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.runtime.arrays import Codes, Counts64, Flags, Floats


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Nodes with their objective values, all minimised, the bounds they give, and how far each breaks the limits."""

    nodes: Codes
    values: Floats
    bounds: Floats
    violation: Floats

    @property
    def feasible(self) -> Flags:
        """Whether each meets the limits."""
        return np.asarray(self.violation == 0)

    def __getitem__(self, rows: Counts64 | Flags) -> Evaluated:
        return Evaluated(self.nodes[rows], self.values[rows], self.bounds[rows], self.violation[rows])


Evaluate = Callable[[Codes], Evaluated]


class Memory:
    """Every node evaluated so far, in order. Asking for a node again costs nothing and is not counted again.

    `known` are nodes that an earlier run evaluated: asking for one is counted, and costs nothing either.
    """

    def __init__(self, evaluate: Evaluate, shape: tuple[int, ...], known: Evaluated | None = None) -> None:
        self._evaluate = evaluate
        self.shape = shape
        self.place: dict[Hashable, int] = {}
        self._parts: list[Evaluated] = []
        self._all: Evaluated | None = None
        self._known = known
        strides = [math.prod(shape[j + 1 :]) for j in range(len(shape))]
        self._strides = np.array(strides, dtype=np.int64) if math.prod(shape) < 1 << 62 else None

    @property
    def count(self) -> int:
        """Unique evaluations."""
        return len(self.place)

    def number(self, nodes: Codes) -> Counts64:
        """Nodes as numbers, in the order of their levels; only where the lattice has so few that they have one."""
        if self._strides is None:
            raise OverflowError("a lattice with more nodes than whole numbers of 62 bits")
        return np.asarray(nodes.astype(np.int64) @ self._strides)

    def keys(self, nodes: Codes) -> list[Hashable]:
        """What tells nodes apart, however many there are."""
        if self._strides is None:
            return [node.tobytes() for node in np.ascontiguousarray(nodes, dtype=np.int32)]
        return list(self.number(nodes).tolist())

    def ask(self, nodes: Codes) -> Counts64:
        """The places of nodes in the memory, evaluating those that are new."""
        keys = self.keys(nodes)
        new: dict[Hashable, int] = {}
        for row, key in enumerate(keys):
            if key not in self.place and key not in new:
                new[key] = row
        if new:
            self._parts.append(self._looked_up(list(new), nodes[list(new.values())]))
            self._all = None
            for key in new:
                self.place[key] = len(self.place)
        return np.array([self.place[key] for key in keys], dtype=np.int64)

    def seen(self, nodes: Codes) -> Flags:
        """Which nodes were evaluated before."""
        return np.array([key in self.place for key in self.keys(nodes)], dtype=np.bool_)

    def _looked_up(self, keys: list[Hashable], nodes: Codes) -> Evaluated:
        """New nodes with their values: from the earlier run where it knew them, else evaluated."""
        if self._known is None:
            return self._evaluate(nodes)
        place_of = self._known_place
        known = np.array([key in place_of for key in keys], dtype=np.bool_)
        held = self._known[np.array([place_of[key] for key in keys if key in place_of], dtype=np.int64)]
        if known.all():
            return held
        asked = self._evaluate(nodes[~known])

        def merged(one: Any, two: Any) -> Any:
            both = np.empty((len(keys), *one.shape[1:]), dtype=one.dtype)
            both[known], both[~known] = one, two
            return both

        parts = ("values", "bounds", "violation")
        return Evaluated(nodes, *(merged(getattr(held, part), getattr(asked, part)) for part in parts))

    @cached_property
    def _known_place(self) -> dict[Hashable, int]:
        known = self._known
        return {} if known is None else {key: row for row, key in enumerate(self.keys(known.nodes))}

    @property
    def all(self) -> Evaluated:
        """All that was evaluated, in order."""
        if self._all is None:
            self._all = Evaluated(
                np.concatenate([part.nodes for part in self._parts]),
                np.concatenate([part.values for part in self._parts]),
                np.concatenate([part.bounds for part in self._parts]),
                np.concatenate([part.violation for part in self._parts]),
            )
            self._parts = [self._all]
        return self._all


def neighbours(nodes: Codes, shape: tuple[int, ...]) -> Codes:
    """Every node one level up or down in one column, each once."""
    steps = []
    for column, size in enumerate(shape):
        for step in (-1, 1):
            moved = nodes.copy()
            moved[:, column] += step
            steps.append(moved[(moved[:, column] >= 0) & (moved[:, column] < size)])
    return np.unique(np.concatenate(steps), axis=0)
