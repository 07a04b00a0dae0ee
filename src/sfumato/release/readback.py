"""Reading and measuring of a released file, by the meaning that the plan gives its labels.

A label has its meaning on the level to which its column was recoded. Without the plan it may be ambiguous, because a
hierarchy may use a word on several levels. A label that the level lacks is an error.

The module also returns the figures of the two reports: all of them for the publisher, and for readers only those that
identify no one. It reads the tables of studies and users. For a folder that others may have written, it opens no file
that the folder names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing.audit import contributions
from sfumato.base.formats import without_infinities
from sfumato.data.frame import is_frame
from sfumato.data.settings import is_database, located
from sfumato.data.source import Source
from sfumato.errors import DataError, InputError, SfumatoError, counted, shortened
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.known_values import exempt
from sfumato.measures.measure import Measure
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, HOUSEHOLDS, T_CLOSENESS, K, with_settings
from sfumato.plans.recodings import ColumnRecoding, at_level
from sfumato.release.columns import ColumnRecode
from sfumato.release.dictionary import words_for
from sfumato.report.release_pages import whole_of
from sfumato.study import Study, read
from sfumato.tables.domain import UNKNOWN, Domain, loss_of_source

RULED = (K, DISTINCT_L, T_CLOSENESS, HOUSEHOLDS)  # the measures that rules of the policy are about
IN_UNITS = "counts persons or households, whose numbers are not in the file, so it is measured on the source"
FROM_SOURCE = {
    "household": IN_UNITS,
    "originals": "needs the original values, so it is measured on the source",
    "population": "needs the population table, so it is measured on the source",
}


def released_classes(study: Study, columns: Sequence[ColumnRecode], suppressed: int) -> ClassTable:
    """Return the classes of a released file.

    `study` is the run file next to it, and `columns` are the recodings of the plan.
    """
    table = study.replace(data={"removed": suppressed}).table()
    by_name = {column.name: column for column in columns}
    recoding = tuple(_recoding_of(domain, by_name[domain.name]) for domain in table.domains)
    domains = (replace(domain, leaves=len(by_name[domain.name].tree.leaves)) for domain in table.domains)
    return classify(replace(table, domains=tuple(domains)), recoding, study.weights_for(table))


def measures_of(study: Study) -> dict[str, Measure]:
    """Return every measure, with the parameters of the run file."""
    return with_settings(study.measures)


def figures_of(study: Study, classes: ClassTable, source: ClassTable | None) -> dict[str, dict[str, Any]]:
    """Return every measure of the released file. Those that need the source are measured there and marked."""
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
    """Return the figures that rules of the policy need, from the classes of a plan."""
    known = {chosen.name: chosen.with_settings(study.measures) for chosen in measures}
    return {
        name: without_infinities({"value": chosen.value(classes)})
        for name, chosen in known.items()
        if chosen.available(classes) is None
    }


def loss_of(classes: ClassTable) -> float:
    """Return the general loss as a share of the largest possible loss of the source.

    The records that the missing rule left out count as lost.
    """
    share = GENERAL_LOSS.value(classes) / max(GENERAL_LOSS.highest(classes), 1e-300)
    return loss_of_source(share, classes.table.records, classes.table.left_out)


def unchanged(classes: ClassTable) -> bool:
    """Return whether every released record has its own value in every quasi-identifier, under any label."""
    return bool(np.all(classes.covers[:, classes.kept] == 1))


def figure_value(entry: Mapping[str, Any]) -> float:
    """Return a figure as a number. JSON lacks infinities, so a figure names them in another entry."""
    value = entry["value"]
    return math.inf if value is None and "value" in entry.get("infinite", ()) else float(value)


def same(expected: float, measured: float) -> bool:
    """Return whether figures agree: whole numbers exactly, others to 1e-9, because sums have no fixed order.

    >>> same(5, 5.0), same(5, 6), same(72350.9, 72350.9000000001), same(0.1, 0.2)
    (True, False, True, False)
    """
    if expected == measured:
        return True
    if float(expected).is_integer() and float(measured).is_integer():
        return False
    return math.isclose(expected, measured, rel_tol=1e-9, abs_tol=1e-12)


def _recoding_of(domain: Domain, column: ColumnRecode) -> ColumnRecoding:
    """Return the recoding that made a released column."""
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
    """Raise unless the measured figures are those of the search: (name, of the search, measured)."""
    for name, expected, value in pairs:
        if not same(expected, value):
            raise SfumatoError(
                f"{name} of the written file is {value:.10g}, not {expected:.10g} as in the search",
                expected="the same figures on the file as in the search; nothing was released",
                remedy="search again with this version",
            )


SMALL = 10
BINS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, None))


def before_after(study: Study, before: ClassTable, figures: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return every measure of the source and of the released file."""
    rows = []
    for name, chosen in measures_of(study).items():
        if name in figures:
            answered = chosen.available(before) is None
            rows.append(
                {
                    "title": chosen.about.title,
                    "kind": chosen.kind,
                    "better": "more" if chosen.direction == "max" else "less",
                    "before": without_infinities({"value": chosen.value(before)}) if answered else None,
                    "after": figures[name],
                    "sentence": chosen.about.sentence,
                }
            )
    return rows


