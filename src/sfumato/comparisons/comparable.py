"""Whether baselines can be computed for a study, and whether its fronts can be compared with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.errors import InputError, StudyError, UnreachableError, shortened
from sfumato.front import Front
from sfumato.sources.roles import Role
from sfumato.study import Study
from sfumato.systems.lattice.search import LIMITS
from sfumato.tables.frequency import FrequencyTable

KS = (2, 5, 10, 20, 50, 100)


def asked_of(ks: Sequence[int] | None, records: int) -> list[int]:
    """The required k, rising; by default those of KS that a class can have."""
    asked = sorted(set(KS if ks is None else ks))
    if not asked or asked[0] < 1:
        raise InputError(
            f"k = {asked[0]}" if asked else "no k is given", expected="whole numbers from 1", remedy="k of 5 and 10"
        )
    if ks is None:
        return [k for k in asked if k <= records] or [records]
    if asked[-1] > records:
        raise UnreachableError(
            f"k = {asked[-1]:,} is more than the {records:,} records of the table",
            expected="a k of at most the number of records",
            remedy=f"k of at most {records}",
        )
    return asked


def refuse_persons(study: Study) -> None:
    """Raise where rows belong to persons: the other methods divide records, so their k would be another figure."""
    for name in study.named(Role.UNIT):
        raise StudyError(
            f"{name} is a unit column, and a comparison of methods counts records",
            expected="a table in which every record is a person",
            remedy=f"one record for each value of {name}; or, to compare records, give {name} the role identifier",
        )


def refuse_table(table: FrequencyTable, l: int) -> None:
    """Raise unless the table is an original one that has l different sensitive values."""
    if table.removed:
        raise StudyError(
            f"{table.removed} records were removed from the table before",
            expected="the original table",
            remedy="compare on the table that the release was made from",
        )
    if l < 1:
        raise InputError(f"l = {l}", expected="a whole number from 1", remedy="l of 2")
    if l == 1:
        return
    if not table.sensitive:
        raise StudyError(
            f"l = {l} without a sensitive column",
            expected="a column with the role sensitive",
            remedy="leave l out, or declare one",
        )
    held = min(int(np.sum(values.domain.counts > 0)) for values in table.sensitive.values())
    if held < l:
        raise UnreachableError(
            f"l = {l} is more than the {held} different values of a sensitive column",
            expected="an l of at most the number of different values",
            remedy=f"l of at most {held}",
        )


def refuse_fronts(study: Study, table: FrequencyTable, fronts: Sequence[Front]) -> None:
    """Raise unless the fronts are of the same table under the same rules, one of each system."""
    systems = [front.system for front in fronts]
    other = [front.system for front in fronts if not front.recodes]
    if other:
        raise InputError(f"a front of the {other[0]} system does not recode the table", expected="lattice or cuts")
    if len(set(systems)) < len(systems):
        raise InputError(f"{len(systems)} fronts of {shortened(sorted(set(systems)))}", expected="one of each system")
    for front in fronts:
        said = _differs(study, table, front)
        if said:
            raise InputError(
                f"the front of {front.system} {said}",
                expected="a front of the same table, columns, suppression limit and weights",
                remedy="use the run.toml in the folder of the front",
            )


def _differs(study: Study, table: FrequencyTable, front: Front) -> str:
    theirs = front.study
    if front.fingerprint != table.fingerprint:
        return "is of another table"
    if theirs.search.max_suppression != study.search.max_suppression:
        return f"was searched with max_suppression = {theirs.search.max_suppression:g}"
    if theirs.search.weights != study.search.weights:
        return "was searched with other weights"
    if front.points and set(front.points[0].recoding_plan.choices) != set(table.columns):
        return "has other quasi-identifiers"
    for name in table.columns if front.system == "cuts" else ():
        one, two = study.columns[name], theirs.columns[name]
        if (one.constrained, one.order, one.breaks) != (two.constrained, two.order, two.breaks):
            return f"was searched with another order, breaks or constraint of {name}"
    return ""


def no_levels(table: FrequencyTable) -> str:
    """Why there is no lattice to look at; nothing if there is one."""
    undeclared = [domain.name for domain in table.domains if not domain.declared]
    if undeclared:
        return f"no hierarchy for {shortened(undeclared)}"
    nodes = int(np.prod([domain.hierarchy.height + 1 for domain in table.domains], dtype=object))
    return f"the lattice has {nodes:,} nodes" if nodes > LIMITS["exact"] else ""
