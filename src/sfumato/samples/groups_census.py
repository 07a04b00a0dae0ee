"""The synthetic census as a study: two files with the same installations, and a run file that names them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.runtime.atomic import new_folder, refuse_existing_folder
from sfumato.runtime.toml import toml_text
from sfumato.samples.census import COLUMNS, Census, plant, write_census
from sfumato.study import read
from sfumato.study.census_recipes import ORDINAL, RANGES, TERMS

PAPER_RECORDS, PAPER_MEMBERS, PAPER_AREAS = 3_205_478, 14_263, 1_238
SURVEY_SHARE, SURVEY_MEMBERS = 565_243 / PAPER_RECORDS, 3_992 / PAPER_MEMBERS


@dataclass(frozen=True)
class Planted:
    """A census on disk: the auxiliary file, the survey to publish, the run file, and what was planted."""

    folder: Path
    run: Path
    census: Census
    survey: Census
    seed: int


def make_census(
    folder: Path,
    records: int = PAPER_RECORDS,
    members: int = PAPER_MEMBERS,
    areas: int = PAPER_AREAS,
    seed: int = 1,
    state: int | None = None,
) -> Planted:
    """Write `census.parquet`, `survey.parquet` and `run.toml` to a new folder."""
    refuse_existing_folder(folder)
    census = plant(records, members, areas, seed)
    survey = plant(
        max(round(records * SURVEY_SHARE), 10 * areas),
        max(round(members * SURVEY_MEMBERS), 1),
        areas,
        seed,
        scale_seed=1,
    )
    labels = np.array(survey.labels())
    expert = labels[survey.installations].tolist()
    with new_folder(folder, private=False) as inside:
        write_census(census, inside / "census.parquet", seed)
        write_census(survey, inside / "survey.parquet", seed + 1)
        (inside / "run.toml").write_text(run_file(expert, state), encoding="utf-8")
        read(inside / "run.toml")
    return Planted(folder, folder / "run.toml", census, survey, seed)


def run_file(expert: list[str], state: int | None = None) -> str:
    """The run file of a synthetic census: columns are the attributes themselves."""
    attributes = {
        name: {"column": name, "range": list(RANGES[name]), "ordinal": name in ORDINAL, "terms": _terms(name)}
        for name in COLUMNS
    }
    groups = {
        "vital": {"military": [{"military": "1"}]},
        "area": ["state", "puma"],
        "expert": expert,
        "auxiliary": [{"path": "census.parquet", "name": "census"}],
        "attributes": attributes,
    }
    if state is not None:
        groups |= {"only": [{"state": str(state)}], "expert": [e for e in expert if e.startswith(f"{state:02d}-")]}
    return toml_text({"version": 1, "data": {"path": "survey.parquet"}, "groups": groups})


def _terms(name: str) -> dict[str, dict[str, object]]:
    return {word: {"kind": term.kind, "numbers": list(term.numbers)} for word, term in TERMS[name].items()}
