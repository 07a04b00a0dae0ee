"""Cells that a spreadsheet would run as formulas can be made plain text, in Python and in an engine alike."""

from __future__ import annotations

import pytest

from sfumato.data.cells import neutralised, neutralised_sql
from sfumato.data.engine import open_engine
from sfumato.data.source import quoted

CELLS = {
    "=1+1": "'=1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
    "-2+3": "'-2+3",
    "\t=1": "'\t=1",
    "\r=1": "'\r=1",
    "-5": "-5",
    "+1.5": "+1.5",
    "-1e3": "-1e3",
    "-": "-",
    "+49 44 668 18 00": "'+49 44 668 18 00",
    "plain": "plain",
    "": "",
    "a=b": "a=b",
}


@pytest.mark.parametrize("cell", CELLS)
def test_formulas_become_text_and_numbers_stay(cell: str) -> None:
    assert neutralised(cell) == CELLS[cell]
    with open_engine() as engine:
        sql = quoted(cell).replace("\t", "' || chr(9) || '").replace("\r", "' || chr(13) || '")
        assert engine.rows(f"SELECT {neutralised_sql('c')} FROM (SELECT {sql} AS c) AS t") == [(CELLS[cell],)]


def test_a_missing_cell_stays_missing() -> None:
    with open_engine() as engine:
        assert engine.rows(f"SELECT {neutralised_sql('c')} FROM (SELECT CAST(NULL AS STRING) AS c) AS t") == [(None,)]
