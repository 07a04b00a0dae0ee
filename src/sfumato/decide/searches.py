"""The searches that answer what a front cannot: the study, whether it takes seconds, the exact command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from sfumato.decide.limits import Limits
from sfumato.front import Front
from sfumato.measures.facts import Form
from sfumato.measures.registry import measure
from sfumato.measures.standard import DISTINCT_L, K
from sfumato.study import Study

QUICK = 200_000_000  # evaluations times tuples, which is a few seconds of the compiled walk


def searched_limit(front: Front) -> float:
    """The share that a front's search was allowed to suppress; 1 where any suppression was."""
    settings = front.study.search
    if front.system == "cuts" and not settings.max_suppression:
        rule = settings.suppression or ""
        if settings.problem == 3 or (settings.problem is None and rule == "below_mean"):
            return 1.0
    return settings.max_suppression


def study_for(front: Front, limits: Limits) -> Study | None:
    """The study whose front answers a question that is outside of a front's limits; None where it is inside."""
    changed: dict[str, Any] = {}
    settings = front.study.search
    if limits.max_suppression != searched_limit(front):
        changed["max_suppression"] = min(limits.max_suppression, 0.999)
    names = {objective.name for objective in front.objectives} | set(settings.constraints)
    if limits.min_l is not None and DISTINCT_L.name not in names:
        changed["constraints"] = dict(settings.constraints) | {DISTINCT_L.name: limits.min_l}
    return front.study.with_search(**changed) if changed else None


def takes_seconds(front: Front) -> bool:
    """Whether a search like the one that found a front takes seconds: it was complete, and did little."""
    return front.exact and front.system == "lattice" and front.evaluations * (front.tuples or front.rows) <= QUICK


def searched_folder(folder: Path, max_suppression: float) -> Path:
    """Where the command that searches with another limit puts its front."""
    return folder.with_name(f"{folder.name}-suppression-{max_suppression:g}")


def search_command(max_suppression: float, folder: Path | None, problem: int | None = None) -> str:
    """The command that searches the same study with another limit, or for another of the four problems."""
    run = "run.toml" if folder is None else str(folder / "run.toml")
    name = "front" if folder is None else str(folder).rstrip("/")
    words = ["sfumato", "search", run]
    if problem is not None:
        words += ["--system", "cuts", "--problem", str(problem)]
        name += f"-problem-{problem}"
    words += ["--max-suppression", f"{min(max_suppression, 0.999):g}"]
    if problem is None:
        name = str(searched_folder(Path(name), max_suppression))
    return shlex.join([*words, "-o", name])


def better_searches(front: Front, max_suppression: float, folder: Path | None) -> dict[int, str]:
    """For each of the four questions the search that seeks exactly it; none where the front's own did."""
    if not front.recodes:
        return {}
    settings = front.study.search
    usual = searched_limit(front)
    limit = max_suppression if max_suppression < 1 else 0.1
    sought = [measure(objective.name) for objective in front.objectives]
    result = {}
    if not (any(result.histogram is Form.MEAN_SIZE for result in sought) and usual == 0):
        result[1] = search_command(0.0, folder, problem=1)
    if not (K in sought and DISTINCT_L not in sought and usual == limit):
        result[2] = search_command(limit, folder, problem=2)
    sensitive = any(column.role.value == "sensitive" for column in front.study.columns.values())
    if sensitive and not (K in sought and DISTINCT_L in sought and usual == limit and not settings.reproduction):
        result[4] = search_command(limit, folder, problem=4)
    return result
