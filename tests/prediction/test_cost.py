"""What a run is expected to cost, against what it costs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato import prediction
from sfumato.cli import run
from sfumato.data import sampling
from sfumato.prediction import predict, predict_search
from sfumato.samples.samples import write_people


def near(guess: float, fact: float, times: float = 2.0) -> bool:
    return fact / times <= guess <= fact * times


@pytest.mark.long
def test_a_table_that_is_read_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    front = sf.search(sf.read(sf.sample("adult-complete")))
    front.save(tmp_path / "front")
    assert run(["predict", str(sf.sample("adult-complete")), "--against", str(tmp_path / "front"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tuples"] == front.tuples
    assert found["rows"] == 30_162
    assert near(found["evaluations"], front.evaluations)
    assert [part["stage"] for part in found["stages"]][:4] == ["count distinct rows", "fingerprint", "encode", "search"]
    assert {pair["figure"] for pair in found["compared"]} >= {"rows", "tuples", "search, CPU s", "peak, MiB"}


@pytest.mark.parametrize("system", ["local", "cells", "channel"])
def test_a_system_whose_cost_is_not_known_is_refused(system: str) -> None:
    study = sf.Study(
        data={"path": "people.csv"}, columns={"age": {"role": "quasi_identifier"}}, search={"system": system}
    )
    with pytest.raises(sf.InputError, match="cannot be predicted"):
        predict(study)


def test_a_table_of_which_some_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = sf.read(write_people(tmp_path / "people", 60_000, seed=3)).with_search(algorithm="exhaustive")
    monkeypatch.setattr(prediction, "SAMPLE", 6_000)
    found = predict(study)
    assert found.rows == 60_000
    assert near(found.sampled, 6_000, 1.1)
    assert near(found.tuples, study.table().tuples)
    assert found.evaluations == found.nodes == 1_728


def test_the_search_alone_by_the_same_model(tmp_path: Path) -> None:
    """Without a table to try it on, a search of a lattice takes every node; one of cuts has its own end."""
    study = sf.read(write_people(tmp_path / "people", 3_000, seed=3))
    table = study.table()
    levels = predict_search(study, table)
    assert levels.evaluations == levels.space == 1_728
    assert levels.cpu_seconds > 0
    assert predict_search(study.with_search(evaluations=100), table).evaluations == 100
    cuts = predict_search(study.with_search(system="cuts", generations=12), table)
    assert 0 < cuts.evaluations < cuts.space


def test_lines_of_a_text_are_reckoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "HEAD", 20_000)
    text = "age,sex\n" + "".join(f"{17 + row % 60},{'FM'[row % 2]}\n" for row in range(40_000))
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text.encode()))
    columns = {name: {"role": "quasi_identifier", "hierarchy": {"build": "flat"}} for name in ("age", "sex")}
    for name in ("a.csv", "b.csv.gz"):
        source = sf.Study(data={"path": str(tmp_path / name)}, columns=columns).source()
        assert near(sampling.rows_of(source), 40_000, 1.5)
        part = sampling.sampled(source, 40_000, 1_000, tmp_path)
        lines = part.path.read_text().splitlines()
        assert lines[0] == "age,sex"
        assert near(len(lines), 1_001, 1.02)
        assert all(line.endswith((",F", ",M")) for line in lines[1:])


def test_a_folder_that_is_no_front(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", str(sf.sample("adult-complete")), "--against", str(tmp_path)]) == 2
    assert "is not the folder of a front" in capsys.readouterr().err
