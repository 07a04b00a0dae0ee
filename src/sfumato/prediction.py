"""Estimates of the cost of a run, from each stage on a sample of the rows.

Nothing is assumed about the machine. The stages run on fewer rows, and their processor time is scaled with the number
of rows or of distinct tuples.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing.uniqueness import whole_file
from sfumato.base.files import Scratch
from sfumato.base.progress import Stage, peak_memory, recording, stage
from sfumato.data.engine import open_engine
from sfumato.data.sampling import distinct, rows_of, sampled
from sfumato.data.source import Source
from sfumato.errors import InputError, UnreachableError
from sfumato.front import Front
from sfumato.methods.cuts.search import CutSearch
from sfumato.methods.lattice.search import Search
from sfumato.methods.search import search
from sfumato.plans.recodings import LevelPlan
from sfumato.release.columns import column_recodes
from sfumato.release.format import format_of, target_of
from sfumato.release.manifest import data_name, make_parts, trees_and_levels, write_hierarchies
from sfumato.release.policy import extreme_columns
from sfumato.release.readback import figures_of, released_classes
from sfumato.release.recoding import write_run_file
from sfumato.release.rows import Below, differing_rows, recode, write_mixed
from sfumato.study import ALGORITHMS, Study
from sfumato.study.methods import METHODS
from sfumato.tables.frequency import FrequencyTable

SAMPLE = 1_000_000  # rows that stages are rehearsed on
REHEARSED = (2_500, 10_000)  # rows that the whole search is rehearsed on, for how its evaluations grow
SHORT = (64, 640)  # evaluations of two short searches on the sample, for the time each takes
LOADED = 2.0  # seconds at most that a first search takes to load what it needs, once it is compiled
GENERATIONS = (2, 6)  # the same of a search over cuts
CELL = 16  # bytes of a cell while rows are sorted, on the average
TEXT = 24  # bytes of a text key in the engine, on the average
BY_ROWS = ("count distinct rows", "count classes", "write the file", "compare every row", "look for extremes")


@dataclass(frozen=True)
class Predicted:
    """A stage: processor seconds, and the most memory held until its end."""

    name: str
    cpu_seconds: float
    peak_bytes: int

    def as_dict(self) -> dict[str, object]:
        return {"stage": self.name, "cpu_seconds": round(self.cpu_seconds, 3), "peak_bytes": self.peak_bytes}


@dataclass(frozen=True)
class Prediction:
    """What is expected of a study, before it is run."""

    rows: int
    tuples: int
    nodes: int
    evaluations: int
    stages: tuple[Predicted, ...]
    sampled: int

    @property
    def seconds(self) -> float:
        return sum(stage.cpu_seconds for stage in self.stages)

    @property
    def peak_bytes(self) -> int:
        return max(stage.peak_bytes for stage in self.stages)

    def as_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("rows", "tuples", "nodes", "evaluations")},
            "sampled_rows": self.sampled,
            "cpu_seconds": round(self.seconds, 3),
            "peak_bytes": self.peak_bytes,
            "stages": [stage.as_dict() for stage in self.stages],
        }


def predict(study: Study) -> Prediction:
    """Predict rows, tuples, evaluations, and processor time and memory of every stage up to the published file.

    Args:
        study: the table, and what its columns are.

    Returns:
        What each stage is expected to take.
    """
    if study.system not in ALGORITHMS:
        raise InputError(
            f"the cost of a search of the {study.system} system cannot be predicted",
            expected=f"a run file of {' or '.join(ALGORITHMS)}",
        )
    source = study.source()
    rows = rows_of(source)
    with Scratch(parent=study.engine_options.temp_folder) as scratch:
        folder = scratch.path
        some, *few = (_on_source(study, sampled(source, rows, wanted, folder)) for wanted in (SAMPLE, *REHEARSED))
        with recording() as read:
            table = some.table()
        read_rows = max(table.rows_read, 1)
        rows = read_rows if rows <= SAMPLE else rows
        grown = rows / read_rows
        combinations = math.prod(int(np.count_nonzero(domain.counts)) for domain in table.domains)
        tuples = round(distinct(table.counts, round(table.records * grown), combinations))
        wider = tuples / table.tuples
        searching = predict_search(study, table, [rehearsed.table() for rehearsed in few], rows)
        searched = peak_memory()
        release = _release(some, table, folder)
    spent = {
        done.name: done.cpu_seconds * (grown if done.name in BY_ROWS else wider) for done in [*read.done, *release]
    }
    spent["write the file"] *= math.log(max(rows, 2)) / math.log(max(read_rows, 2))  # rows are sorted
    spent["fingerprint"] = _fingerprint(source)
    spent["search"] = searching.cpu_seconds * wider
    published, more = peak_memory(), _more_bytes(study, table, tuples - table.tuples)
    sort = min(rows * CELL * (len(source.columns) + 1), _engine_limit(study))
    names = list(dict.fromkeys([*(s.name for s in read.done), "search", *(s.name for s in release)]))
    sorting = names.index("write the file")
    stages = tuple(
        Predicted(name, spent[name], more + (published + sort if number >= sorting else searched))
        for number, name in enumerate(names)
    )
    return Prediction(rows, tuples, searching.space, searching.evaluations, stages, min(read_rows, rows))


def compared(predicted: Mapping[str, Any], happened: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Return the figures that a prediction and a run share: name, predicted, actual."""
    figures = [(name, float(predicted[name]), float(happened[name])) for name in ("rows", "tuples", "evaluations")]
    actual: dict[str, float] = defaultdict(float)
    for done in happened["stages"]:
        actual[done["stage"]] += done["cpu_seconds"]
    expected = {part["stage"]: part["cpu_seconds"] for part in predicted["stages"] if part["stage"] in actual}
    figures += [(f"{name}, CPU s", seconds, actual[name]) for name, seconds in expected.items()]
    figures.append(("together, CPU s", sum(expected.values()), sum(actual[name] for name in expected)))
    peaks = (
        max(part["peak_bytes"] for part in parts if part["stage"] in expected) / 2**20
        for parts in (predicted["stages"], happened["stages"])
    )
    return [*figures, ("peak, MiB", *peaks)]


