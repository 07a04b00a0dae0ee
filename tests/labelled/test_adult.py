"""The bundled Adult sample as a labelled file: read, written and read again, cell by cell as the library reads it."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest
import python_calamine
from tests.labelled.test_reading import opened

from sfumato.data.codebook import code_text
from sfumato.data.engine import open_engine
from sfumato.data.labelled_write import write_labelled
from sfumato.samples.samples import sample

NAMES = "age workclass fnlwgt education edu_num marital occupation relationship race sex gain loss hours country income"


def adult(rows: int = 2000) -> tuple[pd.DataFrame, dict[str, dict[int, str]]]:
    """Adult with codes for its categories, as a statistical office would keep it; `?` is a code that means missing."""
    with gzip.open(sample("adult").parent / "adult.data.gz", "rt", encoding="utf-8") as file:
        cells = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 15][:rows]
    frame = pd.DataFrame(cells, columns=NAMES.split())
    labels = {}
    for name in frame.columns:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if numbers.notna().all():
            frame[name] = numbers.astype(float)
            continue
        known = sorted(set(frame[name]) - {"?"})
        codes = {value: float(place) for place, value in enumerate(known, start=1)} | {"?": -9.0}
        labels[name] = {int(code): value for value, code in codes.items() if value in set(frame[name])}
        frame[name] = frame[name].map(codes)
    return frame, labels


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sav", "dta", "xlsx"])
def test_round_trip(tmp_path: Path, kind: str) -> None:
    frame, labels = adult()
    first = tmp_path / "adult.sav"
    missing = {name: [-9] for name, known in labels.items() if -9 in known}
    pyreadstat.write_sav(frame, first, variable_value_labels=labels, missing_ranges=missing)
    source = opened(first)
    assert {name for name in source.names if source.codebook.column(name).missing} == set(missing) != set()
    target = tmp_path / f"again.{kind}"
    write_labelled(source.files[0], target, kind, source.names, source.codebook.without_formats())
    if kind == "xlsx":
        sheet = python_calamine.CalamineWorkbook.from_path(target).get_sheet_by_name("data").to_python()
        assert [[code_text(cell) for cell in row] for row in sheet[1:]] == [
            [code_text(cell) for cell in row] for row in frame.values.tolist()
        ]
        return
    read = getattr(pyreadstat, f"read_{kind}")
    theirs, meta = read(str(target), user_missing=True)
    pd.testing.assert_frame_equal(theirs, frame, check_dtype=False)
    assert meta.variable_value_labels == labels
    if kind == "sav":
        before, old = pyreadstat.read_sav(str(first))
        after, new = pyreadstat.read_sav(str(target))
        pd.testing.assert_frame_equal(before, after)  # missing codes included
        assert old.original_variable_types == new.original_variable_types
    again = opened(target)
    with open_engine() as engine:
        engine.attach(source, "one")
        engine.attach(again, "two")
        both = "SELECT count(*) FROM (SELECT * FROM one EXCEPT SELECT * FROM two)"
        assert engine.rows(both) == [(0,)]
