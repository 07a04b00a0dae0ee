"""The lines that a user of pandas writes, as they stand in the docs, with every kind of frame."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frames.kinds import MAKERS, Columns, columns_of

import sfumato as sf

JOBS = {"nurse": "health", "doctor": "health", "baker": "trade", "joiner": "trade"}


def people(rows: int = 3000) -> Columns:
    rng = np.random.default_rng(16)
    return {
        "age": rng.integers(20, 80, rows).tolist(),
        "zip": rng.choice(["10115", "10117", "10119", "20095", "20097"], rows).tolist(),
        "job": rng.choice(list(JOBS), rows).tolist(),
        "disease": rng.choice(["flu", "cold", "asthma", "none"], rows).tolist(),
        "name": [f"person {number}" for number in range(rows)],
    }


@pytest.mark.long
@pytest.mark.parametrize("kind", list(MAKERS))
def test_the_lines(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    Path("job.csv").write_text("".join(f"{job};{kind_};*\n" for job, kind_ in JOBS.items()))
    df: Any = MAKERS[kind](people())

    study = sf.Study(df, quasi_identifiers=["age", "zip", "job"], sensitive=["disease"], drop=["name"])
    study = study.with_hierarchies(age=sf.intervals(5, 10, 20), zip=sf.prefixes(), job="job.csv")
    audit = sf.audit(study)
    assert audit["k"] == 1
    assert len(columns_of(audit.to_frame())["measure"]) > 30
    front = sf.search(study, objectives=["k", "general_loss"], max_suppression=0.02)
    assert len(front) > 3
    assert front[3].id == 3
    assert columns_of(front.to_frame())["point"] == list(range(len(front)))
    assert front.plot().data
    choice = sf.pick(front, min_k=5, max_loss=0.3)
    assert "min_k" in choice.binding
    safe = choice.apply(df)
    assert type(safe) is type(df)
    assert sf.measures.k(safe, ["age", "zip", "job"]) >= 5
    release = sf.publish(choice, "release")
    assert release.folder == tmp_path / "release"
    sf.verify("release", source=df).raise_if_failed()
    assert sf.verify("release", source=df)
    pairs = Counter(zip(people()["age"], people()["zip"], strict=True))
    assert sf.measures.k(df, ["age", "zip"]) == min(pairs.values())
