"""What compiled loops of a lattice are given: which classes may go, and room for the releases of nodes.

Room is made here, in plain numpy: a loop that allocates takes seconds longer to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.measures.criteria import Tally

Keys = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]  # as narrow as the columns allow
Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]

# Columns of the figures of a release, and of a node before any suppression.
GONE, SUM_K, SUM_L, WRONG, RECORDS = range(5)
INDICES = 5
FAILING = GONE  # of a node: the records that no coarser node can save from suppression

MEASURED, DEMANDED, SOUGHT = range(3)
FEW = 8  # a budget of fewer records than this many times the classes is gone through size by size
EXPECTED = 16  # releases beyond one for each node that there is room for at first


class Rule(NamedTuple):
    """Which classes go. `kinds` are class criteria; `parameters`, `modes` and `limits` say how each is read.

    At most `budget` records go. `every` asks for all thresholds of what is sought, else for the highest alone.
    Classes count units; `mass` is the place of their records in a tally, or -1 where every record is a unit.
    `people` is the place of the population in a tally, or -1; sums of own values and labels are taken where `own` and
    `label` (the places of a column's values) say so. `sizes` says that class sizes alone decide and are all there is.
    """

    kinds: Counts64
    parameters: Floats
    modes: Counts64
    limits: Floats
    counts: Flags
    budget: int
    every: bool
    mass: int
    people: int
    own: int
    label: Counts64
    sizes: bool


class Maps(NamedTuple):
    """Where a column's group stands in a key, and what becomes of it.

    `lookups[lookup_start[j, a, b] + group]` is the group at level b of a group at level a of column j, and
    `covers[cover_start[j, b] + group]` the leaves under it. The first `bits` words of a tally are sets of values, which
    are joined; the others are counts, which are added.
    """

    shift: Counts64
    mask: Counts64
    lookups: Keys
    lookup_start: Counts64
    covers: Counts64
    cover_start: Counts64
    bits: int


class Held(NamedTuple):
    """One buffer of classes per column, and behind them the table itself.

    `level` is the level that a column's own buffer holds, `at` the buffer in force at each depth (-1 where there is
    none), `current` the node.
    """

    keys: Keys
    rows: Rows
    tally: Tally
    number: Counts64
    level: Counts64
    at: Counts64
    current: Counts64
    slots: Codes


class Space(NamedTuple):
    """What the classes of one node have, and those that may go; used again for each node.

    Of classes: `value` and `level` of each criterion, whether each is `out` because of what is demanded, and `risky`
    because a threshold may take it out. Of the risky ones, in order of the last criterion: `features` (what is taken
    from each sum), `risk_value` and `risk_level`, and whether each is `gone`. `bounds`, `numbers` and `sums` have a few
    rows of working figures, of each criterion and of each sum.
    """

    value: Floats
    level: Floats
    out: Flags
    risky: Flags
    places: Codes
    spare: Codes
    features: Counts64
    risk_value: Floats
    risk_level: Floats
    steps: Floats
    gone: Flags
    bounds: Floats
    numbers: Counts64
    sums: Counts64
    scratch: Floats
    small: Counts64


class Walked(NamedTuple):
    """The releases of nodes, those of a node together and its highest threshold first, and what each node has.

    `start[i]:start[i + 1]` are the releases of node i; `whole` and `best` have the sums of the node before suppression
    and the best level of each criterion that the budget reaches.
    """

    start: Counts64
    figures: Counts64
    hidden: Counts64
    worst: Floats
    whole: Counts64
    best: Floats


def held_classes(keys: Keys, rows: Rows, tally: Tally, columns: int) -> Held:
    """So many buffers, and behind them the classes that a walk starts from."""
    size = len(keys)
    held = Held(
        np.empty((columns + 1, size), keys.dtype),
        np.empty((columns + 1, size), rows.dtype),
        np.empty((columns + 1, *tally.shape), np.int32),
        np.zeros(columns + 1, np.int64),
        np.zeros(columns, np.int64),
        np.full(columns, columns, np.int64),
        np.full(columns, -1, np.int64),
        np.empty(slots_for(size), np.int32),
    )
    held.keys[columns], held.rows[columns], held.tally[columns], held.number[columns] = keys, rows, tally, size
    return held


def slots_for(size: int) -> int:
    """Room for a sparse hash table of so many classes."""
    return 1 << max(int(8 * size - 1).bit_length(), 3)


def space_for(classes: int, columns: int, width: int, rule: Rule) -> Space:
    """Room for what the classes of a node have."""
    criteria = len(rule.kinds)
    several = 0 if rule.sizes else classes
    risk = min(classes, criteria * rule.budget)  # by each criterion at most the budget goes, one record or more a class
    return Space(
        value=np.empty((criteria, several)),
        level=np.empty((criteria, several)),
        out=np.zeros(several, np.bool_),
        risky=np.zeros(several, np.bool_),
        places=np.empty(classes, np.int32),
        spare=np.empty(classes, np.int32),
        features=np.empty((0 if rule.sizes else risk, INDICES + columns), np.int64),
        risk_value=np.empty((criteria, risk)),
        risk_level=np.empty((criteria, risk)),
        steps=np.empty((criteria, risk + 1)),
        gone=np.empty(risk, np.bool_),
        bounds=np.empty((5, criteria)),
        numbers=np.empty((2, criteria), np.int64),
        sums=np.empty((2, INDICES + columns), np.int64),
        scratch=np.empty(max(3 * width + 1, risk)),
        small=np.empty(min(rule.budget, FEW * classes) + 2 if rule.sizes else 0, np.int64),
    )


def empty_walk(asked: int, columns: int, criteria: int) -> Walked:
    """Room for the releases of nodes."""
    return Walked(
        np.zeros(asked + 1, np.int64),
        np.empty((asked + EXPECTED, INDICES), np.int64),
        np.empty((asked + EXPECTED, columns), np.int64),
        np.empty((asked + EXPECTED, criteria)),
        np.empty((asked, INDICES), np.int64),
        np.empty((asked, criteria)),
    )


def with_room(walked: Walked) -> Walked:
    """The same with room for twice as many releases."""
    double = [np.concatenate([part, np.empty_like(part)]) for part in (walked.figures, walked.hidden, walked.worst)]
    return walked._replace(figures=double[0], hidden=double[1], worst=double[2])


def trimmed(walked: Walked) -> Walked:
    """What was walked without the room that is left."""
    used = int(walked.start[-1])
    return walked._replace(figures=walked.figures[:used], hidden=walked.hidden[:used], worst=walked.worst[:used])
