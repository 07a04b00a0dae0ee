"""How loops are compiled: for one thread, without the interpreter's lock, kept on disk for the next run.

Machine code is kept under a digest of the source of its module and of all that the module imports here: a loop holds
the loops it calls, and must not outlive a change in one of them.

Without numba a loop runs as the plain Python that it is written in: an audit hardly notices, a search would take hours
and is refused (`need_compiler`).
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
except ImportError:  # a machine that only audits may do without it
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
    """Keep numba from importing SciPy's linear algebra with its first loop: a third of a second for what no loop uses.

    Only where the process is ours: a caller's own loops may use it.
    """
    blas = "scipy.linalg.cython_blas"
    if ours and blas not in sys.modules:
        sys.modules[blas] = cast(Any, None)  # counts as not installed
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
    except (OSError, RuntimeError):  # no folder to keep it in: it is compiled at every run
        pass
    finally:
        settings.CACHE_DIR = given  # the loops of whoever imports us are kept where they were
    return cast(F, kernel)


def _plain(function: F) -> F:
    """The loop as Python runs it: whole numbers wrap around as they do in machine code, without a warning."""

    @wraps(function)
    def plain(*values: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*values)

    return cast(F, plain)


def compiling() -> bool:
    """Whether loops are compiled: what numpy does as well is better left to it where they are not."""
    return numba is not None


def need_compiler(what: str) -> None:
    """Raise where loops are not compiled, for work that would take hours without."""
    if numba is None:
        raise InputError(
            f"{what} needs numba, which is not installed", expected="compiled loops", remedy="pip install numba"
        )


@cache
def usable() -> Path | None:
    """A folder where machine code can be kept and nobody else can write; None where there is none.

    A home that cannot be written to (that of a container, say) leaves the folder for temporary files.
    """
    if ours_alone(kernels.absolute(), own=not given):
        return kernels
    user = str(os.geteuid()) if hasattr(os, "geteuid") else ""
    spare = Path(tempfile.gettempdir()) / f"sfumato{user}" / "kernels"
    return spare if not given and ours_alone(spare.absolute(), own=True) else None


@cache
def digest(file: Path) -> str:
    """A digest of a module's source and of every module of the package that it imports, near or far."""
    whole = hashlib.sha256()
    for _, text in sorted(sources(file).items()):
        whole.update(hashlib.sha256(text).digest())
    return whole.hexdigest()[:16]


def sources(file: Path) -> dict[Path, bytes]:
    """A module and every module of the package that it imports, near or far, with their text."""
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
    """The text of a module, and the files of the package that it imports; a name may be a module of a folder."""
    text = file.read_bytes()
    files = []
    for folder, names in IMPORTS.findall(text.decode("utf-8")):
        base = PACKAGE.joinpath(*folder.split(".")) if folder else PACKAGE
        files += [base.with_suffix(".py"), *(base / f"{name}.py" for name in re.findall(r"\w+", names))]
    return text, [one for one in files if one.is_file()]
