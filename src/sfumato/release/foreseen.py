"""Prediction of a released file before it is written: its classes, and how unique its records are.

Which records of a divided tuple are in which class depends on a salt that is drawn at publication. Class sizes and
losses do not depend on it. The sensitive values of a class do, so they are predicted for one such draw.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.auditing.uniqueness import PERSON, WholeFile, whole_file
from sfumato.base.arrays import Codes
from sfumato.data.cells import MISSING
from sfumato.data.engine import open_engine
from sfumato.front import Front, Point
from sfumato.measures.classes import ClassTable, classify
from sfumato.measures.suppression import suppress_by_plan
from sfumato.plans.boxes import BoxPlan
from sfumato.release.classes_rows import Assigned, assigned, box_rows
from sfumato.release.columns import column_recodes
from sfumato.release.manifest import trees_and_levels
from sfumato.release.readback import classes_of
from sfumato.release.rows import Below, recode
from sfumato.study import Study
from sfumato.tables.domain import Domain, domain_of
from sfumato.tables.frequency import FrequencyTable, ValueCounts, from_codes

VIEW = "foreseen"
SALT = "foreseen"  # any salt is possible, because nothing is released with it


def foreseen_classes(
    study: Study, table: FrequencyTable, plan: BoxPlan, rng: np.random.Generator
) -> tuple[Assigned, ClassTable]:
    """Return a plan on its table, and the classes that its file would have."""
    made = assigned(study, table, plan, SALT)
    return made, classes_before(study, table, plan, made, rng)


def classes_before(
    study: Study, table: FrequencyTable, plan: BoxPlan, made: Assigned, rng: np.random.Generator | None = None
) -> ClassTable:
    """Return the classes of the file of a plan. Which records of a divided tuple they hold is drawn."""
    rng = np.random.default_rng(0) if rng is None else rng
    members = np.array(plan.members, dtype=np.int64).reshape(-1, 3)
    by = np.lexsort((members[:, 1], members[:, 0]))
    owner = np.repeat(members[by, 1], members[by, 2])  # of every record, tuple by tuple
    inside = owner >= 0
    released = owner[inside]
    columns = [_labelled(study, made, j, released) for j in range(len(made.columns))]
    drawn = {name: (own.domain, _records(own, rng)[inside]) for name, own in table.sensitive.items()}
    label = None if table.label is None else (table.label.domain, _records(table.label, rng)[inside])
    codes = np.stack([codes for _, codes in columns])
    gone = int(np.count_nonzero(~inside)) + table.removed
    file = from_codes([domain for domain, _ in columns], codes, drawn, label, removed=gone)
    file = replace(file, left_out=table.left_out)
    return classes_of(file, made.columns, study.weights_for(table))


def _labelled(study: Study, made: Assigned, j: int, released: np.ndarray) -> tuple[Domain, Codes]:
    """Return the labels of a column, and the label of every released record."""
    column = made.columns[j]
    runs = zip(made.low[:, j].tolist(), made.high[:, j].tolist(), strict=True)
    texts = [column.labels[run] or MISSING for run in runs]
    counts: dict[str, int] = {}
    for text, rows in zip(texts, np.bincount(released, minlength=made.classes).tolist(), strict=True):
        counts[text] = counts.get(text, 0) + rows
    domain = domain_of(column.name, counts, missing=study.data.missing)
    code = {label: number for number, label in enumerate(domain.labels)}
    return domain, np.array([code[text] for text in texts], dtype=np.int32)[released]


def _records(values: ValueCounts, rng: np.random.Generator) -> Codes:
    """Return the value of every record, tuple by tuple. The order within a tuple is drawn."""
    each = np.repeat(values.values, values.counts)
    return each[np.lexsort((rng.random(len(each)), np.repeat(values.tuple_of, values.counts)))]


def foreseen(front: Front, point: Point, table: FrequencyTable) -> WholeFile:
    """Return the uniqueness of the file of a point. `table` is the frequency table of the front's study."""
    study, source, persons = front.study, front.study.source(), table.units is not None
    with open_engine(study.engine, study.engine_options) as engine:
        if isinstance(point.plan, BoxPlan):
            rows = box_rows(engine, source, study, assigned(study, table, point.plan, SALT))
        else:
            plan = point.recoding_plan
            trees, levels = trees_and_levels(study, table, plan)
            columns = column_recodes(study, levels, trees)
            classes = suppress_by_plan(classify(table, plan.recoding(table)), plan, study.measures)
            rows = recode(engine, source, study, columns, Below.of(plan, classes, columns))
        engine.run(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {rows.sql(holders=persons)}")
        return whole_file(engine, study, rows.released, VIEW, PERSON if persons else None)