def _on_source(study: Study, source: Source) -> Study:
    return study if not source.files else study.replace(data={"path": str(source.path.absolute())})


@dataclass(frozen=True)
class SearchCost:
    """Evaluations that a search will take, the size of its space, and its processor seconds."""

    evaluations: int
    space: int
    cpu_seconds: float


def predict_search(
    study: Study, table: FrequencyTable, few: Sequence[FrequencyTable] = (), rows: int = 0
) -> SearchCost:
    """Estimate the cost of a search over levels or cuts on a table, from two short searches.

    The number of nodes that a search of a lattice evaluates is counted on the two tables `few`, and extrapolated to
    `rows` by a power of the rows. Without these tables, it is the number of all nodes.
    """
    settings = study.search
    if METHODS[settings.system].neighbours:
        fronts = _timed(lambda n: search(study.with_search(generations=n), table=table), GENERATIONS)
        total = round(fronts[1][0] * settings.generations / GENERATIONS[1])
        return SearchCost(total, CutSearch(study, table).space.size, _line(*fronts, total))
    space = Search.prepare(study, table).problem.space
    evaluations, loaded = space, 0.0
    if few:
        first, again = _timed(lambda n: search(study, table=few[1]), (0, 0))
        loaded = min(first[1] - again[1], LOADED)
        if settings.method != "exhaustive" and again[0]:
            fewer, _ = _timed(lambda n: search(study, table=few[0]), (0, 0))
            evaluations = min(_grown(few, (fewer[0], again[0]), rows), space)
    evaluations = min(evaluations, settings.evaluations or evaluations)
    fronts = _timed(lambda n: search(study.with_search(evaluations=n), table=table), SHORT)
    return SearchCost(evaluations, space, loaded + _line(*fronts, evaluations))


Timed = tuple[int, float]  # evaluations and processor seconds of a search


