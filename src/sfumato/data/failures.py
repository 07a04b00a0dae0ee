"""What errors of databases and of Spark mean, by words of their messages (`failures.toml`)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path


def failure(program: str, text: str) -> tuple[str, dict[str, str]] | None:
    """Return what the text of an error says, with what was expected and what to do. No part of the text is shown.

    >>> failure("database", "42501 permission denied for table people")[0]
    'the user has no right to read it'
    """
    for entry in _table()[program]:
        if found := re.search(entry["words"], text):
            advice = {name: entry.get(name, "") for name in ("expected", "remedy")}
            return entry["what"].format(*found.groups()), advice
    return None


@cache
def _table() -> dict[str, list[dict[str, str]]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
