"""Addresses that ask a worker name a function that takes what a request gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import get_type_hints

import pytest

from sfumato.web.routes import PARTS
from sfumato.web.worker import function

ASKED = [(call, declaration) for part in PARTS for call, declaration in part.asked.items()]


def test_most_addresses_are_declared() -> None:
    assert len(ASKED) > 25


@pytest.mark.parametrize(("call", "declaration"), ASKED, ids=[call for call, _ in ASKED])
def test_a_function_takes_what_its_address_gives(call: str, declaration: Callable[..., None]) -> None:
    """All that a request may give, and what it must give alone."""
    parameters = inspect.signature(declaration).parameters
    fields = get_type_hints(declaration)["body"].model_fields if "body" in parameters else {}
    named = set(parameters) - {"body"}
    for names in (named | set(fields), named | {name for name, field in fields.items() if field.is_required()}):
        inspect.signature(function(call)).bind(places=None, **dict.fromkeys(names))
