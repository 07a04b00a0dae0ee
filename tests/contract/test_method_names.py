"""Only `methods/` and the table of methods name a method: other modules ask for a capability."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import sfumato
from sfumato.methods.registry import MODULES
from sfumato.study import SearchSettings
from sfumato.study.methods import METHODS

SOURCE = Path(sfumato.__file__).parent
HOME = ("methods", "study/methods.py")
UNMISTAKABLE = {"lattice", "cuts"}  # the other names are also words of the formats, such as the cells of a page
ALLOWED = {
    "web": "its own change replaces them",
    "base/wording.py": "the sections of a run file, with the steps of the page that show them",
    "measures/classes.py": "groups is an attribute of a table of classes",
}


def named(text: str) -> list[int]:
    """The lines of a source that compare with a method's name, or have dictionaries or cases by these names."""
    return [node.lineno for node in ast.walk(ast.parse(text)) if any(_by_name(node))]


def _by_name(node: ast.AST) -> Iterator[bool]:
    if isinstance(node, ast.Compare):
        yield from (bool(_names(one)) for one in (node.left, *node.comparators))
    elif isinstance(node, ast.MatchValue):
        yield bool(_names(node.value))
    elif isinstance(node, ast.Dict):
        keys = {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
        yield bool(keys & UNMISTAKABLE) or (len(keys) > 1 and keys <= set(MODULES))
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "dict.fromkeys":
        yield bool(_names(node.args[0]))


def _names(node: ast.AST) -> set[str]:
    """The names of methods that are a constant, or are listed in a tuple, list or set."""
    constants = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {one.value for one in constants if isinstance(one, ast.Constant) and one.value in MODULES}


def _allowed(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def test_no_other_module_asks_for_the_name_of_a_method() -> None:
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in sorted(SOURCE.rglob("*.py"))
        if not _allowed(path.relative_to(SOURCE).as_posix(), (*HOME, *ALLOWED))
        and (lines := named(path.read_text("utf-8")))
    }
    assert found == {}, "ask for a capability of sfumato.study.methods instead"


@pytest.mark.parametrize("place", ALLOWED)
def test_an_exception_is_still_needed(place: str) -> None:
    paths = [SOURCE / place] if place.endswith(".py") else sorted((SOURCE / place).rglob("*.py"))
    assert any(named(path.read_text("utf-8")) for path in paths), "remove it from the list"


@pytest.mark.parametrize(
    "source",
    [
        'front.system == "cuts"',
        '"local" != study.system',
        'front.system not in ("lattice", "cuts")',
        'front.system in {"cells"}',
        'match system:\n    case "groups":\n        pass',
        'match system:\n    case "channel" | "groups":\n        pass',
        'TITLES = {"cuts": "Cuts", "other": "Another"}',
        'SECTIONS = {"local": 1, "cells": 2}',
        'WITHIN = dict.fromkeys(("local", "cells"), 1)',
    ],
)
def test_a_name_is_found(source: str) -> None:
    assert named(source) != []


@pytest.mark.parametrize("source", ['{"cells": [], "rows": 3}', 'f(system="groups")', 'x = "cuts"', 'y == "cut"'])
def test_other_words_are_none(source: str) -> None:
    assert named(source) == []


def test_the_table_has_every_method_and_the_run_file_every_name() -> None:
    fields = SearchSettings.model_fields
    assert list(METHODS) == list(MODULES) == list(get_args(fields["system"].annotation))
    algorithms = [name for method in METHODS.values() for name in method.algorithms]
    assert algorithms == list(get_args(get_args(fields["algorithm"].annotation)[0]))
    rules = [name for method in METHODS.values() for name in method.suppression]
    assert rules == list(get_args(get_args(fields["suppression"].annotation)[0]))
    for method in METHODS.values():
        assert set(method.own) | set(method.beside) <= set(fields)
