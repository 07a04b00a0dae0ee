"""What we write as TOML reads back as it was; what TOML lacks is refused."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from sfumato.base.settings import Noted, parse_toml, toml_comment, toml_text
from sfumato.errors import StudyError

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
NUMBERS = st.integers() | st.floats(allow_nan=False)
VALUES = st.recursive(
    TEXT | NUMBERS | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUES, max_size=6))
def test_what_is_written_reads_back(settings: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(settings)) == settings


@pytest.mark.parametrize(
    "character", [chr(0x7F), chr(0), "\x1b", "\b", "\x85", "\u2028", "\U0001f600", '"', "\\", "\r\n"]
)
def test_characters_in_keys_and_values(character: str) -> None:
    settings = {"a" + character: {"b" + character: character}, "c": [character]}
    assert tomllib.loads(toml_text(settings)) == settings


@pytest.mark.parametrize("number", [math.inf, -math.inf, 1e308, 5e-324, -0.0, 10**400])
def test_numbers(number: float) -> None:
    assert tomllib.loads(toml_text({"a": number})) == {"a": number}


def test_not_a_number_reads_back() -> None:
    assert math.isnan(tomllib.loads(toml_text({"a": [math.nan]}))["a"][0])


@pytest.mark.parametrize("value", [None, "\ud800", {"\udcff": 1}, object(), b"x"])
def test_what_toml_lacks_is_refused(value: object) -> None:
    with pytest.raises(StudyError, match="cannot be written"):
        toml_text({"a": value})


@given(TEXT)
def test_a_comment_is_one_line(text: str) -> None:
    assert tomllib.loads(f"a = 1  {toml_comment(text)}\nb = 2\n") == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a = " + "[" * 3000 + "]" * 3000, "nested"),
        ("a = " + "{ b = " * 3000 + "1" + " }" * 3000, "nested"),
        (".".join(["a"] * 3000) + " = 1", "nested"),
        ("[" + ".".join(["a"] * 3000) + "]", "nested"),
        ("a = " + "1" * 5000, "digits"),
        ("a = ", "not TOML"),
    ],
)
def test_absurd_text_is_refused_in_a_sentence(text: str, what: str) -> None:
    with pytest.raises(StudyError, match=what):
        parse_toml(text.encode(), "run.toml")


def test_a_large_text_is_refused() -> None:
    with pytest.raises(StudyError, match="MB"):
        parse_toml(b"# " + b"x" * (17 << 20), "run.toml")
    with pytest.raises(StudyError, match="not TOML"):
        parse_toml(b"a = '\xff'", "run.toml")


@given(st.dictionaries(TEXT, VALUES, max_size=4), TEXT, st.lists(TEXT, max_size=2))
def test_comments_change_nothing(settings: dict[str, Any], note: str, above: list[str]) -> None:
    noted = {name: Noted(value, note, above) for name, value in settings.items()}
    assert tomllib.loads(toml_text(noted, above)) == settings
    section = {name: Noted(value, note, above, active=False) for name, value in settings.items()}
    assert tomllib.loads(toml_text({"s": Noted(section, above=above)}, above)) == {"s": {}}
