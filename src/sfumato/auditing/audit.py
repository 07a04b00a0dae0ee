"""The audit of a table: all measures, the sizes of its classes, and what each quasi-identifier adds to the risk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.auditing.uniqueness import (
    HOUSEHOLD,
    PERSON,
    WholeFile,
    holder_cells,
    identifying,
    identifying_sentence,
    whole_file,
    worst,
)
from sfumato.auditing.units import unstated_notes
from sfumato.base.arrays import Counts64, Floats
from sfumato.base.formats import without_infinities
from sfumato.base.notebook import bars_picture, card, short, to_frame
from sfumato.base.progress import stage
from sfumato.base.text import percent
from sfumato.data.engine import open_engine
from sfumato.errors import MeasureError, counted, shortened
from sfumato.measures.classes import EXEMPT, ClassTable, classify
from sfumato.measures.measure import Measure
from sfumato.measures.registry import K, headlines, measure, with_settings
from sfumato.measures.units import texts_of
from sfumato.plans.recodings import without
from sfumato.study import Study


@dataclass(frozen=True)
class Contribution:
    """The decrease of risk if one column is left out."""

    column: str
    uniques: float
    marketer_risk: float
    k_without: int


def contributions(classes: ClassTable) -> list[Contribution]:
    """Return for each column how much the shares of uniques and of correct matches fall if it is suppressed.

    >>> from sfumato.measures.oracle import six_rows
    >>> [(c.column, round(c.uniques, 3), round(c.marketer_risk, 3), c.k_without) for c in contributions(six_rows())]
    [('age', 0.167, 0.167, 3), ('zip', 0.167, 0.167, 2)]
    """
    # Only released records count: a suppressed record stays suppressed, whichever column is left out.
    kept = classes.kept[classes.index]
    units = classes.table.units
    table = replace(
        classes.table,
        codes=classes.table.codes[:, kept],
        counts=classes.table.counts[kept],
        population=None,
        units=None if units is None else units.within(kept),
        households=None,
        household_of=None,
    )
    persons = classes.table.persons
    uniques, matches = _risks(classify(table, classes.recoding), persons)
    listed = []
    for position, column in enumerate(table.columns):
        rest = classify(table, without(classes.recoding, position))
        uniques_left, matches_left = _risks(rest, persons)
        listed.append(Contribution(column, uniques - uniques_left, matches - matches_left, int(rest.size.min())))
    return listed


def _risks(classes: ClassTable, persons: int) -> tuple[float, float]:
    """Return the shares of unique persons and of correct matches within the file."""
    unique, matched = (
        classes.per_class(values, hidden=0.0).in_units("min").total()
        for values in (classes.size == 1, 1.0 / classes.size)
    )
    return unique / persons, matched / persons


SIZES = (1, 2, 3, 5, 10, 50, 10**18)  # the bounds of a bar of the histogram
SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, repr=False)
class Figure:
    """One measure of a table: its value, its summaries over records, and the value for each sensitive column."""

    measure: Measure
    value: float | None
    worst: float | None = None
    mean: float | None = None
    total: float | None = None
    quantiles: Mapping[str, float] | None = None
    columns: Mapping[str, float] | None = None
    reason: str | None = None

    def __repr__(self) -> str:
        return f"<{self.measure.name} = {short(self.value)}>"

    def as_dict(self) -> dict[str, object]:
        measure, quantiles = self.measure, dict(self.quantiles or {})
        entries: dict[str, object] = {"value": self.value, "direction": measure.direction, "kind": measure.kind}
        if self.reason is None:
            entries |= {"worst": self.worst, "mean": self.mean, "sum": self.total, "quantiles": quantiles}
        if self.columns:
            entries["columns"] = dict(self.columns)
        if measure.parameters:
            entries["parameters"] = dict(measure.parameters)
        entries |= {"title": measure.about.title, "sentence": measure.about.sentence}
        if self.reason is not None:
            entries["reason"] = self.reason
        return without_infinities(entries)


@dataclass(frozen=True, repr=False)
class Audit:
    """The result of an audit. `audit["k"]` is the value of a figure, `audit.figures["k"]` has its summaries as well.

    >>> import pyarrow, sfumato as sf
    >>> people = pyarrow.table({"age": [31, 31, 42], "ill": ["flu", "none", "flu"]})
    >>> audit = sf.audit(sf.Study(people, quasi_identifiers=["age"], sensitive=["ill"]))
    >>> print(str(audit).partition(",")[0])
    <Audit of 3 records
    >>> audit["k"], audit["prosecutor_risk"], audit.to_frame("pyarrow").column_names[:2]
    (1.0, 1.0, ['measure', 'value'])
    """

    classes: ClassTable
    figures: Mapping[str, Figure]
    contributions: tuple[Contribution, ...]
    whole: WholeFile
    notes: tuple[str, ...]
    frame_kind: str | None = None

    def __repr__(self) -> str:
        missing = self.classes.table.left_out
        left_out = f" ({missing:,} left out: missing values)" if missing else ""
        return (
            f"<Audit of {self.holds}{left_out}, {counted(len(self.figures), 'figure')}: "
            f"k = {self.figures[K.name].value:g}>"
        )

    def __getitem__(self, name: str) -> float:
        """Return a figure by a name of its measure. Raise MeasureError with the reason if there is none."""
        figure = self.figures[measure(name).name]
        if figure.value is None:
            raise MeasureError(f"{name} could not be measured: {figure.reason}", expected="a figure of this table")
        return figure.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def keys(self) -> list[str]:
        """Return the names of the figures that could be measured."""
        return [name for name, figure in self.figures.items() if figure.value is not None]

    def to_frame(self, kind: str | None = None) -> Any:
        """Return the figures as a frame with one row for each.

        Args:
            kind: "pandas", "polars" or "pyarrow"; the kind of the study's own table unless given.

        Returns:
            A frame.
        """
        some = list(self.figures.values())
        texts = [texts_of(figure.measure, self.persons is not None) for figure in some]
        columns: dict[str, list[object]] = {
            "measure": list(self.figures),
            "value": [figure.value for figure in some],
            "kind": [figure.measure.kind for figure in some],
            "better": ["more" if figure.measure.direction == "max" else "less" for figure in some],
            "worst": [figure.worst for figure in some],
            "mean": [figure.mean for figure in some],
            "title": [about.title for about in texts],
            "says": [figure.reason or about.sentence for figure, about in zip(some, texts, strict=True)],
        }
        return to_frame(columns, kind or self.frame_kind)

    def _repr_html_(self) -> str:
        heads = [result for result in headlines() if self.figures[result.name].value is not None]
        rows = [[result.about.title, short(self.figures[result.name].value)] for result in heads]
        risky = sorted(self.contributions, key=lambda result: -result.marketer_risk)
        rows += [["riskiest columns", ", ".join(result.column for result in risky[:4])]]
        size, records = self.classes.size[self.classes.kept], self.classes.rows[self.classes.kept]
        inside = [float(records[(size >= low) & (size < high)].sum()) for low, high in pairwise(SIZES)]
        names = [*(str(a) if b == a + 1 else f"{a}–{b - 1}" for a, b in pairwise(SIZES[:-1])), f"{SIZES[-2]}+"]
        picture = bars_picture(names, inside, x_title="size of the class", y_title="records")
        return card(repr(self)[1:-1], ["figure", "value"], rows, picture, self.notes)

    @property
    def rows(self) -> int:
        return self.classes.table.rows

    @property
    def persons(self) -> int | None:
        """Return the number of persons that the rows belong to, or None if each row is a person."""
        units = self.classes.table.units
        return None if units is None else units.number

    @property
    def holds(self) -> str:
        """Return the numbers of records and of persons as a text."""
        of = "" if self.persons is None else f" of {counted(self.persons, 'person')}"
        return f"{counted(self.rows, 'record')}{of}"

    def histogram(self) -> tuple[Counts64, Counts64]:
        """Return the class sizes and the number of released classes of each size.

        Returns:
            Two arrays: the sizes that occur, and how many classes have each.
        """
        sizes, number = np.unique(self.classes.size[self.classes.kept], return_counts=True)
        return sizes, number

    def risk_curve(self) -> tuple[Floats, Floats]:
        """Return the share of records whose prosecutor risk is at least r, for each risk r, the highest first.

        Returns:
            Two arrays: the risks, and the share of records at each or above.
        """
        kept = self.classes.kept
        sizes, size_of = np.unique(self.classes.size[kept], return_inverse=True)
        records = np.bincount(size_of, weights=self.classes.rows[kept])
        return 1.0 / sizes, np.cumsum(records) / self.classes.records

    def as_dict(self) -> dict[str, object]:
        """Return the audit as values of JSON. Infinities are null and are listed by name.

        Returns:
            A dictionary.
        """
        table = self.classes.table
        risk = {figures.pop("column"): figures for figures in map(asdict, self.contributions)}
        columns: dict[str, object] = {}
        for domain in table.domains:
            columns[domain.name] = {
                "role": "quasi_identifier",
                "distinct": int(np.count_nonzero(domain.counts)),
                "levels": domain.hierarchy.height + 1 if domain.declared else None,
                "generalized": domain.generalized,
                "missing": int(domain.counts[domain.missing]) if domain.missing is not None else 0,
                "risk_contribution": risk[domain.name],
            }
        for name, values in table.sensitive.items():
            distinct = int(np.count_nonzero(values.domain.counts))
            columns[name] = {"role": "sensitive", "distinct": distinct, "distance": values.domain.distance}
        if table.label is not None:
            label = table.label.domain
            columns[label.name] = {"role": "label", "distinct": int(np.count_nonzero(label.counts))}
        sizes, number = self.histogram()
        return {
            "rows": table.rows,
            **({} if table.units is None else {"units": table.units.number}),
            **({} if table.households is None else {"households": table.households.number}),
            "classes": int(self.classes.kept.sum()),
            "suppressed": self.classes.suppressed_rows,
            "rows_read": table.rows_read,
            "left_out": table.left_out,
            "measures": {name: figure.as_dict() for name, figure in self.figures.items()},
            "columns": columns,
            "class_sizes": {"size": sizes.tolist(), "classes": number.tolist()},
            "whole": self.whole.as_dict(),
            "notes": list(self.notes),
            "fingerprint": table.fingerprint,
        }


def audit(study: Study, path: Any = None) -> Audit:
    """Measure the table of a study, or another table that is read in the same way, without a change to it.

    Args:
        study: the table, and what its columns are.
        path: another table that is read the same way: a file, or a table in memory.

    Returns:
        Every figure that the table can answer, with its folds.
    """
    chosen = with_settings(study.measures)
    classes = classify(study.table(path))
    figures = {name: figure(classes, measure) for name, measure in chosen.items()}
    whole = _whole(study, path)
    alone = [identifying_sentence(one, study.policy.identifying) for one in identifying(study, whole.own)]
    notes = (_about_whole(whole), *alone, *unstated_notes(study, study.source(path)), *_notes(classes))
    return Audit(classes, figures, tuple(contributions(classes)), whole, notes, study.frame_kind)


def _whole(study: Study, path: Any) -> WholeFile:
    source = study.source(path)
    with open_engine(study.engine, study.engine_options) as engine, stage("all columns together"):
        engine.attach(source, "raw")
        cells = holder_cells(source, study)
        whole = whole_file(engine, study, source, "raw", cells.get(PERSON))
        if HOUSEHOLD not in cells:
            return whole
        households = whole_file(engine, study, source, "raw", cells[HOUSEHOLD], "households")
        return replace(whole, own=worst(whole.own, households.own))


def _about_whole(whole: WholeFile) -> str:
    """Describe how many records are unique over all released columns, and how many columns no figure counts."""
    number, share = len(whole.uncounted), 100 * whole.everything.unique_share
    counted_in = "all of them are included in the measures."
    if number:
        counted_in = (
            f"{counted(number, 'column')} {'is' if number == 1 else 'are'} not included in any measure: "
            f"{shortened(whole.uncounted, 12)}."
        )
    columns = counted(whole.everything.columns, "column")
    return f"Over all {columns} that are released, {share:.1f} % of the {whole.counted} are unique; {counted_in}"


def figure(classes: ClassTable, measure: Measure) -> Figure:
    """Return a measure with all its summaries, for several sensitive columns those of the worst."""
    if reason := measure.available(classes):
        return Figure(measure, None, reason=reason)
    values = {column: measure.value(classes, column) for column in measure.columns(classes)}
    better = max if measure.direction == "min" else min
    worst = better(values, key=lambda column: values[column])
    measured = measure.property(classes, worst)
    if measure.reads == "sensitive" and measure.direction == "max":
        measured = measured.limited(EXEMPT)  # a class in which nothing can be learned has no ℓ for the mean
    quantiles = dict(zip([f"{share:g}" for share in SHARES], measured.quantiles(SHARES), strict=True))
    named = {column: value for column, value in values.items() if column is not None}
    folds = measured.worst(measure.direction), measured.mean(), measured.total()
    return Figure(measure, values[worst], *folds, quantiles, named or None)


def _notes(classes: ClassTable) -> list[str]:
    """Return the notes that a reader of the figures needs."""
    table = classes.table
    notes = []
    if table.left_out:
        share = percent(table.left_out / (table.records + table.left_out))
        notes.append(
            f"{table.left_out:,} records of the source are left out because of missing values ({share}). They count as "
            "lost in the loss of every release."
        )
    starred = int(table.counts[table.starred].sum())
    if starred:
        notes.append(
            f"{counted(starred, 'row has', 'rows have')} every quasi-identifier hidden. "
            "Such rows count as suppressed, not as a class."
        )
    if table.removed:
        notes.append(
            f"{counted(table.removed, 'record was', 'records were')} removed earlier, which count as suppressed."
        )
    undeclared = [d.name for d in table.domains if not d.declared]
    if undeclared:
        notes.append(
            f"No hierarchy for {', '.join(undeclared)}: losses treat the values of these columns as original, "
            "except *, which is hidden."
        )
    if any(domain.wildcard for domain in table.domains):
        notes.append(
            "Missing values match anything: a record is in one class with all records that agree where both "
            "values are known."
        )
    return notes
