"""Errors of run files in one sentence, with the nearest known key for an unknown one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError

from sfumato.base.settings import Settings
from sfumato.data.settings import Role
from sfumato.errors import StudyError, counted, nearest
from sfumato.hierarchies.recipes import BRANCHES, RECIPES

WORDS = {  # the validator's name of a problem, and what was expected
    "greater_than_equal": "a number of at least {ge}",
    "greater_than": "a number above {gt}",
    "less_than_equal": "a number of at most {le}",
    "less_than": "a number below {lt}",
    "finite_number": "a finite number",
    "literal_error": "one of: {expected}",
    "enum": "one of: {expected}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "a text in quotation marks",
    "string_too_short": "a text of at least {min_length}",
    "string_too_long": "a text of at most {max_length}",
    **dict.fromkeys(("tuple_type", "list_type", "set_type"), "a list in square brackets"),
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), "a table of keys and values"),
}


def explained(error: ValidationError, root: type[Settings]) -> StudyError:
    """Return the first problem of a run file whose sections are the fields of `root`.

    A key that is missing is often one that is misspelt, so an unknown key comes first.
    """
    problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    path = list(problem["loc"])
    if len(path) > 3 and path[2] == "hierarchy":  # followed by the name of a branch of the union
        path = path[:3] + (path[4:] if path[3] in BRANCHES else path[3:])
    if len(path) > 1 and isinstance(path[-2], int) and path[-1] == "str":  # one branch of what an entry can be
        path = path[:-1]
    where = _place(path)
    if problem["type"] == "extra_forbidden":
        return StudyError(
            f'unknown key "{path[-1]}"' + (f" in [{'.'.join(map(str, path[:-1]))}]" if path[:-1] else ""),
            expected="a key of the run file",
            remedy=nearest(str(path[-1]), keys_at(root, path[:-1])),
        )
    if problem["type"] == "missing":
        return StudyError(f'the key "{where}" is missing', expected=f"a value for {where}")
    if problem["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return StudyError(f"{where} is not understood", expected="a file, or build = one of: " + ", ".join(RECIPES))
    given = problem["input"]
    shown = f" = {given!r}" if isinstance(given, str | int | float) else ""
    remedy = nearest(given, [str(role) for role in Role]) if path[-1:] == ["role"] and isinstance(given, str) else ""
    return StudyError(f"{where}{shown} is not valid", expected=in_words(problem), remedy=remedy)


def _place(path: Sequence[str | int]) -> str:
    """Return the position of a value in a run file, where entries of a list are counted from 1.

    >>> _place(["local", "k", 0]), _place(["groups", "auxiliary", 1, "path"])
    ('entry 1 of local.k', 'path in entry 2 of groups.auxiliary')
    """
    last = max((place for place, part in enumerate(path) if isinstance(part, int)), default=-1)
    if last < 1:
        return ".".join(map(str, path))
    inside, behind = _place(path[:last]), ".".join(map(str, path[last + 1 :]))
    return f"{behind} in " * bool(behind) + f"entry {int(path[last]) + 1} of {inside}"


def in_words(problem: Mapping[str, Any]) -> str:
    """Return what a validator expected, in our words where there are some, or else in its own.

    >>> in_words({"type": "greater_than_equal", "ctx": {"ge": 1}, "msg": ""})
    'a number of at least 1'
    >>> in_words({"type": "other", "msg": "Input should be a valid date"})
    'a valid date'
    """
    context = dict(problem.get("ctx", {}))
    for name in ("ge", "gt", "le", "lt"):
        if isinstance(context.get(name), float):
            context[name] = f"{context[name]:g}"
    counts = ("character", "characters") if problem["type"].startswith("string") else ("entry", "entries")
    for name in ("min_length", "max_length"):
        if name in context:
            context[name] = counted(int(context[name]), *counts)
    if problem["type"] in WORDS:
        return WORDS[problem["type"]].format(**context)
    return str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")


def keys_at(root: type[Settings], path: Sequence[str | int]) -> list[str]:
    """Return the known keys at a path inside a section: those of every section that is possible there.

    >>> from sfumato.study.sections import ColumnSettings
    >>> keys_at(ColumnSettings, [])[:3]
    ['role', 'hierarchy', 'missing']
    >>> "bins" in keys_at(ColumnSettings, ["hierarchy"])
    True
    """
    kinds: list[Any] = [root]
    for part in path:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)]
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Settings)]
    return list(dict.fromkeys(key for section in sections for key in section.model_fields))


def _inside(kind: Any, part: str | int) -> Iterator[Any]:
    """Yield the possible types after one part of a path. A part that is no field is the name of a union's branch."""
    if isinstance(kind, type) and issubclass(kind, Settings):
        field = kind.model_fields.get(str(part))
        yield from [kind] if field is None else _alternatives(field.annotation)
    elif get_args(kind):  # of a mapping the values, of a sequence the items
        yield from _alternatives(get_args(kind)[1 if get_origin(kind) is dict else 0])


def _alternatives(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for one in get_args(annotation):
            yield from _alternatives(one)
    else:
        yield annotation
