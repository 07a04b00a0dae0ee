"""XML that may come from anybody: no declarations of entities or types, of a bounded depth and number of elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from sfumato.errors import DataError

MOST_DEPTH, MOST_ELEMENTS = 32, 200_000


@dataclass
class Element:
    """An element: its name, the text directly in it, the elements in it."""

    name: str
    text: str = ""
    inside: list[Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Element]:
        """Every element of a name at any depth, in the order of the file."""
        for element in self.inside:
            if element.name == name:
                yield element
            yield from element.all(name)

    def said(self, name: str) -> str | None:
        """The text of the first element of a name directly in this one, None if there is none."""
        return next((element.text.strip() for element in self.inside if element.name == name), None)


def parse_xml(raw: bytes, name: str, *, expected: str) -> Element:
    """The root element of a text; `name` is what messages call it. Attributes are not kept.

    >>> parse_xml(b"<a><b>5</b><b>6</b></a>", "a.xml", expected="a list").said("b")
    '5'
    """
    root, open_elements, count = Element(""), [], 0
    open_elements.append(root)

    def refused(why: str) -> DataError:
        return DataError(f"{name} {why}", expected=expected)

    def start(tag: str, _: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(open_elements) > MOST_DEPTH or count > MOST_ELEMENTS:
            raise refused("has more elements, or deeper ones, than such a file needs")
        element = Element(tag)
        open_elements[-1].inside.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        open_elements.pop()

    def text(part: str) -> None:
        open_elements[-1].text += part

    def declared(*_: object) -> None:
        raise refused("declares a document type or entities, which can stand for other files or for endless text")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = declared
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise refused(f"is not well-formed XML: line {error.lineno}") from None
    return root.inside[0]
