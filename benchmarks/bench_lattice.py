"""The lattice: nodes per CPU second of a full pass, the exact search, threads; the numpy oracle in the same run."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.measures.plain_classes import node_figures

import sfumato as sf
from benchmarks.arx_criteria import settings, study_of
from benchmarks.synthetic import COLUMNS, census_table
from benchmarks.timing import cpu_seconds, show
from sfumato.measures.measure import Goal
from sfumato.measures.registry import measure
from sfumato.measures.suppression import budget
from sfumato.methods.lattice.problem import LatticeProblem
from sfumato.plans.recodings import at_levels
from sfumato.tables.frequency import FrequencyTable, Population

CRITERIA = {
    "k, loss": ["k"],
    "k, ℓ, loss": ["k", "distinct_l"],
    "k, journalist risk, loss": ["k", "journalist_risk"],
    "k, t, loss": ["k", "t_closeness"],
}


def problem_of(table: FrequencyTable, names: list[str], paper: bool = False, threads: int = 1) -> LatticeProblem:
    """Some criteria and the general loss, every threshold within 1 %."""
    goals = [Goal(measure(name), measure(name).direction) for name in (*names, "general_loss")]
    return LatticeProblem(table, goals, budget(0.01, table.records), threads=threads, paper=paper)


def with_people(table: FrequencyTable) -> FrequencyTable:
    """The table as a sample of three times as many people."""
    return replace(table, population=Population(table.codes, table.counts * 3))


def main() -> None:
    tables = {"Adult, eight columns": sf.read(sf.sample("adult-complete")).table()}
    shared = os.environ.get("SFUMATO_SHARED")
    if shared:
        tables["Adult, ARX's lattice"] = _arx(Path(shared) / "data/arx/adult")
    rows = []
    for name, table in tables.items():
        oracle = _oracle_rate(table)
        for label, names in CRITERIA.items():
            if len(names) > 1 and not table.sensitive:
                continue
            known = with_people(table) if "journalist_risk" in names else table
            problem = problem_of(known, names)
            nodes = problem.rollup.all_nodes
            seconds, _ = cpu_seconds(lambda problem=problem, nodes=nodes: problem.figures(nodes), 2.0)
            rate = problem.space / seconds
            rows.append(
                [
                    name,
                    label,
                    f"{problem.space:,}",
                    f"{table.tuples:,}",
                    f"{rate:,.0f}",
                    f"{oracle:,.0f}",
                    f"{rate / oracle:.0f}×",
                ]
            )
    show(
        "Full pass, one thread", ["lattice", "figures", "nodes", "tuples", "nodes/CPU s", "numpy oracle", "ratio"], rows
    )
    _threads(tables["Adult, eight columns"])
    _exact()
    if shared:
        _criteria(Path(shared) / "data/arx/adult")


def _oracle_rate(table: FrequencyTable) -> float:
    """The plain numpy evaluation of 60 nodes drawn at random."""
    rng = np.random.default_rng(5)
    nodes = [[int(rng.integers(0, d.hierarchy.height + 1)) for d in table.domains] for _ in range(60)]
    most = budget(0.01, table.records)
    plans = [at_levels(table, node) for node in nodes]
    losses = [
        [(p.covers[p.groups] - 1) / max(d.leaves - 1, 1) for p, d in zip(plan, table.domains, strict=True)]
        for plan in plans
    ]
    full = float(len(table.domains))

    def job() -> None:
        for plan, loss in zip(plans, losses, strict=True):
            node_figures(table.codes, table.counts, plan, loss, most, full)

    return len(nodes) / cpu_seconds(job)[0]


def _threads(table: FrequencyTable) -> None:
    rows = []
    walls = {}
    for threads in (1, 2):
        problem = problem_of(table, ["k"], threads=threads)
        nodes = problem.rollup.all_nodes
        problem.figures(nodes[:100])
        best = min(_wall(lambda problem=problem, nodes=nodes: problem.figures(nodes)) for _ in range(5))
        walls[threads] = best
        rows.append([str(threads), f"{best:.3f}", f"{problem.space / best:,.0f}", f"{walls[1] / best:.2f}×"])
    show("Threads (best wall time of five)", ["threads", "wall s", "nodes/s", "against one"], rows)


def _exact() -> None:
    """The exact search against the full pass, on Adult and on a lattice of over a million nodes."""
    rows = []
    adult = sf.read(sf.sample("adult-complete"))
    large = census_table(5_000, columns=COLUMNS | {"region": 32})
    study = sf.Study(data={"path": "synthetic"}, columns={}, search={"max_suppression": 0.01, "threads": 1})
    for name, base, table in (
        ("Adult", adult.with_search(threads=1), adult.table()),
        ("synthetic census", study, large),
    ):
        spent = {}
        for algorithm in ("exact", "exhaustive"):
            chosen = base.with_search(algorithm=algorithm)
            sf.search(chosen, table=table) if name == "Adult" else None
            began = time.process_time()
            front = sf.search(chosen, table=table)
            spent[algorithm] = (time.process_time() - began, front)
        (fast, found), (full, whole) = spent["exact"], spent["exhaustive"]
        assert [p.values for p in found.points] == [p.values for p in whole.points]
        share = found.evaluations / found.space
        rows.append(
            [
                name,
                f"{found.space:,}",
                f"{found.evaluations:,} ({share:.1%})",
                f"{fast:.2f}",
                f"{full:.2f}",
                f"{full / fast:.1f}×",
            ]
        )
    heads = ["lattice", "nodes", "evaluated by exact", "exact, CPU s", "full pass, CPU s", "ratio"]
    show("Exact against the full pass, (k, general loss)", heads, rows)


def _wall(job: object) -> float:
    began = time.perf_counter()
    job()  # type: ignore[operator]
    return time.perf_counter() - began


def _arx(folder: Path) -> FrequencyTable:
    order = [
        "sex",
        "age",
        "race",
        "marital-status",
        "education",
        "native-country",
        "workclass",
        "occupation",
        "salary-class",
    ]
    columns = {c: {"role": "quasi_identifier", "hierarchy": str(folder / f"adult_hierarchy_{c}.csv")} for c in order}
    return sf.Study(data={"path": str(folder / "adult.csv")}, columns=columns).table()


def _criteria(folder: Path) -> None:
    """ARX's 56 optima of k and another criterion, one after the other."""
    study = study_of(folder)
    table = study.table()
    asked = [wanted for _, wanted in settings(study, folder)]
    sf.search(asked[0], table=table)  # compiled before it is timed
    seconds = []
    for wanted in asked:
        began = time.process_time()
        sf.search(wanted.with_search(threads=1), table=table)
        seconds.append(time.process_time() - began)
    rows = [[f"{np.mean(seconds):.2f}", f"{np.median(seconds):.2f}", f"{max(seconds):.2f}", "0.75"]]
    show(
        "Adult, k 5 and one of seven criteria, 56 settings",
        ["CPU s, mean", "median", "largest", "ARX 3.9.2, mean"],
        rows,
    )
