"""What a point would be as a file, before anything is written: how unique its records are over all its columns."""

from __future__ import annotations

from sfumato.auditing.own_values import PERSON
from sfumato.auditing.whole import WholeFile, whole_file
from sfumato.front import Front, Point
from sfumato.measures.classes import classify
from sfumato.measures.planned import suppress_by_plan
from sfumato.plans.boxes import BoxPlan
from sfumato.release import pack
from sfumato.release.boxes.foreseen import foreseen_boxes
from sfumato.release.columns import column_recodes
from sfumato.release.recode import Below, recode
from sfumato.release.recoding_draft import as_source
from sfumato.sources.engines.engine import open_engine
from sfumato.tables.frequency import FrequencyTable

VIEW = "foreseen"


def foreseen(front: Front, point: Point, table: FrequencyTable) -> WholeFile:
    """The whole file that a point would be released as. `table` is the frequency table of the front's study."""
    study = front.study
    if isinstance(point.plan, BoxPlan):
        return foreseen_boxes(study, table, point.plan)
    trees, levels = pack.trees_and_levels(study, table, point.recoding_plan)
    columns = column_recodes(study, levels, trees)
    plan = point.recoding_plan
    classes = suppress_by_plan(classify(table, plan.recoding(table)), plan, study.measures)
    below = Below.of(plan, classes, columns)
    with open_engine(study.engine, study.engine_options) as engine:
        recoded = recode(engine, study.source(), study, columns, below)
        persons = table.units is not None
        engine.run(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {recoded.sql(holders=persons)}")
        return whole_file(engine, study, as_source(recoded, columns), VIEW, PERSON if persons else None)
