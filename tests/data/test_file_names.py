"""A file is read by its very name, whatever characters the name has; a pattern is what names no file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.profile import first_rows
from sfumato.data.sampling import rows_of
from sfumato.data.settings import DataSettings
from sfumato.errors import DataError, InputError, MeasureError

# A name, and another file that the name would stand for if it were read as a pattern.
NAMES = {
    "data[1]": "data1",
    "wh?t": "what",
    "st*r": "star",
    "dir[x]/t": "dirx/t",
    "d?r/t": "dar/t",
    "a\\[1]": "a\\1",
    "[[]1]": "[1]",
    "new\nline[1]": "new\nline1",
}
SUFFIXES = {"csv": ".csv", "transcoded": ".csv", "gzip": ".csv.gz", "parquet": ".parquet"}


def write_csv(path: Path, values: list[str]) -> None:
    path.write_text("age\n" + "\n".join(values) + "\n", "utf-8")


def write_transcoded(path: Path, values: list[str]) -> None:
    """Line ends of two kinds, which the engine does not read as they are."""
    path.write_bytes(("age\r\n" + "\n".join(values) + "\n").encode())


def write_gzip(path: Path, values: list[str]) -> None:
    import gzip

    path.write_bytes(gzip.compress(("age\n" + "\n".join(values) + "\n").encode()))


def write_parquet(path: Path, values: list[str]) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"age": values}), path)


Writer = Callable[[Path, list[str]], None]
WRITERS: dict[str, Writer] = {
    "csv": write_csv,
    "transcoded": write_transcoded,
    "gzip": write_gzip,
    "parquet": write_parquet,
}


def written(folder: Path, kind: str, name: str, values: list[str]) -> Path:
    path = folder / (name + SUFFIXES[kind])
    path.parent.mkdir(exist_ok=True)
    WRITERS[kind](path, values)
    return path


def values_of(path: Path) -> list[str]:
    source = open_source(DataSettings(path=str(path)))
    with open_engine() as engine:
        return sorted(str(row[0]) for row in first_rows(engine, source))


@pytest.mark.parametrize("kind", SUFFIXES)
@pytest.mark.parametrize("name", NAMES)
def test_rows_and_fingerprint_are_of_the_named_file(tmp_path: Path, name: str, kind: str) -> None:
    path = written(tmp_path, kind, name, ["50", "51", "52"])
    written(tmp_path, kind, NAMES[name], ["20", "21"])
    source = open_source(DataSettings(path=str(path)))
    assert source.fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()
    assert values_of(path) == ["50", "51", "52"]
    assert rows_of(source) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_study_measures_the_named_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, "csv", name, ["50", "51", "52"]).relative_to(tmp_path)
    written(tmp_path, "csv", NAMES[name], ["20", "21"])
    table = sf.Study(data={"path": str(path)}, columns={"age": {"role": "quasi_identifier"}}).table()
    assert table.domains[0].labels == ("50", "51", "52")


def test_a_pattern_stands_for_files_with_any_name(tmp_path: Path) -> None:
    written(tmp_path, "csv", "part[1]", ["1"])
    written(tmp_path, "csv", "part[2]", ["2"])
    written(tmp_path, "csv", "part1", ["9"])
    assert values_of(tmp_path / "part[*.csv") == ["1", "2"]
    assert values_of(tmp_path / "part?.csv") == ["9"]
    written(tmp_path, "csv", "part?", ["5"])
    assert values_of(tmp_path / "part?.csv") == ["5"]


def test_brackets_alone_are_no_pattern(tmp_path: Path) -> None:
    written(tmp_path, "csv", "data1", ["9"])
    with pytest.raises(DataError, match="no file"):
        open_source(DataSettings(path=str(tmp_path / "data[1].csv")))


def test_the_parts_of_a_folder_have_any_names(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    for number, name in enumerate(["a[1]", "a1", "a*"]):
        written(tmp_path / "whole", "csv", name, [str(number)])
    assert values_of(tmp_path / "whole") == ["0", "1", "2"]


def test_files_whose_names_differ_in_their_ending_are_decoded_apart(tmp_path: Path) -> None:
    import gzip

    written(tmp_path, "transcoded", "a", ["1"])
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"age\r\n2\n"))
    assert values_of(tmp_path / "a.csv*") == ["1", "2"]


def test_the_files_are_those_of_the_opening(tmp_path: Path) -> None:
    written(tmp_path, "csv", "part1", ["1"])
    source = open_source(DataSettings(path=str(tmp_path / "part*.csv")))
    written(tmp_path, "csv", "part2", ["2"])
    with open_engine() as engine:
        assert first_rows(engine, source) == [["1"]]
    assert source.fingerprint == hashlib.sha256((tmp_path / "part1.csv").read_bytes()).hexdigest()


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.csv")
    try:
        write_csv(path, ["1", "2"])
    except OSError:
        pytest.skip("this file system allows UTF-8 names only")
    with pytest.raises(InputError, match="not UTF-8"):
        values_of(path)  # no run file could hold it
    (tmp_path / "parts").mkdir()
    path.rename(tmp_path / "parts" / path.name)
    assert values_of(tmp_path / "parts") == ["1", "2"]


def test_inspect_describes_the_named_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "csv", "data[1]", ["50", "51", "52"])
    written(tmp_path, "csv", "data1", ["20", "21"])
    assert run(["inspect", str(path), "-o", str(tmp_path / "run.toml"), "--json"]) == 0
    assert '"rows": 3' in capsys.readouterr().out


def test_a_disguised_part_is_recognised_among_others(tmp_path: Path) -> None:
    """The mark stands beside the file itself, also where the table is a pattern or a folder."""
    written(tmp_path, "csv", "part1", ["1", "2"])
    (tmp_path / "part1.csv.channel.json").write_text('{"notes": {"disguised": ["age"]}}', "utf-8")
    study = sf.Study(data={"path": str(tmp_path / "part*.csv")}, columns={"age": {"role": "quasi_identifier"}})
    with pytest.raises(MeasureError, match="disguised"):
        study.table()
