"""Files that are broken or made to harm: a sentence and exit 2, never a trace, a crash or a full memory."""

from __future__ import annotations

import contextlib
import os
import random
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.labelled.people import write_dta, write_sav, write_xlsx
from tests.labelled.test_reading import opened, rows

from sfumato.cli import run
from sfumato.data import spreadsheet, statistical
from sfumato.errors import DataError, InputError

WRITERS = {"sav": write_sav, "dta": write_dta, "xlsx": write_xlsx}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sav", "dta", "sas7bdat", "xlsx", "xls", "ods"])
@pytest.mark.parametrize("raw", [b"", b"hello\n" * 50, b"PK\x03\x04" + b"$FL2@(#) SPSS"])
def test_garbage(tmp_path: Path, kind: str, raw: bytes) -> None:
    path = tmp_path / f"people.{kind}"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"people\.\w+ (cannot be read as|is empty|has no)"):
        opened(path)


@pytest.mark.parametrize("kind", WRITERS)
def test_truncated(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path / f"people.{kind}")
    whole = path.read_bytes()
    for part in (0.1, 0.9):
        path.write_bytes(whole[: int(len(whole) * part)])
        with pytest.raises(DataError):
            opened(path)


@pytest.mark.parametrize(("kind", "times"), [("sav", 3), ("dta", 3), ("xlsx", 30)])
def test_bytes_changed(tmp_path: Path, kind: str, times: int) -> None:
    """Read to the end or refused; a changed byte is never a trace."""
    path = WRITERS[kind](tmp_path / f"people.{kind}")
    whole, rng = path.read_bytes(), random.Random(5)
    for _ in range(int(os.environ.get("SFUMATO_FUZZ", times))):
        spoiled = bytearray(whole)
        for _ in range(rng.choice([1, 4, 30])):
            spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
        path.write_bytes(spoiled)
        with contextlib.suppress(InputError):
            rows(opened(path))


def test_a_file_that_brings_its_reader_down(tmp_path: Path) -> None:
    """These bytes end the process that reads them: another process, so the user gets a sentence."""
    path = write_sav(tmp_path / "people.sav")
    spoiled = bytearray(path.read_bytes())
    for place, byte in ((79, 165), (468, 255), (883, 255), (932, 255)):
        spoiled[place] = byte
    path.write_bytes(spoiled)
    call = [
        sys.executable,
        "-c",
        "import sys, pyreadstat; pyreadstat.read_sav(sys.argv[1], user_missing=True)",
        str(path),
    ]
    assert subprocess.run(call, capture_output=True, check=False).returncode != 0
    with pytest.raises(DataError, match="cannot be read as a file of SPSS"):
        opened(path)


def test_a_zip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreadsheet, "MOST_BYTES", 1 << 20)
    path = write_xlsx(tmp_path / "people.xlsx")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/media/more.bin", b"\0" * (2 << 20))
    assert path.stat().st_size < 20_000
    with pytest.raises(DataError, match="unpacks to more than 1 MB"):
        opened(path)


def test_a_zip_bomb_that_lies_about_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreadsheet, "MOST_BYTES", 1 << 20)
    path = write_xlsx(tmp_path / "people.xlsx")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/media/more.bin", b"\0" * (2 << 20))
    raw = path.read_bytes().replace(struct.pack("<I", 2 << 20), struct.pack("<I", 10))
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"cannot be read as a workbook|unpacks to more"):
        opened(path)


def test_exit_2_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "people.sav").write_bytes(b"not a file of SPSS")
    assert run(["inspect", str(tmp_path / "people.sav"), "-o", str(tmp_path / "run.toml")]) == 2
    said = capsys.readouterr().err
    assert "people.sav cannot be read as a file of SPSS" in said
    assert "Traceback" not in said
    assert not (tmp_path / "run.toml").exists()


def test_sas_dates_and_letters() -> None:
    """No library here writes SAS files, so what ReadStat gives for one is made by hand: days and seconds since 1960."""

    class Meta:
        column_names = ("day", "moment", "code")
        readstat_variable_types = dict.fromkeys(column_names, "double")
        original_variable_types = {"day": "DATE9", "moment": "DATETIME20", "code": "BEST12"}  # noqa: RUF012
        missing_ranges: dict[str, list[dict[str, float]]] = {}  # noqa: RUF012

    meta = Meta()
    types = statistical._types(meta, "sas7bdat", {"code": {"A"}})
    assert [str(type_) for type_ in types] == ["date32[day]", "timestamp[us]", "string"]
    day = statistical._array([0.0, 21916.0, None], "date32[day]", "sas7bdat", meta, "day")
    assert [str(cell) for cell in day.to_pylist()] == ["1960-01-01", "2020-01-02", "None"]
    moment = statistical._array([1.0, None], "timestamp[us]", "sas7bdat", meta, "moment")
    assert [str(cell) for cell in moment.to_pylist()] == ["1960-01-01 00:00:01", "None"]
    assert statistical._array([1.0, "A", None], "string", "sas7bdat", meta, "code").to_pylist() == ["1", ".A", None]


def test_several_files(tmp_path: Path) -> None:
    for name in ("a.sav", "b.sav"):
        write_sav(tmp_path / name)
    with pytest.raises(DataError, match="stands for 2 files"):
        opened(tmp_path / "*.sav")