def _timed(find: Callable[[int], Front], sizes: tuple[int, int]) -> tuple[Timed, Timed]:
    """Time two searches, so that the fixed cost and the cost of an evaluation can be separated."""

    def one(size: int) -> Timed:
        began, evaluations = time.process_time(), size
        with suppress(UnreachableError):
            evaluations = find(size).evaluations
        return evaluations, time.process_time() - began

    return one(sizes[0]), one(sizes[1])


def _grown(few: Sequence[FrequencyTable], evaluations: tuple[int, int], rows: int) -> int:
    """Extrapolate the evaluations of two tables to `rows`, by a power of the rows."""
    (fewer, more), (small, large) = evaluations, (max(table.rows_read, 1) for table in few)
    if large <= small or not 0 < fewer < more:
        return more
    power = math.log(more / fewer) / math.log(large / small)
    return round(more * math.pow(max(rows / large, 1.0), power))


def _line(short: Timed, longer: Timed, evaluations: int) -> float:
    """Return the seconds of `evaluations`, on the line through two searches."""
    if longer[0] <= short[0]:  # both did all there was to do
        return longer[1] * max(evaluations / max(longer[0], 1), 1.0)
    each = max((longer[1] - short[1]) / (longer[0] - short[0]), longer[1] / longer[0] / 4)
    return short[1] + max(evaluations - short[0], 0) * each


def _release(study: Study, table: FrequencyTable, folder: Path) -> list[Stage]:
    """Time the stages of a release at the middle levels of the hierarchies, in a temporary folder."""
    plan = LevelPlan({d.name: (d.hierarchy.height + 1) // 2 for d in table.domains}, 0)
    trees, levels = trees_and_levels(study, table, plan)
    columns = column_recodes(study, levels, trees)
    out = folder / "release"
    out.mkdir()
    make_parts(out)
    files = write_hierarchies(out, trees)
    source = study.source()
    data = data_name(source)
    with recording() as recorder, open_engine(study.engine, study.engine_options) as engine:
        with stage("count classes"):
            recoded = recode(engine, source, study, columns, Below(), target_of(source, format_of(source)))
        with stage("write the file"):
            written = write_mixed(engine, recoded, out / data)
        own = write_run_file(out, study, table, recoded, data, files, written)
        with stage("compare every row"):
            differing_rows(engine, recoded, own.source())
        with stage("look for extremes"):
            extreme_columns(engine, study, own.source())
        with stage("measure all columns together"):
            whole_file(engine, study, own.source())
        with stage("measure the file"):
            figures_of(study, released_classes(own, columns), {})
    outer = {"count classes", "write the file", "compare every row", "look for extremes"}
    outer |= {"measure all columns together", "measure the file"}
    return [done for done in recorder.done if done.name in outer]


def _fingerprint(source: Source) -> float:
    """Estimate the seconds of reading the source once, from its first megabytes."""
    files = source.files
    if not files:  # digested with the rows
        return 0.0
    size = sum(file.stat().st_size for file in files)
    with files[0].open("rb") as stream:
        began = time.process_time()
        block = stream.read(1 << 26)
        hashlib.sha256(block).digest()
        return (time.process_time() - began) * size / max(len(block), 1)


def _engine_limit(study: Study) -> int:
    """Return the bytes that the engine may hold: as declared, else its default, four fifths of the memory."""
    said = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?)(i?)B?\s*", study.engine_options.memory_limit or "", re.IGNORECASE)
    if said:
        return int(float(said[1]) * (1024 if said[3] else 1000) ** " KMGT".index(said[2].upper() or " "))
    return int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else 2**62


def _more_bytes(study: Study, table: FrequencyTable, tuples: int) -> int:
    """Return the bytes of the tuples that the sample lacks: text keys, codes, and classes in each thread."""
    width, threads = len(table.domains), study.search.threads or os.cpu_count() or 1
    each = width * (TEXT + 16) + threads * (16 * (width + 1) + 64)
    return max(tuples, 0) * each
