"""Reading of untrusted JSON and XML files within limits.

JSON files have a bounded size and depth, finite numbers and text in UTF-8. Every JSON file of a folder is read here.
XML files have no declarations of entities or types, and a bounded depth and number of elements.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from sfumato.base.json_types import Json
from sfumato.base.trust import note_input
from sfumato.errors import DataError, reason_of

MAX_BYTES = 256 << 20  # a front of a hundred thousand points has some tens of megabytes
MAX_DEPTH = 64  # of nested lists and objects; own files have fewer than ten
HALF = re.compile(r"\\u[dD][89a-fA-F]")  # one half of a surrogate pair
ANYTHING = "a JSON file that Sfumato wrote"


def read_json(
    path: str | Path, *, limit: int = MAX_BYTES, expected: str = ANYTHING, remedy: str = "", noted: bool = True
) -> Any:
    """Return the content of a JSON file. A file that cannot be read is a `DataError` with its name and the reason.

    A file that is `noted` is an input of the command, which then does not overwrite it.
    """
    path = Path(path)
    raw = read_limited(path, limit, expected=expected, noted=noted)
    return parse_json(raw, str(path), expected=expected, remedy=remedy)


def read_limited(path: Path, limit: int = MAX_BYTES, *, expected: str = ANYTHING, noted: bool = True) -> bytes:
    """Return the bytes of a regular file, unless there are too many."""
    try:
        with (note_input(path) if noted else path).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            raw = stream.read(limit + 1) if size <= limit else b""
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason_of(error)}", expected=expected) from error
    if max(size, len(raw)) > limit:
        raise DataError(f"{path} is larger than {_size(limit)}", expected=expected)
    return raw


def parse_json(raw: bytes | str, name: str, *, expected: str = ANYTHING, remedy: str = "") -> Any:
    """Return the content of a JSON text. Messages call it `name`.

    >>> parse_json('{"k": 5}', "a.json")
    {'k': 5}
    >>> parse_json('{"k": NaN}', "a.json")
    Traceback (most recent call last):
    sfumato.errors.DataError: a.json holds NaN
      expected: finite numbers
    """

    def refused(why: str, instead: str = expected) -> DataError:
        return DataError(f"{name} {why}", expected=instead, remedy=remedy)

    def constant(word: str) -> float:
        raise refused(f"holds {word}", "finite numbers")

    def finite(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise refused("contains a number that is out of range", "finite numbers")
        return value

    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        value = json.loads(text, parse_constant=constant, parse_float=finite)
    except UnicodeDecodeError:
        raise refused("cannot be read: it is not text in UTF-8") from None
    except RecursionError:
        raise refused("is nested too deeply", f"at most {MAX_DEPTH} levels") from None
    except json.JSONDecodeError:
        raise refused("cannot be read: it is not JSON") from None
    except ValueError:  # Python's own limit
        raise refused("holds a whole number with thousands of digits", "numbers that can be used") from None
    if _deeper(value, MAX_DEPTH):
        raise refused("is nested too deeply", f"at most {MAX_DEPTH} levels")
    if HALF.search(text) and not _writable(value):
        raise refused("contains an incomplete character", "text in UTF-8")
    return value


def without_infinities(content: Json) -> Json:
    """Return the same with null for infinities, and their keys under "infinite".

    >>> without_infinities({"value": float("inf"), "columns": {"a": float("inf"), "b": 1.0}})
    {'value': None, 'columns': {'a': None, 'b': 1.0}, 'infinite': ['value', 'columns.a']}
    """
    infinite: list[str] = []

    def clean(value: object, where: str) -> object:
        if isinstance(value, dict):
            return {name: clean(inner, f"{where}.{name}" if where else name) for name, inner in value.items()}
        if isinstance(value, float) and not math.isfinite(value):
            infinite.append(where)
            return None
        return value

    cleaned: Json = {name: clean(inner, name) for name, inner in content.items()}
    return cleaned | ({"infinite": infinite} if infinite else {})


def json_lines(content: Mapping[str, object]) -> str:
    """Return a JSON object with a line for each key, and for each entry of a list in it.

    Python's own indented form is slow with thousands of entries.

    >>> print(json_lines({"a": 1, "b": [{"c": 2}, {"c": 3}]}))
    {
     "a": 1,
     "b": [
      {"c": 2},
      {"c": 3}
     ]
    }
    """

    def text(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    def entry(value: object) -> str:
        if isinstance(value, list) and value:
            return "[\n  " + ",\n  ".join(map(text, value)) + "\n ]"
        return text(value)

    return "{\n " + ",\n ".join(f"{text(key)}: {entry(value)}" for key, value in content.items()) + "\n}"


def _deeper(value: object, depth: int) -> bool:
    """Return whether lists and objects are nested deeper. A recursion could exceed the limit of Python."""
    held = [value]
    for _ in range(depth + 1):
        inside: list[object] = []
        for one in held:
            if isinstance(one, dict):
                inside += [part for part in one.values() if isinstance(part, dict | list)]
            elif isinstance(one, list):
                inside += [part for part in one if isinstance(part, dict | list)]
        if not inside:
            return False
        held = inside
    return True


def _writable(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _size(count: int) -> str:
    return f"{count >> 20} MB" if count >> 20 else f"{count >> 10} kB"


MOST_DEPTH, MOST_ELEMENTS = 32, 200_000


@dataclass
class Element:
    """An element: its name, its own text, and the elements in it."""

    name: str
    text: str = ""
    inside: list[Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Element]:
        """Yield every element of a name at any depth, in the order of the file."""
        for element in self.inside:
            if element.name == name:
                yield element
            yield from element.all(name)

    def said(self, name: str) -> str | None:
        """Return the text of the first element of a name directly in this one, None if there is none."""
        return next((element.text.strip() for element in self.inside if element.name == name), None)


def parse_xml(raw: bytes, name: str, *, expected: str) -> Element:
    """Return the root element of a text without attributes. Messages call the text `name`.

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
        raise refused("declares a document type or entities, which can include other files or endless text")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = declared
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise refused(f"is not well-formed XML: line {error.lineno}") from None
    return root.inside[0]
