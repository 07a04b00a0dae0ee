"""Write the tables of keys in docs/run-file.md from the descriptions of the settings.

python -m tools.run_file   # write them; tests/study/test_described.py fails where they differ
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sfumato.base.settings import Settings
from sfumato.data.settings import DataSettings, EngineOptions, Role
from sfumato.hierarchies.recipes import RECIPES, HierarchyFile, HierarchyPaths
from sfumato.study import census_mapping as census
from sfumato.study import groups, sections
from sfumato.study.declaration import Declaration

PAGE = Path(__file__).parents[1] / "docs" / "run-file.md"
BLOCK = re.compile(r"(?<=<!-- keys: )([\w.]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
SECTIONS: dict[str, type[Settings]] = {
    "run": Declaration,
    "data": DataSettings,
    "columns": sections.ColumnSettings,
    "policy": sections.PolicySettings,
    "policy.accept": sections.Acceptance,
    "search": sections.SearchSettings,
    "search.objectives": sections.ObjectiveSettings,
    "local": sections.LocalSettings,
    "cells": sections.CellsSettings,
    "channel": sections.ChannelSettings,
    "groups": groups.GroupsSettings,
    "groups.auxiliary": groups.AuxiliarySettings,
    "groups.attributes": census.Attribute,
    "groups.attributes.cases": census.Case,
    "groups.attributes.terms": census.TermSettings,
    "groups.attack": groups.AttackSettings,
    "groups.protect": groups.ProtectSettings,
    "release": sections.ReleaseSettings,
    "engine_options": EngineOptions,
    "hierarchy.file": HierarchyFile,
    "hierarchy.paths": HierarchyPaths,
    **{f"hierarchy.{name}": recipe for name, recipe in RECIPES.items()},
}
LARGEST = 1e6  # limits beyond it only keep numbers within what can be computed
BOUNDS = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
KINDS = {bool: "`true`, `false`", int: "whole number", float: "number", str: "text"}


def written(page: str) -> str:
    """Return the page with the tables as the settings have them."""
    return BLOCK.sub(lambda block: f"{block[1]}{block[2]}\n{table(block[1])}\n\n", page)


def table(name: str) -> str:
    """Return the table of one section, or of the roles."""
    if name == "roles":
        return _table(("role", "meaning"), ((f"`{role}`", role.meaning) for role in Role))
    section = SECTIONS[name]
    known = {**DataSettings.model_fields, **census.FileMapping.model_fields} if name == "groups.auxiliary" else {}
    keys = ((key, field) for key, field in section.model_fields.items() if key not in known)
    says = descriptions(section)
    rows = ((f"`{key}`", values(field), default(field), says[key]) for key, field in keys)
    return _table(("key", "values", "default", "meaning"), rows)


def descriptions(section: type[Settings]) -> dict[str, str]:
    """Return what each key of a section means: its description, or the text below it in the source."""
    texts = {key: field.description or "" for key, field in section.model_fields.items()}
    for kind in reversed(section.__mro__[: section.__mro__.index(Settings)]):
        for field, text in pairwise(ast.parse(inspect.getsource(kind)).body[0].body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                texts[field.target.id] = " ".join(text.value.value.split())
    return texts


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def values(field: FieldInfo) -> str:
    """Return the values that a key takes, in words."""
    return _values(field.annotation, field.metadata)


def _values(kind: Any, limits: Sequence[Any] = ()) -> str:
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _values(inside[0], [limit for each in inside[1:] for limit in getattr(each, "metadata", ())])
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_values(each, limits) for each in inside if each is not NoneType))
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in inside)
    if origin is tuple:
        return f"list: {_values(inside[0])}" if inside[-1] is ... else f"list of {len(inside)}: {_values(inside[0])}"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, Settings)):
        return "table"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "see above" if kind is Role else ", ".join(f"`{each.value}`" for each in kind)
    bounds = [
        f"{word} {getattr(limit, name):g}"
        for name, word in BOUNDS.items()
        for limit in limits
        if abs(getattr(limit, name, LARGEST)) < LARGEST
    ]
    return " ".join([KINDS[kind], *bounds])


def default(field: FieldInfo) -> str:
    """Return the default of a key as a run file has it; nothing where leaving the key out means something else."""
    if field.default is PydanticUndefined:
        return "" if field.default_factory else "required"
    plain = field.default is None or isinstance(field.default, Settings) or field.default == ()
    return "" if plain else f"`{json.dumps(field.default, ensure_ascii=False)}`"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
