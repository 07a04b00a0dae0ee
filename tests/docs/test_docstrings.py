"""Everything that the API pages show has a docstring with all its parameters and what it returns."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import griffe
import pytest
from tools.griffe_doctests import fenced
from tools.site_api import API

import sfumato as sf

MADE_BY_HAND = {"Study", "Anonymizer"}  # classes that a user makes with arguments


def shown() -> Iterator[tuple[str, Any]]:
    """Every function, method and class that is shown, by the name under which it is."""
    for page in API.values():
        for name, members in page.names.items():
            found = getattr(sf, name)
            yield name, found
            yield from ((f"{name}.{member}", getattr(found, member)) for member in members)


def sections(found: Any) -> dict[str, Any]:
    """The sections of a docstring, by kind."""
    text = griffe.Docstring(inspect.getdoc(found) or "", parser="google")
    return {section.kind.value: section.value for section in text.parse()}


def parameters(found: Any) -> list[str]:
    names = [
        ("**" if one.kind is one.VAR_KEYWORD else "*" if one.kind is one.VAR_POSITIONAL else "") + one.name
        for one in inspect.signature(found.__init__ if inspect.isclass(found) else found).parameters.values()
    ]
    return [name for name in names if name not in ("self", "cls")]


def lacking(found: Any, constructed: bool) -> list[str]:
    """What a docstring does not say."""
    parts = sections(found)
    said = [one.name for one in parts.get("parameters", [])]
    if inspect.isclass(found):
        return [name for name in parameters(found) if name not in said] if constructed else []
    missing = [name for name in parameters(found) if name not in said]
    missing += [name for name in said if name not in parameters(found)]
    returns = inspect.signature(found).return_annotation not in (None, "None")
    return [*missing, *(["Returns"] if returns and "returns" not in parts else [])]


def test_a_docstring_that_says_too_little_is_noticed() -> None:
    def halved(number: float, digits: int = 2) -> float:
        """Half of it.

        Args:
            number: what is halved.
        """
        return round(number / 2, digits)

    assert lacking(halved, False) == ["digits", "Returns"]


@pytest.mark.parametrize(("name", "found"), [pytest.param(*each, id=each[0]) for each in shown()])
def test_parameters_and_returns_are_said(name: str, found: Any) -> None:
    assert inspect.getdoc(found)
    assert lacking(found, name in MADE_BY_HAND) == []


def test_every_public_name_has_a_page() -> None:
    listed = [name for page in API.values() for name in page.names]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(sf.__all__) - {"measures"}  # the functions of measures have their docstrings below


def test_functions_of_measures_say_theirs_too() -> None:
    for name in dir(sf.measures):
        assert lacking(getattr(sf.measures, name), False) in (
            [],
            ["**parameters"],
            ["**parameters", *lacking_own(name)],
        )


def lacking_own(name: str) -> list[str]:
    """The parameters of a measure itself, which its function takes as keywords."""
    short = {"l": "distinct_l", "t": "t_closeness"}
    return list(sf.measure(short.get(name, name)).parameters)


def test_examples_are_fenced_once() -> None:
    text = "Sum.\n\nArgs:\n    a: one.\n\n>>> 1 + 1\n2\n>>> [1]\n[1]\n"
    assert fenced(text).count("```pycon") == 1
    assert fenced("No example.") == "No example."
