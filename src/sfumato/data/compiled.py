"""How loops are compiled: for one thread, without the interpreter's lock, kept on disk for the next run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

settings: Any = numba.config
if not settings.CACHE_DIR:  # the package's own folder may be read-only
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    settings.CACHE_DIR = str(cache / "sfumato" / "kernels")


def compiled(function: F) -> F:
    """Compile for one thread, release the interpreter lock, keep the machine code for the next run."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))
