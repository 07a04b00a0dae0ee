"""Read a released file back and measure it as what the plan made of it.

A label means what it means on the level its column was recoded to. Read on its own it may be ambiguous (a hierarchy
may use a word on several levels), so the plan's level decides, and a label that the level lacks is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.errors import DataError, SfumatoError, counted, shortened
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.measure import Measure
from sfumato.measures.registry import with_settings
from sfumato.measures.standard import DISTINCT_L, GENERAL_LOSS, HOUSEHOLDS, T_CLOSENESS, K
from sfumato.plans.recoding import ColumnRecoding, at_level
from sfumato.release.columns import ColumnRecode
from sfumato.runtime.json_files import without_infinities
from sfumato.study import Study
from sfumato.tables.domain import Domain
from sfumato.tables.missing import loss_of_source

RULED = (K, DISTINCT_L, T_CLOSENESS, HOUSEHOLDS)  # the measures that rules of the policy are about
IN_UNITS = "counts persons or households, whose numbers are not in the file, so it is measured on the source"
FROM_SOURCE = {
    "household": IN_UNITS,
    "originals": "needs the original values, so it is measured on the source",
    "population": "needs the population table, so it is measured on the source",
}


def released_classes(study: Study, columns: Sequence[ColumnRecode], suppressed: int) -> ClassTable:
    """The classes of a released file: `study` is the run file beside it, `columns` what the plan made of each."""
    table = study.with_data(removed=suppressed).table()
    by_name = {column.name: column for column in columns}
    recoding = tuple(_standing(domain, by_name[domain.name]) for domain in table.domains)
    domains = (replace(domain, leaves=len(by_name[domain.name].tree.leaves)) for domain in table.domains)
    return classify(replace(table, domains=tuple(domains)), recoding, study.weights_for(table))


def measures_of(study: Study) -> dict[str, Measure]:
    """Every measure, with the parameters the run file gives it."""
    return with_settings(study.measures)


def figures_of(study: Study, classes: ClassTable, source: ClassTable | None) -> dict[str, dict[str, Any]]:
    """Every measure of the released file; where only the source can answer, measured there, and said so."""
    figures: dict[str, dict[str, Any]] = {}
    in_units = source is not None and source.table.counts_units
    for name, chosen in measures_of(study).items():
        reason = IN_UNITS if in_units and chosen.kind == "privacy" else FROM_SOURCE.get(chosen.reads)
        if reason is not None:
            if source is not None and chosen.available(source) is None:
                entry = {"value": chosen.value(source), "measured_on": "source", "reason": reason}
                figures[name] = without_infinities(entry)
        elif chosen.available(classes) is None:
            figures[name] = without_infinities({"value": chosen.value(classes), "measured_on": "file"})
    return figures


def ruled_figures(study: Study, classes: ClassTable, measures: Sequence[Measure] = RULED) -> dict[str, dict[str, Any]]:
    """The figures that rules of the policy are about, of the classes of a plan."""
    known = {chosen.name: chosen.with_settings(study.measures) for chosen in measures}
    return {
        name: without_infinities({"value": chosen.value(classes)})
        for name, chosen in known.items()
        if chosen.available(classes) is None
    }


def loss_of(classes: ClassTable) -> float:
    """The loss that every point has: the general loss as a share of the most that could be lost, of the whole source.

    The records that the missing rule left out are lost.
    """
    share = GENERAL_LOSS.value(classes) / max(GENERAL_LOSS.highest(classes), 1e-300)
    return loss_of_source(share, classes.table.records, classes.table.left_out)


def unchanged(classes: ClassTable) -> bool:
    """Whether every released record has its own value in every quasi-identifier, under whatever name."""
    return bool(np.all(classes.covers[:, classes.kept] == 1))


def figure_value(entry: Mapping[str, Any]) -> float:
    """A figure as a number; JSON has no infinities, so they are named beside it."""
    value = entry["value"]
    return math.inf if value is None and "value" in entry.get("infinite", ()) else float(value)


def same(expected: float, measured: float) -> bool:
    """Whole numbers exactly, others to a relative 1e-9: sums may be added up in another order.

    >>> same(5, 5.0), same(5, 6), same(72350.9, 72350.9000000001), same(0.1, 0.2)
    (True, False, True, False)
    """
    if expected == measured:
        return True
    if float(expected).is_integer() and float(measured).is_integer():
        return False
    return math.isclose(expected, measured, rel_tol=1e-9, abs_tol=1e-12)


def _standing(domain: Domain, column: ColumnRecode) -> ColumnRecoding:
    """A released column as the recoding that made it."""
    tree, level = column.tree, column.level
    part = at_level(replace(domain, hierarchy=tree, labels=tree.leaves), level)
    leaves = {label: leaf for leaf, label in enumerate(tree.leaves)}
    position_of = {label: position for position, label in enumerate(part.labels)}
    groups = np.zeros(len(domain.labels), dtype=np.int32)
    strange = []
    for code, label in enumerate(domain.labels):
        if label in position_of:
            groups[code] = position_of[label]
        elif domain.counts[code] > 0:
            strange.append(label)
        else:  # a leaf that was generalized: no cell of the file holds it
            groups[code] = tree.maps[level][leaves.get(label, 0)]
    if strange:
        raise DataError(
            f"{domain.name} holds {counted(len(strange), 'label')} that the plan does not release: "
            f"{shortened(map(repr, strange), 3)}",
            expected=f"labels of level {level} of its hierarchy",
        )
    return replace(part, groups=groups)


def refuse_differences(pairs: Iterable[tuple[str, float, float]]) -> None:
    """Raise unless the figures of the written file are those of the search: (name, as searched, as measured)."""
    for name, expected, value in pairs:
        if not same(expected, value):
            raise SfumatoError(
                f"{name} of the written file is {value:.10g}, not {expected:.10g} as in the search",
                expected="the same figures on the file as in the search; nothing was released",
                remedy="search again with this version",
            )
