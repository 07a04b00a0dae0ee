"""JSON files, which may come from anybody: of a bounded size and depth, with finite numbers and text in UTF-8.

Every JSON file of a folder is read here.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import DataError, reason_of
from sfumato.runtime.inputs import note_input

MAX_BYTES = 256 << 20  # a front of a hundred thousand points has some tens of megabytes
MAX_DEPTH = 64  # lists and objects inside each other; what is written here has fewer than ten
HALF = re.compile(r"\\u[dD][89a-fA-F]")  # one of the two halves by which JSON may write a character
ANYTHING = "a JSON file that Sfumato wrote"


def read_json(
    path: str | Path, *, limit: int = MAX_BYTES, expected: str = ANYTHING, remedy: str = "", noted: bool = True
) -> Any:
    """What a JSON file holds. What cannot be read is a `DataError` that names the file and the reason.

    A file that is `noted` is an input of the command, which does not write over it.
    """
    path = Path(path)
    raw = read_limited(path, limit, expected=expected, noted=noted)
    return parse_json(raw, str(path), expected=expected, remedy=remedy)


def read_limited(path: Path, limit: int = MAX_BYTES, *, expected: str = ANYTHING, noted: bool = True) -> bytes:
    """The bytes of a regular file, unless there are too many."""
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
    """What a JSON text holds; `name` is what messages call it.

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


def without_infinities(content: dict[str, Any]) -> dict[str, Any]:
    """The same without infinities: null instead, and where they stood under "infinite".

    >>> without_infinities({"value": float("inf"), "columns": {"a": float("inf"), "b": 1.0}})
    {'value': None, 'columns': {'a': None, 'b': 1.0}, 'infinite': ['value', 'columns.a']}
    """
    infinite: list[str] = []

    def clean(value: Any, where: str) -> Any:
        if isinstance(value, dict):
            return {name: clean(inner, f"{where}.{name}" if where else name) for name, inner in value.items()}
        if isinstance(value, float) and not math.isfinite(value):
            infinite.append(where)
            return None
        return value

    cleaned: dict[str, Any] = clean(content, "")
    return cleaned | ({"infinite": infinite} if infinite else {})


def json_lines(content: Mapping[str, Any]) -> str:
    """A JSON object with a line for each key, and for each entry of a list in it.

    Python's own indented form is written letter by letter, and takes long where there are thousands of entries.

    >>> print(json_lines({"a": 1, "b": [{"c": 2}, {"c": 3}]}))
    {
     "a": 1,
     "b": [
      {"c": 2},
      {"c": 3}
     ]
    }
    """

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    def entry(value: Any) -> str:
        if isinstance(value, list) and value:
            return "[\n  " + ",\n  ".join(map(text, value)) + "\n ]"
        return text(value)

    return "{\n " + ",\n ".join(f"{text(key)}: {entry(value)}" for key, value in content.items()) + "\n}"


def _deeper(value: Any, depth: int) -> bool:
    """Whether lists and objects are nested deeper; level by level, because they may be deeper than Python calls."""
    held = [value]
    for _ in range(depth + 1):
        inside: list[Any] = []
        for one in held:
            if isinstance(one, dict):
                inside += [part for part in one.values() if isinstance(part, dict | list)]
            elif isinstance(one, list):
                inside += [part for part in one if isinstance(part, dict | list)]
        if not inside:
            return False
        held = inside
    return True


def _writable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _size(count: int) -> str:
    return f"{count >> 20} MB" if count >> 20 else f"{count >> 10} kB"
