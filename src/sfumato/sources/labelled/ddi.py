"""Labels and missing codes from DDI Codebook (2.5, and 2.1, which differs in its namespace only).

The file may come from anybody: a declaration of entities is refused, nothing outside the file is read.
"""

from __future__ import annotations

import math
from xml.parsers import expat

from sfumato.errors import DataError
from sfumato.sources.codebook import Codebook, ColumnLabels

MOST_DEPTH = 100


def read_ddi(raw: bytes, name: str) -> Codebook:
    """The variables of a codebook.

    >>> text = '<codeBook><dataDscr><var name="sex"><labl>Sex</labl><catgry missing="Y"><catValu>9</catValu>'
    >>> book = read_ddi((text + "<labl>refused</labl></catgry></var></dataDscr></codeBook>").encode(), "a.xml")
    >>> book.column("sex").label, book.column("sex").values, book.column("sex").missing
    ('Sex', {'9': 'refused'}, ('9',))
    """
    reader = _Reader(name)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.EntityDeclHandler = reader.entity
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise DataError(
            f"{name} is not well-formed XML: line {error.lineno}", expected="DDI Codebook 2.5", remedy="export it again"
        ) from None
    if not reader.columns:
        raise DataError(f"{name} describes no variables", expected="DDI Codebook 2.5 with var elements in its dataDscr")
    return Codebook(reader.columns, reader.title)


class _Reader:
    """What has been read, and where in the file we are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: dict[str, ColumnLabels] = {}
        self.title = ""
        self._open: list[str] = []
        self._texts: list[str] = []
        self._variable = ""
        self._label = ""
        self._values: dict[str, str] = {}
        self._missing: list[str] = []
        self._ranges: list[tuple[float, float]] = []
        self._category = ["", "", ""]  # value, label, whether it means missing

    def entity(self, *_: object) -> None:
        raise DataError(
            f"{self.name} declares entities, which can stand for other files or for endless text",
            expected="DDI Codebook 2.5 without entity declarations",
            remedy="export it again",
        )

    def start(self, tag: str, given: dict[str, str]) -> None:
        self._open.append(tag.rsplit(":", 1)[-1])
        if len(self._open) > MOST_DEPTH:
            raise DataError(f"{self.name} is nested too deeply", expected="DDI Codebook 2.5")
        self._texts = []
        match self._open[-1]:
            case "var":
                self._variable, self._label = given.get("name", given.get("ID", "")).strip(), ""
                self._values, self._missing, self._ranges = {}, [], []
            case "catgry":
                self._category = ["", "", given.get("missing", "N")]
            case "item" if "invalrng" in self._open and "VALUE" in given:
                self._missing.append(given["VALUE"].strip())
            case "range" if "invalrng" in self._open:
                self._range(given)

    def text(self, part: str) -> None:
        self._texts.append(part)

    def end(self, _: str) -> None:
        tag = self._open.pop()
        said = " ".join("".join(self._texts).split())
        self._texts = []
        match tag:
            case "labl" if self._open[-1:] == ["var"]:
                self._label = self._label or said
            case "labl" if self._open[-1:] == ["catgry"]:
                self._category[1] = self._category[1] or said
            case "catValu":
                self._category[0] = said
            case "titl" if not self.title and "stdyDscr" in self._open:
                self.title = said
            case "catgry":
                self._categorized()
            case "var" if self._variable:
                self.columns[self._variable] = ColumnLabels(
                    self._label, self._values, tuple(dict.fromkeys(self._missing)), tuple(self._ranges)
                )

    def _categorized(self) -> None:
        value, label, missing = self._category
        if value and label:
            self._values[value] = label
        if value and missing == "Y":
            self._missing.append(value)

    def _range(self, given: dict[str, str]) -> None:
        try:
            low = float(given.get("min", given.get("minExclusive", "-inf")))
            high = float(given.get("max", given.get("maxExclusive", "inf")))
        except ValueError:
            return
        if not (math.isnan(low) or math.isnan(high)):
            self._ranges.append((low, high))
