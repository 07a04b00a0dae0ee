"""croissant.json and ddi.xml in the pack: valid, the same as the dictionary, and nothing private in them."""

from __future__ import annotations

import json
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from tests.labelled.survey import front, study_of, write
from tests.release.fronts import publish

from sfumato.data.codebook_files import read_ddi
from sfumato.methods.publish import verify
from sfumato.release.metadata import croissant, ddi, metadata_pages

NAMESPACE = "{ddi:codebook:2_5}"
# Which elements may stand in an element, in their order, as DDI Codebook 2.5 publishes it (codebook.xsd of 2012-01-17).
ORDER = {
    "codeBook": "docDscr stdyDscr fileDscr dataDscr otherMat",
    "stdyDscr": "citation studyAuthorization stdyInfo studyDevelopment method dataAccs othrStdyMat notes",
    "citation": "titlStmt rspStmt prodStmt distStmt serStmt verStmt biblCit holdings notes",
    "titlStmt": "titl subTitl altTitl parTitl IDNo",
    "rspStmt": "AuthEnty othId",
    "stdyInfo": "studyBudget subject abstract sumDscr qualityStatement notes exPostEvaluation",
    "dataAccs": "setAvail useStmt notes",
    "useStmt": "confDec specPerm restrctn contact citReq deposReq conditions disclaimer",
    "fileDscr": "fileTxt locMap notes",
    "fileTxt": "fileName fileCitation fileCont fileStrc dimensns fileType format filePlac dataChck ProcStat dataMsng "
    "software verStmt",
    "dimensns": "caseQnty varQnty logRecL recPrCas recNumTot",
    "dataDscr": "varGrp nCubeGrp var nCube notes",
    "var": "location labl imputation security embargo respUnit anlysUnit qstn valrng invalrng undocCod universe "
    "TotlResp sumStat txt stdCatgry catgryGrp catgry codInstr verStmt concept derivation varFormat geoMap catLevel "
    "notes",
    "catgry": "catValu labl txt catStat mrow",
}
ALLOWED = {
    "codeBook": {"version": ["2.5"]},
    "fileDscr": {"ID": None},
    "fileType": {"charset": None},
    "software": {"version": None},
    "var": {"ID": None, "name": None, "files": None, "intrvl": ["contin", "discrete"], "wgt": ["wgt", "not-wgt"]},
    "catgry": {"missing": ["Y", "N"]},
    "varFormat": {"type": ["numeric", "character"], "category": ["date", "time", "currency", "other"]},
}


def check_ddi(text: str) -> ET.Element:
    """Raise unless every element and attribute may stand where it stands."""
    root = ET.fromstring(text)
    assert root.tag == f"{NAMESPACE}codeBook"
    ids = []
    for element in root.iter():
        name = element.tag.removeprefix(NAMESPACE)
        order = ORDER.get(name, "").split()
        inside = [child.tag.removeprefix(NAMESPACE) for child in element]
        assert all(child in order for child in inside), (name, inside)
        assert [order.index(child) for child in inside] == sorted(order.index(child) for child in inside), name
        for attribute, value in element.attrib.items():
            if attribute == "{http://www.w3.org/XML/1998/namespace}lang":
                continue
            choices = ALLOWED[name][attribute]
            assert choices is None or value in choices, (name, attribute, value)
        ids += [element.attrib["ID"]] if "ID" in element.attrib else []
    assert len(ids) == len(set(ids))
    assert root.find(f"{NAMESPACE}stdyDscr/{NAMESPACE}citation/{NAMESPACE}titlStmt/{NAMESPACE}titl") is not None
    assert all("name" in variable.attrib for variable in root.iter(f"{NAMESPACE}var"))
    return root


def check_croissant(path: Path) -> Any:
    """Read it with the library of the standard, which raises on errors; its warnings are given back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlcroissant

        return mlcroissant.Dataset(jsonld=path)


ABOUT = {"title": "A survey & more", "creator": "The office", "license": "https://creativecommons.org/licenses/by/4.0/"}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "sav"])
def test_in_the_pack(tmp_path: Path, kind: str) -> None:
    study = study_of(write(tmp_path / "survey.sav")).with_settings({"release": ABOUT})
    release = publish(front(study), 0, tmp_path / "out", format=kind, state=tmp_path / "state")
    verify(release.folder, str(study.data.path)).raise_if_failed()
    dictionary = json.loads((release.public / "dictionary.json").read_text("utf-8"))
    columns = {column["name"]: column for column in dictionary["columns"]}
    assert columns["sex"]["values"] == {"1": "male", "2": "female"}
    assert columns["sex"]["label"] == "Sex"
    assert columns["marital"]["values"] == {"{3 | 4}": "widowed | divorced"}
    assert "values" not in columns["health"]  # sensitive: its values are listed nowhere
    assert [columns[name]["kind"] for name in ("age", "sex", "visits", "seen")] == ["text", "whole", "number", "date"]

    page = (release.public / "dictionary.html").read_text("utf-8")
    for label in ("female", "widowed | divorced", "Health as the person sees it"):
        assert label in page
    for label in ("fair", "poor", "no answer", "refused"):  # of the sensitive column, or of a code that does not occur
        assert label not in page

    text = (release.public / "ddi.xml").read_text("utf-8")
    check_ddi(text)
    book = read_ddi(text.encode(), "ddi.xml")
    assert book.title == "A survey & more"
    assert book.column("sex").values == {"1": "male", "2": "female"}
    assert list(book.columns) == list(columns)

    dataset = check_croissant(release.public / "croissant.json")
    assert dataset.metadata.name == "A survey & more"
    assert str(dataset.metadata.ctx.conforms_to.value).endswith("/1.1")
    assert not dataset.metadata.ctx.issues.errors
    records = next(one for one in dataset.metadata.record_sets if one.id == "records")
    assert [field.name for field in records.fields] == list(columns)
    if kind == "csv":
        rows = [row for row, _ in zip(dataset.records("records"), range(5), strict=False)]
        assert set(rows[0]) == {f"records/column{place}" for place in range(1, 7)}


ODD = {
    "file": "data.csv",
    "columns": [
        {"name": 'a"<&\x01', "role": "other", "kind": "text", "words": "]]> <x>", "values": {"<1>": "a & b\x00"}},
        {"name": "w", "role": "weight", "kind": "number", "words": "Unchanged."},
    ],
    "columns_left_out": 0,
}


def test_odd_names_and_labels() -> None:
    root = check_ddi(ddi(ODD))
    assert [one.attrib["name"] for one in root.iter(f"{NAMESPACE}var")] == ['a"<&\ufffd', "w"]
    parts = croissant(ODD, {"data.csv/part-0.csv": "0" * 64, "data.csv/part-1.csv": "1" * 64})
    assert len(parts["distribution"]) == 2
    assert "recordSet" not in parts
    assert len(metadata_pages(ODD, {"data.csv": "0" * 64})) == 2
