"""The groups system: the complete rule walk, the attackers and least-cost swaps on a synthetic census."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from sfumato.methods.groups.attack.attack import attack_with
from sfumato.methods.groups.attack.rule_walk import minimal_rows, walk_rules
from sfumato.methods.groups.attack.rules import grade
from sfumato.methods.groups.files import read_auxiliary, read_target, settings_of, variables_for
from sfumato.methods.groups.planner import Planner
from sfumato.methods.groups.search import truths_of
from sfumato.papers.groups import make_census
from sfumato.study import read


def main() -> None:
    """Print a table of CPU seconds on a census of 300,000 records, and on a survey of its size to protect."""
    print("\n### Groups: synthetic census of 300,000 records, 1,335 members, 60 areas\n")
    print("| step | what | CPU s |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        made = make_census(Path(folder) / "census", 300_000, 1_335, 60)
        _row("generate", "two files", began)
        study = read(made.run)
        began = time.process_time()
        census, survey = read_auxiliary(study, settings_of(study).auxiliary[0]), read_target(study)
        _row("harmonise", f"{census.records + survey.records:,} rows", began)
        variables = variables_for(study, census)
        graded = grade(census, variables)
        walk_rules(graded, census.members["military"], 1.0, 0.5, 5)  # compiled before the clock starts
        began = time.process_time()
        walked = walk_rules(graded, census.members["military"], 0.75, 0.001, 5)
        rules = minimal_rows(walked.rules, graded.terms)
        _row("walk", f"{walked.visited:,} rules met, {len(walked.rules):,} pass, {len(rules):,} minimal", began)
        known = []
        for attacker in ("exact", "evolutionary", "boosted"):
            began = time.process_time()
            known += attack_with(study, survey, census, attacker, "military", [1])
            _row(f"attack, {attacker}", "learn and apply", began)
        began = time.process_time()
        planner = Planner(study, survey, truths_of(study, survey), known, np.random.default_rng(1))
        plan = planner.plan(1.0)
        told = "none" if plan is None else f"{plan[0].swaps} swaps, cost {plan[0].cost:g}"
        _row("protect, exact", told, began)


def _row(step: str, what: str, began: float) -> None:
    print(f"| {step} | {what} | {time.process_time() - began:.1f} |", flush=True)


if __name__ == "__main__":
    main()
