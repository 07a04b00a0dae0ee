"""The base class of the sections of a run file, and reading and writing of TOML.

TOML is read within limits. Text that does not read back unchanged is never written.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from sfumato.base.json_types import Json
from sfumato.errors import InputError, SfumatoError, StudyError

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
ANY_CHARACTER = ("separator", "quote")


class Settings(BaseModel):
    """A frozen section of a run file. Unknown keys are refused, numbers are finite, text is printable and UTF-8."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _printable(cls, given: object) -> object:
        if isinstance(given, Mapping):
            for name, value in given.items():
                if name not in ANY_CHARACTER:
                    _refuse_unprintable(value, str(name))
        return given

    @classmethod
    def checked(cls, **values: Any) -> Self:
        """Return settings from options. Raise our error if one is wrong."""
        try:
            return cls(**values)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"]))
            raise InputError(f"{where} is not valid", expected=problem["msg"]) from None


def _refuse_unprintable(value: object, where: str) -> None:
    """Raise if a text, also inside lists and tables, has characters that cannot be shown or written."""
    if isinstance(value, str):
        held = UNPRINTABLE.search(value)
        if held is not None:
            kind = "text that is not UTF-8" if held[0] >= "\ud800" else f"a control character (U+{ord(held[0]):04X})"
            raise StudyError(f"{UNPRINTABLE.sub('?', where)} holds {kind}", expected="printable text in UTF-8")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            _refuse_unprintable(name, where)
            if name not in ANY_CHARACTER:
                _refuse_unprintable(inner, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_unprintable(inner, where)


MAX_BYTES = 16 << 20
MOST_DEPTH = 32
MOST_DOTS = 1_000  # before an equals sign, where a text of several lines may have some
BARE = re.compile(r"[A-Za-z0-9_-]+")
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
SURROGATES = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class Noted:
    """A value or section with comments: lines above it and, for a value, a note after it.

    A value that is not `active` is written as a comment, which the user completes.
    """

    value: Any
    note: str = ""
    above: Sequence[str] = ()
    active: bool = True


def toml_text(settings: Mapping[str, object], head: Sequence[str] = ()) -> str:
    """Return settings as TOML: comments, plain keys, then a section for each table. Each of them may be `Noted`.

    >>> columns = {"a b": Noted({"role": "drop"}, "a name"), "c": Noted({"role": ""}, "decide", active=False)}
    >>> print(toml_text({"version": 1, "data": {"path": "a.csv", "na": ["?"]}, "columns": columns}, ["A table."]))
    # A table.
    version = 1
    <BLANKLINE>
    [data]
    path = "a.csv"
    na = ["?"]
    <BLANKLINE>
    [columns]
    "a b" = { role = "drop" }  # a name
    # c = { role = "" }  # decide
    <BLANKLINE>
    """
    noted = {name: value if isinstance(value, Noted) else Noted(value) for name, value in settings.items()}
    lines = [toml_comment(line) for line in head]
    for name, entry in noted.items():
        if not isinstance(entry.value, Mapping):
            lines += _entry(name, entry)
    for name, entry in noted.items():
        if isinstance(entry.value, Mapping):
            lines += ["", *map(toml_comment, entry.above), f"[{toml_key(name)}]"]
            lines += [line for inner, held in entry.value.items() for line in _entry(inner, held)]
    text = "\n".join(lines) + "\n"
    if not _same(tomllib.loads(text), _plain(settings)):
        raise SfumatoError("settings written as TOML do not read back unchanged", remedy="please report it")
    return text


def _entry(name: str, value: object) -> list[str]:
    """Return the lines of one key."""
    entry = value if isinstance(value, Noted) else Noted(value)
    line = f"{'' if entry.active else '# '}{toml_key(name)} = {toml_value(entry.value)}"
    return [*map(toml_comment, entry.above), f"{line}  {toml_comment(entry.note)}" if entry.note else line]


def _plain(value: object) -> object:
    """Return settings without their comments."""
    if isinstance(value, Noted):
        return _plain(value.value)
    if not isinstance(value, Mapping):
        return value
    return {name: _plain(held) for name, held in value.items() if not isinstance(held, Noted) or held.active}


def toml_key(name: str) -> str:
    """Return a key, with quotation marks where it needs them.

    >>> toml_key("age"), toml_key("post code")
    ('age', '"post code"')
    """
    return name if BARE.fullmatch(name) else _quoted(name)


def toml_value(value: object) -> str:
    """Return a value in one line.

    >>> toml_value([1, 0.5, "x", True, {"a b": float("inf")}])
    '[1, 0.5, "x", true, { "a b" = inf }]'
    """
    match value:
        case str():
            return _quoted(value)
        case bool():
            return "true" if value else "false"
        case int():
            return _digits(value)
        case float():
            return repr(value)
        case Mapping():
            inside = ", ".join(f"{toml_key(name)} = {toml_value(held)}" for name, held in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case list() | tuple():
            return "[" + ", ".join(toml_value(held) for held in value) + "]"
        case _:
            raise StudyError(f"a {type(value).__name__} cannot be written as TOML", expected="text, numbers, tables")


def toml_comment(text: str) -> str:
    """Return a text as a comment of one line.

    >>> toml_comment("two\\nlines")
    '# two lines'
    """
    return "# " + SURROGATES.sub("?", CONTROLS.sub(" ", text))


def parse_toml(raw: bytes, name: str) -> Json:
    """Return the settings in a text. Messages call it `name`."""
    expected = "a run file"
    if len(raw) > MAX_BYTES:
        raise too_large(name)
    if any(line.split(b"=", 1)[0].count(b".") > MOST_DOTS for line in raw.splitlines()):
        raise _too_deep(name)  # reading such a key takes time in the square of its parts
    try:
        parsed = tomllib.loads(raw.decode("utf-8"))
    except RecursionError:
        raise _too_deep(name) from None
    except ValueError as error:  # also of bytes that are not UTF-8, and of numbers with thousands of digits
        raise StudyError(f"{name} is not TOML: {error}", expected=expected) from None
    if _depth(parsed) > MOST_DEPTH:
        raise _too_deep(name)
    return parsed


def too_large(name: str) -> StudyError:
    """Return the error for a run file that is too long."""
    return StudyError(f"{name} has more than {MAX_BYTES >> 20} MB", expected="a run file")


def _too_deep(name: str) -> StudyError:
    return StudyError(f"the tables of {name} are nested too deeply", expected=f"at most {MOST_DEPTH} levels")


def _depth(value: object) -> int:
    """Return the depth of nested tables and lists. A recursion could exceed the limit of Python."""
    depth, held = 0, [value]
    while held:
        depth += 1
        inside: list[object] = []
        for one in held:
            if isinstance(one, Mapping):
                inside += one.values()
            elif isinstance(one, list):
                inside += one
        held = inside
    return depth


def _quoted(text: str) -> str:
    if SURROGATES.search(text):
        raise StudyError("a text that is not UTF-8 cannot be written as TOML", expected="text in UTF-8")
    written = json.dumps(text, ensure_ascii=False)  # its escapes are TOML's, but it leaves one control character
    return written.replace("\x7f", "\\u007f")


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        raise StudyError("a number of thousands of digits cannot be written as TOML", expected="numbers") from None


def _same(one: object, two: object) -> bool:
    """Return whether settings are equal. A list equals a tuple with the same items, and NaN equals NaN."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_same(one[name], two[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(_same(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one):
        return math.isnan(two)
    return bool(type(one) is type(two) or isinstance(one, str)) and bool(one == two)
