"""Labelled files and spreadsheets are read as their own libraries read them; codes stay, labels stand beside."""

from __future__ import annotations

import math
import stat
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pyreadstat
import pytest
import python_calamine
from tests.labelled.people import people, write_dta, write_sav, write_xlsx

from sfumato.data import labelled_read, statistical
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.profile import first_rows
from sfumato.data.settings import DataSettings
from sfumato.data.source import Source
from sfumato.errors import DataError, InputError


def opened(path: Path, **settings: Any) -> Source:
    return open_source(DataSettings(path=str(path), **settings))


def rows(source: Source) -> list[list[str | None]]:
    with open_engine() as engine:
        return first_rows(engine, source)


def test_spss_by_hand(tmp_path: Path) -> None:
    source = opened(write_sav(tmp_path / "four.sav"))
    assert source.names == ("sex", "pay", "town", "born", "seen")
    assert rows(source) == [
        ["1", "1500.5", "Bern", "1980-02-03", "2020-01-02 03:04:05"],
        ["2", None, None, "1815-03-04", "2020-01-02 03:04:05"],
        [None, None, "Zürich", None, "2020-01-02 03:04:05"],
        ["1", "2000", "Bern", "2001-01-01", "2020-01-02 03:04:05"],
    ]
    sex, pay = source.codebook.column("sex"), source.codebook.column("pay")
    assert (sex.label, sex.values, sex.missing) == (
        "Sex of the person",
        {"1": "male", "2": "female", "-9": "refused"},
        ("-9",),
    )
    assert (pay.ranges, pay.values, pay.format, pay.measure) == (
        ((-99.0, -1.0),),
        {"-1": "nothing paid"},
        "F10.1",
        "scale",
    )
    assert source.codebook.column("town").values == {"Bern": "the capital"}
    assert source.codebook.title == "Four people"


def test_stata_keeps_kinds_of_missing_apart(tmp_path: Path) -> None:
    source = opened(write_dta(tmp_path / "four.dta"))
    assert [row[0] for row in rows(source)] == ["1", "2", None, "1"]
    assert [row[3] for row in rows(source)] == ["1980-02-03", "1815-03-04", None, "2001-01-01"]
    sex = source.codebook.column("sex")
    assert (sex.missing, sex.values) == ((".a",), {"1": "male", "2": "female", ".a": "refused"})
    with open_engine() as engine:
        engine.attach(source, "raw")
        assert engine.rows("SELECT c0 FROM raw") == [("1",), ("2",), (".a",), ("1",)]


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_cell_by_cell_with_the_librarys_own_reading(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = (write_sav if kind == "sav" else write_dta)(tmp_path / f"four.{kind}")
    theirs, meta = getattr(pyreadstat, f"read_{kind}")(str(path), output_format="dict")
    source = opened(path)
    ours = rows(source)
    monkeypatch.setattr(statistical, "CELLS", 1)
    monkeypatch.setattr(statistical, "SMALLEST", 3)  # two chunks, of three rows and of one
    statistical.convert(path, kind, tmp_path / "chunks.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "chunks.parquet") == pyarrow.parquet.read_table(source.files[0])
    for place, name in enumerate(meta.column_names):
        for row, cell in enumerate(theirs[name]):
            mine = ours[row][place]
            if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
                assert mine is None, (name, row)
            elif isinstance(cell, float):
                assert mine is not None
                assert float(mine) == cell, (name, row)
            else:
                assert mine == str(cell), (name, row)
    labels = {n: dict(c.values) for n, c in source.codebook.columns.items() if c.values}
    assert labels.keys() == meta.variable_value_labels.keys()
    assert {n: c.format for n, c in source.codebook.columns.items()} == meta.original_variable_types


def test_the_conversion_is_private_and_made_once(tmp_path: Path) -> None:
    path = write_sav(tmp_path / "four.sav")
    one, two = opened(path), opened(path)
    assert one.files == two.files
    assert one.originals == (path,)
    mode = one.files[0].stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE(one.files[0].parent.stat().st_mode) == 0o700
    assert pyarrow.parquet.read_metadata(one.files[0]).num_rows == 4
    first = one.fingerprint
    pyreadstat.write_sav(people().iloc[::-1], path)
    assert opened(path).fingerprint != first
    assert rows(opened(path))[0] == rows(one)[3]


def test_a_conversion_goes_when_nobody_uses_it(tmp_path: Path) -> None:
    file = opened(write_sav(tmp_path / "four.sav")).files[0]
    assert file.exists()
    labelled_read._kept.clear()
    assert not file.parent.exists()


def test_a_sheet(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "people.xlsx")
    source = opened(path)
    assert source.settings.sheet == "people"
    assert [column.type for column in source.columns] == ["DOUBLE", "VARCHAR", "DATE", "VARCHAR", "BOOLEAN"]
    assert rows(source) == [
        ["39", "Ann", "1980-02-01", "7", "true"],
        ["40.5", "=1+1", "1980-02-02", "x", "true"],
    ]
    theirs = python_calamine.CalamineWorkbook.from_path(path).get_sheet_by_name("people").to_python()
    assert [float(row[0]) for row in rows(source) if row[0]] == [row[0] for row in theirs[1:]]
    assert [row[2] for row in rows(source)] == [str(row[2]) for row in theirs[1:]]


def test_the_header_may_stand_lower(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "people.xlsx", above=4)
    assert opened(path).names == ("age", "name", "born", "code", "well")
    assert opened(path, header_row=5).names == ("age", "name", "born", "code", "well")
    assert opened(path, header=False).names == ("column1", "column2", "column3", "column4", "column5")
    with pytest.raises(DataError, match="is empty"):
        opened(path, header_row=50)


def test_a_sheet_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match='no sheet "pepole"') as caught:
        opened(write_xlsx(tmp_path / "people.xlsx"), sheet="pepole")
    assert "people" in caught.value.remedy


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_sav(tmp_path / "four.sav")
    labelled_read._kept.clear()

    monkeypatch.setattr(statistical.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs the package pyreadstat") as caught:
        opened(path)
    assert "sfumato[labelled]" in caught.value.remedy


def test_codes_are_replaced_under_the_names_that_a_run_file_gives(tmp_path: Path) -> None:
    names, codes = ["gender", "wage", "place", "birth", "visit"], {"gender": {"1": "male", "2": "female"}}
    source = opened(write_sav(tmp_path / "four.sav"), names=names, codes=codes)
    assert source.names == tuple(names)
    assert [row[0] for row in rows(source)] == ["male", "female", None, "male"]
