"""Four people as files of SPSS, Stata, SAS and Excel, written with the libraries' own writers."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat
import xlsxwriter

SEX = {1: "male", 2: "female", -9: "refused"}


def people(**more: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sex": [1.0, 2.0, -9.0, 1.0],
            "pay": [1500.5, -1.0, None, 2000.0],
            "town": ["Bern", "", "Zürich", "Bern"],
            "born": [dt.date(1980, 2, 3), dt.date(1815, 3, 4), None, dt.date(2001, 1, 1)],
            "seen": [dt.datetime(2020, 1, 2, 3, 4, 5)] * 4,
            **more,
        }
    )


def write_sav(path: Path) -> Path:
    pyreadstat.write_sav(
        people(),
        path,
        file_label="Four people",
        column_labels={"sex": "Sex of the person", "pay": "Pay in a month"},
        variable_value_labels={"sex": SEX, "pay": {-1: "nothing paid"}, "town": {"Bern": "the capital"}},
        missing_ranges={"sex": [-9], "pay": [{"lo": -99, "hi": -1}]},
        variable_measure={"sex": "nominal", "pay": "scale"},
        variable_format={"pay": "F10.1"},
    )
    return path


def write_dta(path: Path) -> Path:
    frame = people(sex=[1.0, 2.0, "a", 1.0])
    pyreadstat.write_dta(
        frame,
        path,
        column_labels={"sex": "Sex of the person"},
        variable_value_labels={"sex": {1: "male", 2: "female", "a": "refused"}},
        missing_user_values={"sex": ["a"]},
    )
    return path


def write_xlsx(path: Path, sheet: str = "people", above: int = 0) -> Path:
    with xlsxwriter.Workbook(path) as book:
        page = book.add_worksheet(sheet)
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        for place, name in enumerate(("age", "name", "born", "code", "well")):
            page.write_string(above, place, name)
        for row, (age, name, code) in enumerate([(39, "Ann", 7), (40.5, "=1+1", "x")], start=above + 1):
            page.write_number(row, 0, age)
            page.write_string(row, 1, name)
            page.write_datetime(row, 2, dt.date(1980, 2, row - above), day)
            page.write(row, 3, code)
            page.write_boolean(row, 4, True)
        book.add_worksheet("other").write_string(0, 0, "x")
    return path
