"""As much of R as it takes to read the arguments of one call: texts, vectors of texts, and names given to them.

Nothing is run. What is not a text, a vector of texts or a name that was given one is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

TOKEN = re.compile(
    r"""\s+ | \#[^\n]* | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*') | (?P<name>[A-Za-z.][\w.]*)
    | (?P<assign><-|<<-|=(?!=)) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
Token = tuple[str, str]
OPEN, CLOSE = "([{", ")]}"


def tokens(script: str) -> list[Token]:
    """The tokens of a script without blanks and comments: kind and text.

    >>> tokens("k <- c('a')  # keys")
    [('name', 'k'), ('assign', '<-'), ('name', 'c'), ('other', '('), ('text', 'a'), ('other', ')')]
    """
    result = []
    for match in TOKEN.finditer(script):
        kind = match.lastgroup
        if kind is not None:
            text = match[0]
            result.append((kind, re.sub(r"\\(.)", r"\1", text[1:-1]) if kind == "text" else text))
    return result


def arguments_of(script: str, function: str) -> dict[str, list[str] | None] | None:
    """The named arguments of the first call of a function, None if it is not called.

    >>> script = "keys <- c('a', 'b')\\nsdc <- createSdcObj(dat = d, keyVars = keys, weightVar = 'w', seed = 1)"
    >>> arguments_of(script, "createSdcObj")
    {'dat': None, 'keyVars': ['a', 'b'], 'weightVar': ['w'], 'seed': None}
    """
    listed = tokens(script)
    for position in range(len(listed) - 1):
        if listed[position] == ("name", function) and listed[position + 1] == ("other", "("):
            known = _assigned(listed[:position])
            inside = _until_closed(listed[position + 2 :])
            return {name: _texts(value, known) for name, value in _named(inside)}
    return None


def _until_closed(listed: list[Token]) -> list[Token]:
    """The tokens up to the bracket that closes one opened before them."""
    depth, inside = 0, []
    for kind, text in listed:
        if kind == "other" and text in CLOSE:
            if depth == 0:
                break
            depth -= 1
        elif kind == "other" and text in OPEN:
            depth += 1
        inside.append((kind, text))
    return inside


def _named(inside: list[Token]) -> Iterator[tuple[str, list[Token]]]:
    """The named arguments: name and tokens of the value."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for kind, text in inside:
        if kind == "other":
            depth += (text in OPEN) - (text in CLOSE)
        if depth == 0 and (kind, text) == ("other", ","):
            parts.append([])
        else:
            parts[-1].append((kind, text))
    for part in parts:
        if len(part) > 2 and part[0][0] == "name" and part[1] == ("assign", "="):
            yield part[0][1], part[2:]


def _assigned(listed: list[Token]) -> dict[str, list[str]]:
    """The names that were given texts before."""
    known: dict[str, list[str]] = {}
    for position in range(len(listed) - 2):
        (kind, name), (assign, _) = listed[position], listed[position + 1]
        if kind == "name" and assign == "assign":
            value = listed[position + 2 : position + 3]
            if value == [("name", "c")] and listed[position + 3 : position + 4] == [("other", "(")]:
                value = [*listed[position + 2 : position + 4], *_until_closed(listed[position + 4 :]), ("other", ")")]
            if (result := _texts(value, known)) is not None:
                known[name] = result
    return known


def _texts(value: list[Token], known: dict[str, list[str]]) -> list[str] | None:
    """The texts that a value is, None if it is something else."""
    if len(value) == 1:
        kind, text = value[0]
        return [text] if kind == "text" else known.get(text) if kind == "name" else None
    if value[:2] == [("name", "c"), ("other", "(")] and value[-1:] == [("other", ")")]:
        inside = [one for one in value[2:-1] if one != ("other", ",")]
        if inside and all(kind == "text" for kind, _ in inside):
            return [text for _, text in inside]
    return None
