"""Answers and errors of a worker as JSON knows them."""

from __future__ import annotations

import math
import os
import traceback
from typing import Any

from sfumato.errors import MemoryLimitError, SfumatoError
from sfumato.runtime.wording import on_page


def explained(error: BaseException) -> dict[str, str]:
    """An error as a sentence with a remedy."""
    if isinstance(error, MemoryError | MemoryLimitError):
        return {
            "what": "the work needs more memory than a worker may use",
            "expected": "a table or a search that fits",
            "try": "sfumato serve --memory 16 gives each worker 16 GB",
        }
    if isinstance(error, SfumatoError):
        return {name: on_page(text) if isinstance(text, str) else text for name, text in error.as_dict().items()}
    if isinstance(error, OSError):
        return {
            "what": f"a file cannot be used: {error.strerror}",
            "expected": "paths that can be read and written",
            "try": "check the folder and the free space on its disk",
        }
    if os.environ.get("SFUMATO_DEBUG"):
        traceback.print_exception(error)
    return {
        "what": f"internal error: {type(error).__name__}",
        "expected": "",
        "try": "sfumato serve --debug prints the trace; please report it",
    }


def plain(given: Any) -> Any:
    """The same as JSON knows it: arrays as lists, infinities as null."""
    if isinstance(given, dict):
        return {str(name): plain(value) for name, value in given.items()}
    if isinstance(given, list | tuple):
        return [plain(value) for value in given]
    if isinstance(given, float):
        return given if math.isfinite(given) else None
    if hasattr(given, "tolist"):
        return plain(given.tolist())
    return given
