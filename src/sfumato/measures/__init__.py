"""Measures of disclosure and loss, the kernels that feed them and the oracle they are checked against.

Each measure is also a plain function of a table here: `sf.measures.k(df, ["age", "zip"])` (see `registry`).
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def __getattr__(name: str) -> Any:
    # `from sfumato.measures import loss` asks here first: what is a module of ours is left to the import.
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
        registry = importlib.import_module(f"{__name__}.registry")
        if name in registry.function_names():
            return registry.function_named(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    listed: list[str] = importlib.import_module(f"{__name__}.registry").function_names()
    return listed
