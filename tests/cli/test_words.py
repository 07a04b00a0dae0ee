"""Texts of the library name parameters and settings; only the doors (command line, page) know their own options."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import sfumato
from sfumato.cli import as_options

SOURCE = Path(sfumato.__file__).parent
DOORS = ("cli", "web")
OPTION = re.compile(r"(?<![\w-])--[a-z]|(?<!\w) -o\b")
COMMANDS = ("search_command", "publish_command")  # their result is a whole command to type


def _documentation(tree: ast.Module) -> set[int]:
    held = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = [node.body[0] for node in ast.walk(tree) if isinstance(node, held) and node.body]
    return {id(node.value) for node in first if isinstance(node, ast.Expr)}


def _options(path: Path) -> list[str]:
    tree = ast.parse(path.read_text("utf-8"))
    skipped = _documentation(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in COMMANDS:
            skipped |= {id(inner) for inner in ast.walk(node)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped
    ]
    return [text for text in texts if OPTION.search(text)]


@pytest.mark.long
def test_no_text_of_the_library_names_an_option_of_the_command_line() -> None:
    modules = [path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0] not in DOORS]
    assert len(modules) > 200
    named = {str(path.relative_to(SOURCE)): options for path in modules if (options := _options(path))}
    assert named == {}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("another name, or overwrite = True", "another name, or --force"),
        ("max_loss = 0.31, or min_k = 4", "--max-loss 0.31, or --min-k 4"),
        ("suppress_below of at most 9", "--suppress-below of at most 9"),
        ("please report it with its trace", "please report it with the trace that --debug prints"),
    ],
)
def test_the_command_line_words_parameters_as_its_options(text: str, shown: str) -> None:
    assert as_options(text) == shown
