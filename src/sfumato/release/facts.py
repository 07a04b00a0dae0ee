"""What the two reports of a release say: the publisher's with everything, the reader's without what singles out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.auditing.contribution import contributions
from sfumato.measures.classes import ClassTable
from sfumato.measures.known import exempt
from sfumato.measures.standard import K
from sfumato.release.columns import ColumnRecode
from sfumato.release.dictionary import words_for
from sfumato.release.readback import measures_of
from sfumato.report.release_pages import whole_of
from sfumato.runtime.json_files import without_infinities
from sfumato.study import Study
from sfumato.tables.domain import UNKNOWN

SMALL = 10
BINS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, None))


def before_after(study: Study, before: ClassTable, figures: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every measure on the raw table and on the released file."""
    rows = []
    for name, chosen in measures_of(study).items():
        if name in figures:
            answered = chosen.available(before) is None
            rows.append(
                {
                    "title": chosen.title,
                    "kind": chosen.kind,
                    "better": "more" if chosen.direction == "max" else "less",
                    "before": without_infinities({"value": chosen.value(before)}) if answered else None,
                    "after": figures[name],
                    "sentence": chosen.sentence,
                }
            )
    return rows


def per_column(
    before: ClassTable, after: ClassTable, columns: Sequence[ColumnRecode], occurring: Mapping[str, set[str]]
) -> list[dict[str, Any]]:
    """What each quasi-identifier adds to the risk, before and after, and the share of it that is lost.

    The labels that occur are those of the file: where persons are counted, `after` has classes of source values.
    """
    lost = column_losses(after)
    by_name = {column.name: column for column in columns}
    risks = zip(contributions(before), contributions(after), strict=True)
    return [
        {
            "column": raw.column,
            "done": words_for(by_name[raw.column], occurring[raw.column]),
            "risk_before": raw.marketer_risk,
            "risk_after": now.marketer_risk,
            "loss": lost[raw.column],
        }
        for raw, now in risks
    ]


def column_losses(classes: ClassTable) -> dict[str, float]:
    """The general loss of each column alone, as a share: suppressed records have lost it whole."""
    rows = np.where(classes.kept, classes.rows, 0)
    losses = {}
    for name, covers, leaves in zip(classes.table.columns, classes.covers, classes.leaves, strict=True):
        kept = float(rows @ ((covers - 1) / max(int(leaves) - 1, 1)))
        losses[name] = (kept + classes.suppressed_rows) / classes.records
    return losses


def small_classes(classes: ClassTable) -> list[dict[str, Any]]:
    """How many classes and records there are of each size: counts only, never the keys."""
    size, rows = classes.size[classes.kept], classes.rows[classes.kept]
    bands = []
    for low, high in BINS:
        inside = (size >= low) & (size <= (high if high is not None else max(int(size.max(initial=1)), low)))
        name = str(low) if low == high else f"{low} or more" if high is None else f"{low}–{high}"
        bands.append({"size": name, "classes": int(inside.sum()), "records": int(rows[inside].sum())})
    return bands


def external_facts(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of the external report: no count under ten, no share from which one follows."""
    records, left_out = manifest["records"], manifest["left_out"]
    whole = whole_of(manifest)
    everything = whole["all_columns"]
    return {
        **public_unit(manifest),
        "released": guarded(manifest["released"]),
        K.name: int(manifest["figures"][K.name]["value"]),
        "suppressed_share": guarded_share(manifest["suppressed"], records),
        "left_out_share": guarded_share(left_out, records + left_out),
        "loss_share": manifest["own"]["released_loss"],
        "unique_share": guarded_share(everything["unique"], everything["records"], f"{manifest['unit']['noun']}s"),
        "columns": everything["columns"],
        "columns_in_no_figure": list(manifest["whole"]["columns_in_no_figure"]),
    }


def public_unit(manifest: Mapping[str, Any]) -> dict[str, str]:
    """What was counted, for the readers of the file: the publisher's reason stays in the internal report."""
    return {"counted": manifest["unit"]["noun"], "counted_how": manifest["unit"]["says"]}


def released_loss(after: ClassTable, columns: Sequence[ColumnRecode], hierarchies: Mapping[str, Any]) -> float:
    """The loss for readers of the file, in thousandths: of released records, among released values.

    The loss of the plan counts suppressed records and the values that only they have, so it tells how few they are
    and where their values stand. `hierarchies` is what the manifest says of them.
    """
    by_name = {column.name: column for column in columns}
    lost = []
    for domain in after.table.domains:
        column, named = by_name[domain.name], hierarchies[domain.name]["named"]
        leaves = zip(column.tree.leaves, column.groups, strict=True)
        values = None if named is None else set(named["values"])
        covers = Counter(group for leaf, group in leaves if values is None or leaf in values)
        group_of = {label: group for group, label in enumerate(column.labels)}
        counts = {label: count for label, count in zip(domain.labels, domain.counts.tolist(), strict=True) if count}
        gone = sum(count * (covers[group_of[label]] - 1) for label, count in counts.items())
        lost.append(gone / (sum(counts.values()) * max(covers.total() - 1, 1)))
    return round(float(np.average(lost, weights=after.attribute_weights)), 3)


def guarded(count: int) -> int | str:
    """A count, unless it is a small one.

    >>> guarded(120), guarded(3), guarded(0)
    (120, 'fewer than 10', 0)
    """
    return "fewer than 10" if 0 < count < SMALL else count


def guarded_share(part: int, whole: int, what: str = "records") -> float | str:
    """A share in thousandths, unless it is made of few records, or of few persons where these were counted.

    >>> guarded_share(301, 30162), guarded_share(4, 30162), guarded_share(0, 100)
    (0.01, 'fewer than 10 records', 0.0)
    """
    if 0 < part < SMALL:
        return f"fewer than 10 {what}"
    share = round(part / max(whole, 1), 3)
    return "less than 0.1 %" if part and not share else share


def exempt_classes(study: Study, released: ClassTable) -> dict[str, dict[str, Any]]:
    """For each sensitive column with harmless or missing values: what is declared, and the records in exempt classes.

    A class is exempt from ℓ, α, β and δ where no value is known, or all that are known are harmless.
    """
    described = {}
    for name in released.table.sensitive:
        values = released.values(name)
        if values.domain.special:
            free = exempt(values) & released.kept
            described[name] = {
                "harmless": list(study.columns[name].harmless or ()),
                "records": int(released.rows[free].sum()),
                "missing": int(values.domain.counts[values.domain.harm == UNKNOWN].sum()),
            }
    return described
