"""A search on a full disk keeps what it finds for as long as it can, and writes nothing by halves."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from tests.release.fronts import small

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import SfumatoWarning
from sfumato.methods.run import Checkpoint


@pytest.fixture
def study(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> sf.Study:
    """A search whose state is written at every turn, of a table on another disk."""
    monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
    flat = {"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
    return small(tmp_path_factory.mktemp("elsewhere"), rows=60, sex=flat)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(1 << 12))


@pytest.mark.parametrize("system", ["lattice", "cuts"])
def test_a_state_that_cannot_be_written_does_not_end_the_search(small_disk: Path, study: sf.Study, system: str) -> None:
    given = study.with_search(system=system, **({"generations": 3, "population": 8} if system == "cuts" else {}))
    fill(small_disk / "filler")
    with pytest.warns(SfumatoWarning, match="cannot be resumed") as said:
        found = sf.search(given, checkpoint=small_disk / "state")
    assert len(said) == 1  # once, however often it fails
    assert [point.as_dict() for point in found.points] == [point.as_dict() for point in sf.search(given).points]
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_a_front_that_cannot_be_written_is_an_error_and_leaves_nothing(
    small_disk: Path, study: sf.Study, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = Path(study.data.path).with_name("full.toml")
    text = study.with_search(system="cuts", generations=3, population=8).as_toml()
    elsewhere.write_text(text, "utf-8")
    fill(small_disk / "filler")
    assert run(["search", str(elsewhere), "-o", str(small_disk / "out")]) == 2
    said = capsys.readouterr().err
    assert "warning: the state of the search cannot be written" in said
    assert "cannot write" in said
    assert "No space left on device" in said
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
