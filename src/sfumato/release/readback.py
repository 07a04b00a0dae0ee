"""Reading and measuring of a released file, by the meaning that the plan gives its labels.

A label has its meaning on the level to which its column was recoded. Without the plan it may be ambiguous, because a
hierarchy may use a word on several levels. A label that the level lacks is an error.

The module also returns the figures of the two reports: all of them for the publisher, and for readers only those that
identify no one. It reads the tables of studies and users. For a folder that others may have written, it opens no file
that the folder names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing.audit import contributions
from sfumato.base.formats import without_infinities
from sfumato.data.frame import is_frame
from sfumato.data.settings import is_database, located
from sfumato.data.source import Source
from sfumato.errors import InputError
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.known_values import exempt
from sfumato.measures.measure import Measure
from sfumato.measures.registry import DISTINCT_L, GENERAL_LOSS, HOUSEHOLDS, T_CLOSENESS, K, with_settings
from sfumato.release.columns import ReleasedColumn
from sfumato.release.dictionary import blanked_share, guarded, guarded_share, labels_in
from sfumato.release.format import Entry
from sfumato.report.release_pages import whole_of
from sfumato.study import Study, read
from sfumato.tables.domain import UNKNOWN, loss_of_source
from sfumato.tables.frequency import FrequencyTable

Figures = Mapping[str, Entry]
RULED = (K, DISTINCT_L, T_CLOSENESS, HOUSEHOLDS)  # the measures that rules of the policy are about
IN_UNITS = "counts persons or households, whose numbers are not in the file, so it is measured on the source"
FROM_SOURCE = {
    "household": IN_UNITS,
    "originals": "needs the original values, so it is measured on the source",
    "population": "needs the population table, so it is measured on the source",
}


def released_classes(study: Study, columns: Sequence[ReleasedColumn]) -> ClassTable:
    """Return the classes of a released file. `study` is the run file next to it."""
    table = study.table()
    return classes_of(table, columns, study.weights_for(table))


def classes_of(table: FrequencyTable, columns: Sequence[ReleasedColumn], weights: Sequence[float]) -> ClassTable:
    """Return the classes of a table that holds released labels."""
    by_name = {column.name: column for column in columns}
    recoding = tuple(by_name[domain.name].recoding(domain) for domain in table.domains)
    domains = (replace(domain, leaves=by_name[domain.name].size) for domain in table.domains)
    return classify(replace(table, domains=tuple(domains)), recoding, weights)


def measures_of(study: Study) -> dict[str, Measure]:
    """Return every measure, with the parameters of the run file."""
    return with_settings(study.measures)


def figures_of(study: Study, classes: ClassTable, stated: Figures) -> dict[str, dict[str, Any]]:
    """Return every measure of a released file. Those that need the source are taken from the `stated` figures."""
    figures: dict[str, dict[str, Any]] = {}
    in_units = bool(in_persons(stated))
    for name, chosen in measures_of(study).items():
        if name in stated and stated[name].get("measured_on") == "source":
            figures[name] = dict(stated[name])
        elif not needs_source(chosen, in_units) and chosen.available(classes) is None:
            figures[name] = without_infinities({"value": chosen.value(classes), "measured_on": "file"})
    return figures


def source_figures(study: Study, source: ClassTable) -> dict[str, dict[str, object]]:
    """Return the measures that a released file cannot show, from the classes of its source."""
    figures = {}
    for name, chosen in measures_of(study).items():
        reason = needs_source(chosen, source.table.counts_units)
        if reason and chosen.available(source) is None:
            entry = {"value": chosen.value(source), "measured_on": "source", "reason": reason}
            figures[name] = without_infinities(entry)
    return figures


def needs_source(chosen: Measure, in_units: bool) -> str:
    """Return why a measure needs the source, empty if it does not."""
    return IN_UNITS if in_units and chosen.kind == "privacy" else FROM_SOURCE.get(chosen.reads, "")


def in_persons(figures: Figures) -> dict[str, dict[str, Any]]:
    """Return the figures of a manifest that count persons or households."""
    return {name: dict(entry) for name, entry in figures.items() if entry.get("reason") == IN_UNITS}


def ruled_figures(
    study: Study, classes: ClassTable, measures: Sequence[Measure] = RULED
) -> dict[str, dict[str, object]]:
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


BINS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, None))


def before_after(study: Study, before: ClassTable, figures: Figures) -> list[dict[str, object]]:
    """Return every measure of the source and of the released file."""
    rows: list[dict[str, object]] = []
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
    before: ClassTable, after: ClassTable, columns: Sequence[ReleasedColumn], occurring: Mapping[str, Mapping[str, int]]
) -> list[dict[str, object]]:
    """Return how much each quasi-identifier adds to the risk, before and after, and its share of information loss.

    The labels that occur are those of the file. If persons are counted, `after` has classes of source values.
    """
    lost = column_losses(after)
    by_name = {column.name: column for column in columns}
    risks = zip(contributions(before), contributions(after), strict=True)
    return [
        {
            "column": raw.column,
            "done": by_name[raw.column].words(
                occurring[raw.column], blanked_share(by_name[raw.column], occurring[raw.column])
            ),
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


def small_classes(classes: ClassTable) -> list[dict[str, object]]:
    """Return the number of classes and records of each small class size, but never their values."""
    size, rows = classes.size[classes.kept], classes.rows[classes.kept]
    bands = []
    for low, high in BINS:
        inside = (size >= low) & (size <= (high if high is not None else max(int(size.max(initial=1)), low)))
        name = str(low) if low == high else f"{low} or more" if high is None else f"{low}–{high}"
        bands.append({"size": name, "classes": int(inside.sum()), "records": int(rows[inside].sum())})
    return bands


def external_facts(manifest: Entry) -> dict[str, Any]:
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


def public_unit(manifest: Entry) -> dict[str, str]:
    """Return what was counted, for readers of the file. The publisher's reason is only in the internal report."""
    return {"counted": manifest["unit"]["noun"], "counted_how": manifest["unit"]["says"]}


def released_loss(
    after: ClassTable, columns: Sequence[ReleasedColumn], values: Mapping[str, Collection[str] | None]
) -> float:
    """Return the loss for readers of the file, in thousandths: of released records, among released values.

    The loss of the plan also counts suppressed records and the values that only they have, so it would reveal how few
    they are and which values they have. The released `values` are None if all values are public.
    """
    by_name, occurring = {column.name: column for column in columns}, labels_in(after)
    lost = []
    for domain in after.table.domains:
        known, counts = values[domain.name], occurring[domain.name]
        covered = by_name[domain.name].covered(known)
        gone = sum(count * max(covered.get(label, 0) - 1, 0) for label, count in counts.items())
        every = by_name[domain.name].size if known is None else len(known)
        lost.append(gone / (sum(counts.values()) * max(every - 1, 1)))
    return round(float(np.average(lost, weights=after.attribute_weights)), 3)


def exempt_classes(study: Study, released: ClassTable) -> dict[str, dict[str, object]]:
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
