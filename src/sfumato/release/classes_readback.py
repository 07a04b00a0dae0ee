"""Reading of a file released by classes. A label has the meaning that the release states. Any other is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.auditing.audit import contributions
from sfumato.base.text import percent
from sfumato.errors import DataError, counted, shortened
from sfumato.measures.classes import ClassTable, classify
from sfumato.plans.recodings import ColumnRecoding
from sfumato.release.classes_labels import BoxColumn
from sfumato.release.dictionary import UNLISTED, kept_entry
from sfumato.release.readback import column_losses, guarded_share
from sfumato.study import Study
from sfumato.tables.domain import Domain
from sfumato.tables.frequency import FrequencyTable

HOW = {True: "nodes of its hierarchy", False: "runs of neighbouring values"}


def classes_in(study: Study, columns: Sequence[BoxColumn], suppressed: int) -> ClassTable:
    """Return the classes of a released file. `study` is the run file next to it."""
    table = study.replace(data={"removed": suppressed}).table()
    return classes_of(table, columns, study.weights_for(table))


def classes_of(table: FrequencyTable, columns: Sequence[BoxColumn], weights: Sequence[float]) -> ClassTable:
    """Return the classes of a table that holds released labels."""
    by_name = {column.name: column for column in columns}
    recoding = tuple(_recoding_of(domain, by_name[domain.name]) for domain in table.domains)
    domains = (replace(domain, leaves=len(by_name[domain.name].values)) for domain in table.domains)
    return classify(replace(table, domains=tuple(domains)), recoding, weights)


def _recoding_of(domain: Domain, column: BoxColumn) -> ColumnRecoding:
    """Return a released column as a recoding in which every label is a group of its own."""
    strange = [
        label
        for label, count in zip(domain.labels, domain.counts.tolist(), strict=True)
        if count and label not in column.run_of
    ]
    if strange:
        raise DataError(
            f"{domain.name} holds {counted(len(strange), 'label')} that the plan does not release: "
            f"{shortened(map(repr, strange), 3)}",
            expected="labels of the release",
        )
    runs = [column.run_of.get(label) for label in domain.labels]
    covers = np.array([1 if run is None else run[1] - run[0] for run in runs], dtype=np.int32)
    depths = np.array([0.0 if run is None else column.depths[run] for run in runs])
    spans = None
    if column.spans is not None:
        spans = np.array([0.0 if run is None else column.spans[run] for run in runs])
    return ColumnRecoding(domain.labels, np.arange(len(runs), dtype=np.int32), covers, depths, spans)


def released_loss(after: ClassTable, columns: Sequence[BoxColumn], released: Mapping[str, Sequence[str]]) -> float:
    """Return the loss for readers, in thousandths, over the released records and the values that they have."""
    by_name = {column.name: column for column in columns}
    lost = []
    for domain in after.table.domains:
        column, values = by_name[domain.name], set(released[domain.name])
        before = np.cumsum([0, *(value in values for value in column.values)])
        counts = {label: count for label, count in zip(domain.labels, domain.counts.tolist(), strict=True) if count}
        runs = {label: column.run_of[label] for label in counts}
        gone = sum(
            count * max(int(before[runs[label][1]] - before[runs[label][0]]) - 1, 0) for label, count in counts.items()
        )
        lost.append(gone / (sum(counts.values()) * max(len(values) - 1, 1)))
    return round(float(np.average(lost, weights=after.attribute_weights)), 3)


def words_for(column: BoxColumn, occurring: Sequence[str], blanked: str = "") -> str:
    """Return a sentence on what was done to a column. `blanked` is the share of blank records, if it is known.

    >>> column = BoxColumn("sex", ("F", "M"), {(0, 1): "F", (1, 2): "M", (0, 2): "*"}, nodes=True)
    >>> words_for(column, ["F", "M", "*"], "1.2 % of the records")
    'Unchanged, except that single cells are blanked (1.2 % of the records): * stands in their place.'
    """
    if not column.generalized:
        return "Unchanged."
    if column.hidden:
        return f"Hidden: every value is replaced by {occurring[0]}."
    if column.blanked:
        root = column.labels[0, len(column.values)]
        how_many = f" ({blanked})" if blanked else ""
        return f"Unchanged, except that single cells are blanked{how_many}: {root} stands in their place."
    return (
        f"Grouped differently from class to class: {len(occurring):,} labels occur, which are {HOW[column.nodes]} and "
        "may overlap."
    )


def dictionary_of(
    study: Study, released: Sequence[str], columns: Sequence[BoxColumn], data: str, left_out: int, after: ClassTable
) -> dict[str, Any]:
    """Return the data dictionary: the labels that occur, sorted by the first value of each."""
    by_name = {column.name: column for column in columns}
    occurring, blanked = labels_of(columns, after), blanked_shares(columns, after)
    described = []
    for name in released:
        if name not in study.columns:
            described.append(_bound_entry(name))
            continue
        role = study.columns[name].role
        entry: dict[str, Any] = {"name": name, "role": str(role), "meaning": role.meaning}
        if name not in by_name:
            described.append(entry | kept_entry(study, name))
            continue
        column, shown = by_name[name], [label for label in occurring[name] if label]
        done = "hidden" if column.hidden else "generalized" if column.generalized else "kept"
        done = "blanked" if column.blanked and done == "generalized" else done
        entry |= {"done": done, "words": words_for(column, shown, blanked[name])}
        entry |= {"missing": "Missing values remain missing."} if "" in occurring[name] else {}
        described.append(entry | ({"labels": shown, "note": UNLISTED} if done == "generalized" else {}))
    return {"file": data, "columns": described, "columns_left_out": left_out}


def _bound_entry(name: str) -> dict[str, Any]:
    """Return the entry of a column that holds one end of the ranges of another column."""
    column, _, end = name.rpartition("_")
    words = f"The {'lowest' if end == 'low' else 'highest'} value of the label of {column}; empty where all is hidden."
    return {
        "name": name,
        "role": "other",
        "meaning": f"end of the range of {column}",
        "done": "derived",
        "words": words,
    }


def labels_of(columns: Sequence[BoxColumn], after: ClassTable) -> dict[str, list[str]]:
    """Return the labels of each column that occur in the file. A missing value is the empty text."""
    by_name = {column.name: column for column in columns}
    result = {}
    for domain in after.table.domains:
        labels = [label for label, count in zip(domain.labels, domain.counts.tolist(), strict=True) if count]
        result[domain.name] = sorted(labels, key=lambda label: by_name[domain.name].run_of[label])
    return result


def blanked_shares(columns: Sequence[BoxColumn], after: ClassTable) -> dict[str, str]:
    """Return the share of released records with a blank in each column, in words, empty if there are none."""
    by_name = {column.name: column for column in columns}
    result = {}
    for domain in after.table.domains:
        column = by_name[domain.name]
        root = column.labels.get((0, len(column.values))) if column.blanked else None
        counts = dict(zip(domain.labels, domain.counts.tolist(), strict=True))
        share = guarded_share(counts.get(root, 0), sum(counts.values())) if root is not None else 0.0
        result[domain.name] = "" if share == 0.0 else share if isinstance(share, str) else percent(share)
        if result[domain.name] and not str(share).endswith("records"):
            result[domain.name] += " of the records"
    return result


def per_column(before: ClassTable, after: ClassTable, columns: Sequence[BoxColumn]) -> list[dict[str, Any]]:
    """Return how much each quasi-identifier adds to the risk, before and after, and its share of information loss."""
    lost, occurring, blanked = column_losses(after), labels_of(columns, after), blanked_shares(columns, after)
    by_name = {column.name: column for column in columns}
    risks = zip(contributions(before), contributions(after), strict=True)
    return [
        {
            "column": raw.column,
            "done": words_for(by_name[raw.column], occurring[raw.column], blanked[raw.column]),
            "risk_before": raw.marketer_risk,
            "risk_after": now.marketer_risk,
            "loss": lost[raw.column],
        }
        for raw, now in risks
    ]
