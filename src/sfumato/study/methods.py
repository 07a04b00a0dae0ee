"""The table of methods: their names, settings and algorithms, and what is true of their plans.

This table and the folder `methods/` are the only places that name a method. Other modules ask for a capability, so that
a new method needs a row here and no change to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LIMITED = ("max_suppression", "constraints", "weights", "seed")


@dataclass(frozen=True)
class Method:
    """What other modules may know of a method without its name."""

    section: str = ""  # of the run file; empty where its settings are under [search]
    algorithms: Mapping[str, str] = field(default_factory=dict)  # with what the page says of each; the first is default
    suppression: tuple[str, ...] = ()  # the suppression rules it knows
    own: tuple[str, ...] = ()  # settings of [search] that only this method reads
    beside: tuple[str, ...] = ()  # settings of [search] that it reads beside its own section
    seed: tuple[str, ...] = ()  # where the run file has its seed; empty where it is under [search]
    title: str = ""  # in comparisons with the methods of others
    levels: bool = False  # a plan has one level of the tree for each column
    neighbours: bool = False  # a plan joins neighbouring values of a column, in the order of its tree or values
    by_record: bool = False  # equal values may have different labels in different records
    lower_bound: bool = False  # its search proves a lower bound of the loss, with dual prices
    problems: bool = False  # it solves the four problems, whose suppression rules are its own
    keeps_columns: bool = False  # other columns are released only where `keep` names them

    @property
    def recodes(self) -> bool:
        """Whether a plan gives equal values of a column the same label everywhere."""
        return self.levels or self.neighbours

    @property
    def bounded(self) -> bool:
        """Whether every plan is a local recoding too, so that a lower bound of local recodings holds for it."""
        return self.recodes or self.lower_bound


METHODS: dict[str, Method] = {
    "lattice": Method(
        algorithms={
            "exact": "exact: the complete front, proven",
            "exhaustive": "exhaustive: every node",
            "pbg_ea": "evolutionary: the best found",
            "best_first": "best first: for very large lattices",
        },
        suppression=("threshold", "paper"),
        own=("iterations", "evaluations"),
        title="lattice front (ours)",
        levels=True,
    ),
    "cuts": Method(
        algorithms={"memetic": "memetic: the best found", "nsga2": "NSGA-II, as published"},
        suppression=("none", "within", "below_mean", "safe"),
        own=("problem", "prefer", "generations", "local_search"),
        title="cuts (ours)",
        neighbours=True,
        problems=True,
    ),
    "channel": Method(section="channel", seed=("channel", "seed"), keeps_columns=True),
    "groups": Method(section="groups", seed=("groups", "attack", "seed")),
    "local": Method(section="local", beside=LIMITED, by_record=True, lower_bound=True),
    "cells": Method(section="cells", beside=LIMITED, by_record=True),
}
ALGORITHMS = {name: tuple(method.algorithms) for name, method in METHODS.items() if method.algorithms}
SYSTEM_OF = {setting: name for name, method in METHODS.items() for setting in method.own}
SUPPRESSION = {name: method.suppression for name, method in METHODS.items() if method.suppression}
WITHIN = {name: method.beside for name, method in METHODS.items() if method.beside}
SECTIONS = {method.section: name for name, method in METHODS.items() if method.section}
USUAL = next(iter(METHODS))  # where the run file names none
WITH_PROBLEMS = next(name for name, method in METHODS.items() if method.problems)


def listed(names: tuple[str, ...]) -> str:
    """Return names as a sentence lists them.

    >>> listed(("exact", "exhaustive", "best_first"))
    'exact, exhaustive or best_first'
    """
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
