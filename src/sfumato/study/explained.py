"""What is wrong with a run file, as one sentence, with the nearest known key for one that is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError

from sfumato.errors import StudyError, nearest
from sfumato.hierarchies.recipes import BRANCHES, RECIPES
from sfumato.runtime.settings import Settings
from sfumato.sources.roles import Role


def explained(error: ValidationError, root: type[Settings]) -> StudyError:
    """The first problem of a run file whose sections are the fields of `root`.

    A key that is missing is often one that is misspelt, so an unknown key comes first.
    """
    problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    path = list(problem["loc"])
    if len(path) > 3 and path[2] == "hierarchy":  # behind it stands the name of a branch of the union
        path = path[:3] + (path[4:] if path[3] in BRANCHES else path[3:])
    where = ".".join(str(part) for part in path)
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
    return StudyError(f"{where}{shown} is not valid", expected=problem["msg"], remedy=remedy)


def keys_at(root: type[Settings], path: Sequence[str | int]) -> list[str]:
    """The keys that are known at a path inside a section: those of every section that can stand there.

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
    """The types that can stand behind one part of a path. A part that is no field is the name of a union's branch."""
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
