"""Labels and missing codes from a data dictionary or from DDI Codebook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.labelled.test_reading import opened, rows

from sfumato.errors import DataError

DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5" version="2.5"><stdyDscr><citation><titlStmt><titl>A survey</titl></titlStmt>
</citation></stdyDscr><dataDscr>
<var ID="V1" name="sex"><labl>Sex</labl><invalrng><item VALUE="9"/></invalrng>
<catgry><catValu>1</catValu><labl>male</labl></catgry><catgry missing="Y"><catValu>8</catValu><labl>refused</labl>
</catgry></var><var ID="V2" name="age"><labl>Age in
 years</labl><invalrng><range min="-99" max="-1"/></invalrng></var></dataDscr></codeBook>"""
CSV = (
    "column,value,label,missing\nsex,,Sex,\nsex,1,male,\nsex,8,refused,yes\n"
    "sex,9,,yes\nage,,Age in years,\nage,-5,?,x\n"
)
JSON = {
    "sex": {"label": "Sex", "values": {"1": "male", "8": "refused"}, "missing": [8, "9"]},
    "age": {"label": "Age in years", "missing": [-5]},
}


def table(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text("sex,age\n1,30\n8,-5\n9,40\n1,50\n", "utf-8")
    return path


@pytest.mark.parametrize("kind", ["csv", "json", "xml"])
def test_by_hand(tmp_path: Path, kind: str) -> None:
    book = tmp_path / f"book.{kind}"
    book.write_text({"csv": CSV, "json": json.dumps(JSON), "xml": DDI}[kind], "utf-8")
    source = opened(table(tmp_path), codebook=str(book))
    assert rows(source) == [["1", "30"], [None, None], [None, "40"], ["1", "50"]]
    sex = source.codebook.column("sex")
    assert (sex.label, dict(sex.values), set(sex.missing)) == ("Sex", {"1": "male", "8": "refused"}, {"8", "9"})
    assert source.codebook.column("age").label == "Age in years"


def test_labels_of_a_release_dictionary_are_read_too(tmp_path: Path) -> None:
    book = tmp_path / "dictionary.json"
    book.write_text(json.dumps({"columns": [{"name": "sex", "label": "Sex", "values": {"1": "male"}}]}), "utf-8")
    assert opened(table(tmp_path), codebook=str(book)).codebook.shown("sex", "1") == "1 (male)"


BOMB = '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]><codeBook>&b;</codeBook>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><codeBook>&a;</codeBook>'


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.xml", BOMB, "declares entities"),
        ("a.xml", OUTSIDE, "declares entities"),
        ("a.xml", "<codeBook><dataDscr>", "not well-formed"),
        ("a.xml", "<codeBook/>", "describes no variables"),
        ("a.xml", "<a>" * 200, "nested too deeply"),
        ("a.json", "[1, 2]", "does not describe columns"),
        ("a.json", '{"sex": {"values": [1]}}', "are not understood"),
        ("a.csv", "sex,male\n1,2\n", "does not name its columns"),
        ("a.csv", "column,label\nheight,Height\n", "describes no column of people.csv"),
        ("a.pdf", "x", "no codebook that can be read"),
    ],
)
def test_hostile_and_wrong(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(DataError, match=says):
        opened(table(tmp_path), codebook=str(tmp_path / name))


def test_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no codebook"):
        opened(table(tmp_path), codebook="nowhere.json")
