"""Compilation of loops for one thread, without the interpreter's lock, with a cache on disk.

The cache is keyed by a digest of the source of the module and of all modules of the package that it imports. Machine
code contains the loops that are called, so a change in any of them must invalidate it.

Without numba a loop runs as plain Python. An audit takes little longer. A search would take hours and is refused
(`need_compiler`).
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from sfumato.base.trust import ours
from sfumato.errors import InputError

numba: Any
try:
    import numba
except ImportError:  # not needed on a machine that only audits
    numba = None
else:
    from sfumato.base.kernel_cache import KernelCache, ours_alone

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parents[1]
IMPORTS = re.compile(r"^\s*from sfumato\.?([\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)

settings: Any = None if numba is None else numba.config
home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sfumato" / "kernels"
given = "" if numba is None else settings.CACHE_DIR
kernels = Path(given or home)  # the package's own folder may be read-only


def _without_linear_algebra() -> None:
    """Keep numba from importing SciPy's linear algebra, which no loop uses and which takes a third of a second.

    This is done only in processes of the command line, because the loops of a caller may use it.
    """
    blas = "scipy.linalg.cython_blas"
    if ours and blas not in sys.modules:
        sys.modules[blas] = cast(Any, None)  # is treated as not installed
        try:
            importlib.import_module("numba.np.arraymath")
        finally:
            del sys.modules[blas]


if numba is not None:
    _without_linear_algebra()


def compiled(function: F) -> F:
    """Compile for one thread, release the interpreter lock, keep the machine code for the next run."""
    if numba is None:
        return _plain(function)
    kernel: Any = numba.njit(nogil=True)(function)
    folder = usable()
    if folder is None:
        return cast(F, kernel)
    settings.CACHE_DIR = str(folder / digest(Path(function.__code__.co_filename)))
    try:
        kernel._cache = KernelCache(kernel.py_func)
    except (OSError, RuntimeError):  # no folder for the cache: loops are compiled in every run
        pass
    finally:
        settings.CACHE_DIR = given  # the cache of a caller's own loops does not change
    return cast(F, kernel)


def _plain(function: F) -> F:
    """Return the loop in plain Python, where whole numbers overflow without a warning as in machine code."""

    @wraps(function)
    def plain(*values: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*values)

    return cast(F, plain)


def compiling() -> bool:
    """Return whether loops are compiled. Where they are not, numpy is faster for what it can do."""
    return numba is not None


def need_compiler(what: str) -> None:
    """Raise where loops are not compiled, for work that would take hours without compilation."""
    if numba is None:
        raise InputError(
            f"{what} needs numba, which is not installed", expected="compiled loops", remedy="pip install numba"
        )


@cache
def usable() -> Path | None:
    """Return a folder for machine code that no other user can write to, or None.

    It is among temporary files where the home folder cannot be written to, as in some containers.
    """
    if ours_alone(kernels.absolute(), own=not given):
        return kernels
    user = str(os.geteuid()) if hasattr(os, "geteuid") else ""
    spare = Path(tempfile.gettempdir()) / f"sfumato{user}" / "kernels"
    return spare if not given and ours_alone(spare.absolute(), own=True) else None


@cache
def digest(file: Path) -> str:
    """Return a digest of the source of a module and of the modules that it imports, directly or indirectly."""
    whole = hashlib.sha256()
    for _, text in sorted(sources(file).items()):
        whole.update(hashlib.sha256(text).digest())
    return whole.hexdigest()[:16]


def sources(file: Path) -> dict[Path, bytes]:
    """Return the text of a module and of the modules of the package that it imports, directly or indirectly."""
    texts: dict[Path, bytes] = {}
    ahead = [file]
    while ahead:
        one = ahead.pop()
        if one not in texts:
            texts[one], imported = _read(one)
            ahead += imported
    return texts


@cache
def _read(file: Path) -> tuple[bytes, list[Path]]:
    """Return the text of a module, and the files of the package that it imports directly."""
    text = file.read_bytes()
    files = []
    for folder, names in IMPORTS.findall(text.decode("utf-8")):
        base = PACKAGE.joinpath(*folder.split(".")) if folder else PACKAGE
        files += [base.with_suffix(".py"), *(base / f"{name}.py" for name in re.findall(r"\w+", names))]
    return text, [one for one in files if one.is_file()]