def per_column(
    before: ClassTable, after: ClassTable, columns: Sequence[ColumnRecode], occurring: Mapping[str, set[str]]
) -> list[dict[str, Any]]:
    """Return how much each quasi-identifier adds to the risk, before and after, and its share of information loss.

    The labels that occur are those of the file. If persons are counted, `after` has classes of source values.
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
    """Return the general loss of each column alone, as a share. A suppressed record has lost it completely."""
    rows = np.where(classes.kept, classes.rows, 0)
    losses = {}
    for name, covers, leaves in zip(classes.table.columns, classes.covers, classes.leaves, strict=True):
        kept = float(rows @ ((covers - 1) / max(int(leaves) - 1, 1)))
        losses[name] = (kept + classes.suppressed_rows) / classes.records
    return losses


def small_classes(classes: ClassTable) -> list[dict[str, Any]]:
    """Return the number of classes and records of each small class size, but never their values."""
    size, rows = classes.size[classes.kept], classes.rows[classes.kept]
    bands = []
    for low, high in BINS:
        inside = (size >= low) & (size <= (high if high is not None else max(int(size.max(initial=1)), low)))
        name = str(low) if low == high else f"{low} or more" if high is None else f"{low}–{high}"
        bands.append({"size": name, "classes": int(inside.sum()), "records": int(rows[inside].sum())})
    return bands


def external_facts(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the external report: no count under ten, and no share from which one follows."""
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
    """Return what was counted, for readers of the file. The publisher's reason is only in the internal report."""
    return {"counted": manifest["unit"]["noun"], "counted_how": manifest["unit"]["says"]}


def released_loss(after: ClassTable, columns: Sequence[ColumnRecode], hierarchies: Mapping[str, Any]) -> float:
    """Return the loss for readers of the file, in thousandths: of released records, among released values.

    The loss of the plan also counts suppressed records and the values that only they have, so it would reveal how few
    they are and which values they have. `hierarchies` is the entry of the manifest.
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
    """Return a count, or words in place of a small one.

    >>> guarded(120), guarded(3), guarded(0)
    (120, 'fewer than 10', 0)
    """
    return "fewer than 10" if 0 < count < SMALL else count


def guarded_share(part: int, whole: int, what: str = "records") -> float | str:
    """Return a share in thousandths, or words if few records, or few persons, are behind it.

    >>> guarded_share(301, 30162), guarded_share(4, 30162), guarded_share(0, 100)
    (0.01, 'fewer than 10 records', 0.0)
    """
    if 0 < part < SMALL:
        return f"fewer than 10 {what}"
    share = round(part / max(whole, 1), 3)
    return "less than 0.1 %" if part and not share else share


def exempt_classes(study: Study, released: ClassTable) -> dict[str, dict[str, Any]]:
    """Return the harmless or missing values of each sensitive column, and the records in exempt classes.

    A class is exempt from ℓ, α, β and δ if no value in it is known, or if all known values are harmless.
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


def reading(study: Study, path: Any) -> Study:
    """Return the study with the table that the user names or has in memory in place of its own.

    A run file that the user names replaces all settings. A query of a database can only be given in this way, because a
    release folder must not contain one.
    """
    if is_frame(path):
        return study.with_table(path).model_copy(update={"population": None})
    if path.endswith(".toml"):
        own = read(path)
        return study.model_copy(update={"data": own.data, "population": own.population}).placed(own.folder)
    if study.data.codebook is not None:
        raise InputError(
            "the release was made with a codebook, which is not read from a folder",
            expected="a run file of your own that names the codebook",
            remedy="give the run file as the source",
        )
    elsewhere = {"path": located(path, Path()), "format": None, "password_file": None}
    if not is_database(path):
        elsewhere |= {"table": None, "query": None}
    elif study.data.query is not None:
        raise InputError(
            "the release was made from a query of a database, which is not run from a folder",
            expected="a run file of your own that holds the query",
            remedy="give the run file as the source",
        )
    return study.replace(data=elsewhere).model_copy(update={"population": None})


def table_of(study: Study) -> Source:
    """Return the table of a study without requiring a role for every column."""
    return study.opened()


def require_source(source: Source, fingerprint: str, *, remedy: str = "search again") -> None:
    """Raise unless a table is the one that a plan was made for."""
    if source.fingerprint != fingerprint:
        raise InputError(
            f"{source.title} has changed since the search",
            expected="the table that the plan was made for: its SHA-256 is known",
            remedy=remedy,
        )
