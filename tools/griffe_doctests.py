"""For mkdocstrings: the examples of a docstring are shown as code, wherever in the docstring they stand."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?!\s*\n)(?P=indent).*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts a fence around the examples of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the text before it is parsed."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with its examples in fences.

    >>> fenced("Text.\\n\\n" + ">" * 3 + " 1 + 1\\n2\\n\\nMore.")
    'Text.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n\\nMore.'
    """
    return EXAMPLE.sub(lambda found: f"{found['indent']}```pycon\n{found[0]}\n{found['indent']}```", text)
