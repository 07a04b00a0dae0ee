"""Texts of the library name parameters and settings; only the doors (command line, page) know their own options."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import sfumato
from sfumato.base.wording import PLACES, as_options, on_page
from sfumato.data.open import open_source
from sfumato.data.settings import FOREIGN, DataSettings
from sfumato.errors import DataError, StudyError
from sfumato.web.schema import explained

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
    modules.remove(SOURCE / "base" / "wording.py")  # where texts are put into the words of each interface
    assert len(modules) > 200
    named = {str(path.relative_to(SOURCE)): options for path in modules if (options := _options(path))}
    assert named == {}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("another name, or overwrite = True", "another name, or --force"),
        ("max_loss = 0.31, or min_k = 4", "--max-loss 0.31, or --min-k 4"),
        ("suppress_below of at most 9", "--suppress-below of at most 9"),
        ('accept with a reason: accept = {"l": "…"}', 'accept with a reason: --accept "l=…"'),
        ("please report it with its trace", "please report it with the trace that --debug prints"),
    ],
)
def test_the_command_line_words_parameters_as_its_options(text: str, shown: str) -> None:
    assert as_options(text) == shown


ADVICE = ("remedy", "expected")
SECTION = re.compile(r"\[(?:" + "|".join(PLACES) + r")(?:\.\w+)*\]")
KEY = re.compile(r"(?<![\w.])[a-z][a-z_]* = ")


def _advice(path: Path) -> list[str]:
    """What errors expect and advise; what is filled in later stands as x."""
    texts = []
    for call in (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)):
        for keyword in call.keywords:
            if keyword.arg in ADVICE and isinstance(keyword.value, ast.Constant | ast.JoinedStr):
                parts = keyword.value.values if isinstance(keyword.value, ast.JoinedStr) else [keyword.value]
                texts.append("".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts))
    return texts


def test_the_page_names_no_section_and_no_key_of_a_run_file() -> None:
    modules = [path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0] not in DOORS]
    texts = [text for path in modules for text in _advice(path)]
    assert len(texts) > 400
    assert [text for text in texts if KEY.search(text)]
    shown = [(text, on_page(text)) for text in texts]
    assert [pair for pair in shown if SECTION.search(pair[1]) or KEY.search(pair[1])] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('missing = "drop" or "category" under [data]', "“A missing value means”: drop or category in Declare"),
        ('engine = "square" or engine = "optrr" under [channel]', "“Engine”: square or optrr in Search"),
        ('correct it, or set decimal = "," or role = "drop"', 'correct it, or set “decimal”: "," or “Role”: drop'),
        ("constrained = false for age", "“Cuts may join”: no for age"),
        (
            "add a row, or declare them in na under [data]",
            "add a row, or declare them in “Codes for missing values” in Declare",
        ),
        ("min_k = 4", "minimum k 4"),
        ('accept with a reason: accept = {"l": "…"}, accept = {"k": "…"}', "accept with a reason: l, k"),
        ("names = 2, [a] or [x] are no sections", "“names”: 2, [a] or [x] are no sections"),
    ],
)
def test_the_page_words_settings_as_its_fields(text: str, shown: str) -> None:
    assert on_page(text) == shown


def test_a_parameter_is_named_as_the_caller_writes_it() -> None:
    """The command line said: give your run file as well (run)."""
    with pytest.raises(DataError) as refused:
        open_source(DataSettings(path=FOREIGN))
    assert refused.value.remedy == 'give run = "run.toml", a run file of your own'
    assert as_options(refused.value.remedy) == "give --run run.toml, a run file of your own"
    assert explained(refused.value)["try"] == "open a run file of your own"
    error = StudyError("missing values match anything", remedy='missing = "category" under [data]')
    assert explained(error)["try"] == "“A missing value means”: category in Declare"
    assert error.as_dict()["try"] == 'missing = "category" under [data]'
