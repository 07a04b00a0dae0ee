"""What the public descriptions say of a text file is true of it, whatever its separator, quote, decimals and header."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.labelled.test_metadata import NAMESPACE, check_croissant, check_ddi
from tests.release.fronts import ANYTHING

import sfumato as sf
from sfumato.release.format import layout_in
from sfumato.release.metadata import croissant, ddi
from sfumato.report.page import page

ACCEPT = {f"dependence:{name}": "a small table made for a test" for name in ("size", "ill")}
ACCEPT |= {"identifying:size": "a small table made for a test", "uniques": "a small table made for a test"}


def published(folder: Path, separator: str, header: bool, decimal: str = ".", ending: str = "csv") -> Any:
    """A local release with the ends of ranges, from a file in a dialect of its own."""
    rng = np.random.default_rng(3)
    rows = [
        [str(rng.integers(20, 40)), str(rng.choice(["F", "M"])), f"1{decimal}{rng.integers(1, 9)}", "a b"]
        for _ in range(60)
    ]
    names = ["age", "sex", "size", "ill"]
    with (folder / "in.txt").open("w", newline="") as out:
        csv.writer(out, delimiter=separator).writerows([names, *rows] if header else rows)
    roles = {"age": "quasi_identifier", "sex": "quasi_identifier", "size": "other", "ill": "other"}
    data = {"path": str(folder / "in.txt"), "format": "csv", "separator": separator, "header": header}
    study = sf.Study(
        data=data | {"decimal": decimal} | ({} if header else {"names": names}),
        columns={name: {"role": role} for name, role in roles.items()},
        search={"system": "local"},
        local={"k": [4], "passes": 0, "bounds": True},
        policy=ANYTHING,
    )
    point = sf.pick(sf.search(study), point=0)
    return sf.publish(point, folder / "out", name=f"data.{ending}", state=folder / "s", accept=ACCEPT)


@pytest.mark.parametrize(
    ("separator", "header", "decimal", "media", "kind"),
    [
        (",", True, ".", "text/csv", "comma-separated text"),
        (" ", False, ".", "text/plain", "blank-separated text, without a header line"),
        (";", True, ",", "text/plain", "semicolon-separated text"),
        ("\t", True, ".", "text/tab-separated-values", "tab-separated text"),
        ("|", False, ".", "text/plain", "text separated by vertical bars, without a header line"),
    ],
)
def test_descriptions_are_true_of_the_file(
    tmp_path: Path, separator: str, header: bool, decimal: str, media: str, kind: str
) -> None:
    release = published(tmp_path, separator, header, decimal)
    assert sf.verify(release.folder, tmp_path / "in.txt")
    dictionary = json.loads((release.public / "dictionary.json").read_text("utf-8"))
    names = [column["name"] for column in dictionary["columns"]]
    assert names == ["age", "sex", "size", "ill", "age_low", "age_high"]
    kinds = {column["name"]: column["kind"] for column in dictionary["columns"]}
    assert kinds["size"] == "number"  # by the decimal mark that the file has

    layout = layout_in(dictionary)
    assert ("layout" in dictionary) == (media != "text/csv")
    with release.data.open(encoding=layout["encoding"], newline="") as given:
        rows = list(csv.reader(given, delimiter=layout["separator"], quotechar=layout["quote"]))
    assert (rows[0] == names) == layout["header"] == header
    assert {len(row) for row in rows} == {len(names)}
    assert {row[2][1] for row in rows[header:]} == {layout["decimal"]}

    root = check_ddi((release.public / "ddi.xml").read_text("utf-8"))
    assert text_of(root, "fileType") == kind
    assert text_of(root, "fileCont") == layout["words"]
    assert ("no header line" in layout["words"]) != header
    found = json.loads((release.public / "croissant.json").read_text("utf-8"))
    (file,) = found["distribution"]
    assert (file["encodingFormat"], file["description"]) == (media, layout["words"])
    dataset = check_croissant(release.public / "croissant.json")
    assert not dataset.metadata.ctx.issues.errors
    if media == "text/plain":
        assert [one["@id"] for one in found["recordSet"]] == ["columns"]
        listed = list(dataset.records("columns"))
        assert [row["columns/position"] for row in listed] == [1, 2, 3, 4, 5, 6]
        assert [one["columns/name"] for one in found["recordSet"][0]["data"]] == names
    else:
        assert len(list(dataset.records("records"))) == len(rows) - 1


def text_of(root: ET.Element, name: str) -> str:
    return next(root.iter(f"{NAMESPACE}{name}")).text or ""


def test_a_text_file_under_another_name(tmp_path: Path) -> None:
    release = published(tmp_path, ",", True, ending="txt")
    found = json.loads((release.public / "croissant.json").read_text("utf-8"))
    assert found["distribution"][0]["encodingFormat"] == "text/csv"
    root = check_ddi((release.public / "ddi.xml").read_text("utf-8"))
    assert text_of(root, "fileType") == "comma-separated text"


def test_other_formats_and_names_that_the_header_has_otherwise() -> None:
    columns = [{"name": name, "role": "other", "kind": "number", "words": "Unchanged."} for name in ("Age", "age")]
    dictionary = {"file": "data.parquet", "columns": columns, "columns_left_out": 0}
    assert "fileCont" not in ddi(dictionary)
    assert "comma" not in json.dumps(croissant(dictionary, {"data.parquet": "0" * 64}))
    layout = {**layout_in({"file": "data.csv"}), "decimal": ",", "header_names": ["Age", "age_1"]}
    given = croissant({**dictionary, "file": "data.csv", "layout": layout}, {"data.csv": "0" * 64})
    fields = given["recordSet"][0]["field"]
    assert [field["source"]["extract"]["column"] for field in fields] == ["Age", "age_1"]
    assert {field["dataType"] for field in fields} == {"sc:Text"}  # 1,5 is no number to who reads text/csv


def test_the_page_of_the_dictionary_has_a_place_for_it() -> None:
    given = {"title": "Data dictionary", "file": "data.csv", "columns": [], "left_out": 0, "version": "0"}
    assert "separated by commas" in page("dictionary.html", **given, layout=layout_in({"file": "data.csv"})["words"])
    assert "separated" not in page("dictionary.html", **given, layout="")


def test_readers_are_told_how_a_file_without_a_header_is_written(tmp_path: Path) -> None:
    """By both public pages, for a source with blanks between its cells."""
    (tmp_path / "people.data").write_text("".join(f"A{n % 2} {n % 3} B{n % 2}\n" for n in range(60)), "utf-8")
    data = {"path": str(tmp_path / "people.data"), "header": False, "separator": " "}
    columns = {f"column{n}": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}} for n in (1, 2, 3)}
    front = sf.search(sf.Study(data=data, columns=columns, policy=ANYTHING))
    release = sf.publish(sf.pick(front, min_k=5), tmp_path / "out")
    for name in ("dictionary.html", "external.html"):
        text = (release.folder / "public" / name).read_text("utf-8")
        assert "There is no header line" in text, name
    assert sf.verify(release.folder)
