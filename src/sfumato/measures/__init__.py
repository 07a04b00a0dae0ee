"""Measures of disclosure risk and information loss, their compiled kernels, and the oracle for tests.

Each measure is also a function of a table, such as `sf.measures.k(df, ["age", "zip"])` (see `registry`).
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def __getattr__(name: str) -> Any:
    # `from sfumato.measures import loss` calls this function first. For a submodule it leaves the work to the import.
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
        registry = importlib.import_module(f"{__name__}.registry")
        if name in registry.function_names():
            return registry.function_named(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    listed: list[str] = importlib.import_module(f"{__name__}.registry").function_names()
    return listed
