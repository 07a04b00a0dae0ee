"""The arguments of the compiled loops of a lattice: the rule of suppression, and arrays for the releases of nodes.

The arrays are allocated here, because a compiled loop that allocates takes seconds longer to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.base.arrays import Codes, Counts64, Flags, Floats
from sfumato.measures.criteria import Tally

Keys = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]  # the narrowest type that the columns allow
Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]

# Columns of the figures of a release, and of a node before suppression.
GONE, SUM_K, SUM_L, WRONG, RECORDS = range(5)
INDICES = 5
FAILING = GONE  # of a node: the records that are suppressed in every finer node too

MEASURED, CONSTRAINT, OBJECTIVE = range(3)
FEW = 8  # with a budget below this number times the classes, sizes are tried one by one
EXPECTED = 16  # first allocation: releases in addition to one for each node


class Rule(NamedTuple):
    """The rule of suppression: class criteria (`kinds`) with their `parameters`, `modes` and `limits`.

    At most `budget` records are suppressed. With `every`, all thresholds of objectives are used, else the highest.
    Classes count units. The position of their records in a tally is `mass`, or -1 if every record is a unit. The
    position of the population is `people`, or -1. Sums of own values and labels are computed at the positions `own` and
    `label`. With `sizes`, size is the only criterion and classes have no tally.
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
    """The position of a column's group in a key, and the groups at other levels.

    A group at level a of column j is in the group `lookups[lookup_start[j, a, b] + group]` at level b. A group at level
    b has `covers[cover_start[j, b] + group]` leaves. The first `bits` words of a tally are sets of values, which are
    united by a roll-up. The others are counts, which are added.
    """

    shift: Counts64
    mask: Counts64
    lookups: Keys
    lookup_start: Counts64
    covers: Counts64
    cover_start: Counts64
    bits: int


class Held(NamedTuple):
    """One buffer of classes for each column, and a last one for the table.

    The level of a column's own buffer is `level`. The buffer that is valid at each depth is `at`, or -1 if there is
    none. The node is `current`.
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
    """Working arrays for the classes of one node, which are used for all nodes.

    Each class has the `value` and the `level` of each criterion. It is `out` if it violates a limit, and `risky` if a
    threshold may suppress it. Risky classes are in the order of the last criterion. Each has `features` (its part of
    each sum), `risk_value` and `risk_level`, and is `gone` if it is suppressed. Other arrays have a few rows for each
    criterion (`bounds` and `numbers`) and for each sum (`sums`).
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
    """The releases of nodes. Node i has the releases `start[i]:start[i + 1]`, the highest threshold first.

    For each node, `whole` has the sums before suppression and `best` the best level of each criterion within the
    budget.
    """

    start: Counts64
    figures: Counts64
    hidden: Counts64
    worst: Floats
    whole: Counts64
    best: Floats


def held_classes(keys: Keys, rows: Rows, tally: Tally, columns: int) -> Held:
    """Return empty buffers, followed by the classes at which a walk begins."""
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
    """Return an empty, sparse hash table for a number of classes."""
    return 1 << max(int(8 * size - 1).bit_length(), 3)


def space_for(classes: int, columns: int, width: int, rule: Rule) -> Space:
    """Return the working arrays for the classes of a node."""
    criteria = len(rule.kinds)
    several = 0 if rule.sizes else classes
    risk = min(
        classes, criteria * rule.budget
    )  # each criterion suppresses at most `budget` classes, of one record each
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
    """Return empty arrays for the releases of nodes."""
    return Walked(
        np.zeros(asked + 1, np.int64),
        np.empty((asked + EXPECTED, INDICES), np.int64),
        np.empty((asked + EXPECTED, columns), np.int64),
        np.empty((asked + EXPECTED, criteria)),
        np.empty((asked, INDICES), np.int64),
        np.empty((asked, criteria)),
    )


def with_room(walked: Walked) -> Walked:
    """Return the releases in arrays of twice the length."""
    double = [np.concatenate([part, np.empty_like(part)]) for part in (walked.figures, walked.hidden, walked.worst)]
    return walked._replace(figures=double[0], hidden=double[1], worst=double[2])


def trimmed(walked: Walked) -> Walked:
    """Return the releases in arrays without unused rows."""
    used = int(walked.start[-1])
    return walked._replace(figures=walked.figures[:used], hidden=walked.hidden[:used], worst=walked.worst[:used])
