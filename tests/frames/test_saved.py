"""A study made in Python is written with its table, and the command line replays it."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

import pandas
import polars
import pytest
from tests.frames.kinds import MAKERS, ROLES, SIX

import sfumato as sf


@pytest.mark.long
@pytest.mark.parametrize("kind", list(MAKERS))
def test_replayed_by_the_command_line(kind: str, tmp_path: Path) -> None:
    frame = MAKERS[kind](SIX)
    study = sf.Study(
        frame,
        **ROLES,
        policy={"k": 1, "l": 1, "t": 1.0, "uniques": 1.0, "identifying": 1.0, "reason": "made for a test"},
    )
    levels = {0: SIX["zip"], 1: [z[:2] for z in SIX["zip"]], 2: ["*"] * 6}
    front = sf.search(study.with_hierarchies(age=sf.intervals(20), zip=levels), max_suppression=0.2)
    run = front.study.save(tmp_path / "saved")
    assert sorted(path.name for path in run.parent.iterdir()) == ["run.toml", "table.parquet"]
    assert run.parent.stat().st_mode & 0o077 == 0
    if kind == "polars":  # as a user would; one kind is enough, they differ only before the file
        command = [sys.executable, "-m", "sfumato", "search", str(run), "-o", str(tmp_path / "front")]
        subprocess.run(command, check=True, capture_output=True)
        again = sf.load_front(tmp_path / "front")
    else:
        again = sf.search(sf.read(run))
    assert again.points == front.points
    assert again.fingerprint == front.fingerprint
    release = sf.publish(sf.pick(front, min_k=2), tmp_path / "release", state=tmp_path / "state")
    sf.verify(release.folder, source=run).raise_if_failed()
    sf.verify(release.folder, source=run.parent / "table.parquet").raise_if_failed()
    moved = run.parent.rename(tmp_path / "moved")
    assert sf.audit(sf.read(moved / "run.toml"))["k"] == 1
    with pytest.raises(sf.InputError, match="moved"):
        study.save(moved)


def test_types_are_kept_or_the_loss_is_said(tmp_path: Path) -> None:
    day = datetime.date(2020, 1, 1)
    columns = {
        "number": [1, 2, None],
        "share": [0.5, None, 2.0],
        "flag": [True, None, False],
        "day": [day, day, None],
        "moment": [datetime.datetime(2020, 1, 1, 12), None, None],
        "text": ["a", None, ""],
        "group": polars.Series(["u", "v", None], dtype=polars.Categorical),
    }
    study = sf.Study(polars.DataFrame(columns), quasi_identifiers=list(columns), missing="category")
    again = sf.read(study.save(tmp_path / "kept"))
    assert again.source().fingerprint == study.source().fingerprint
    assert sf.audit(again).as_dict() == sf.audit(study).as_dict()
    took = pandas.DataFrame({"a": [1, 2], "took": pandas.to_timedelta([1, 2], unit="D")})
    with pytest.raises(sf.DataError, match="took would not be read back from Parquet"):
        sf.Study(took, quasi_identifiers=["a"], drop=["took"]).save(tmp_path / "lost")
    assert not (tmp_path / "lost").exists()
