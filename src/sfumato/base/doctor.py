"""Examination of an installation: packages, folders, memory, and what each feature lacks."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from sfumato.base.files import temporary_folder
from sfumato.base.json_types import Json
from sfumato.base.trust import state_folder
from sfumato.version import __version__

PACKAGE = "sfumato"
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?P<bounds>[^;]*?)\s*(?:;(?P<marker>.*))?$")
EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
FEATURES = {  # extras for developers are not listed
    "web": "the page in the browser (sfumato serve)",
    "labelled": "SPSS, Stata, SAS and Excel",
    "db": "PostgreSQL and SQLite",
    "spark": "tables on a Spark cluster (also needs Java 17)",
    "pandas": "results as pandas frames",
    "polars": "results as polars frames",
    "sklearn": "sf.Anonymizer in scikit-learn pipelines",
    "boosted": "the boosted attacker of the groups system",
    "notebook": "figures in notebooks",
    "ipums": "files of IPUMS for the groups system",
}


@dataclass(frozen=True)
class Needed:
    """A package, the versions that are supported, and the installed one (None: it is not installed)."""

    name: str
    bounds: str
    version: str | None


@dataclass(frozen=True)
class Feature:
    """A feature and the packages that it lacks."""

    extra: str
    about: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Folder:
    """A folder that is written to: its purpose, whether it is writable, and the free space."""

    purpose: str
    path: str
    usable: bool
    free_bytes: int | None


@dataclass(frozen=True)
class Examination:
    """The findings of `sfumato doctor`."""

    version: str
    python: str
    system: str
    packages: tuple[Needed, ...]
    features: tuple[Feature, ...]
    folders: tuple[Folder, ...]
    threads: int
    memory_bytes: int | None
    memory_available_bytes: int | None
    java: str | None

    @property
    def problems(self) -> list[str]:
        """The problems that keep Sfumato itself from working."""
        problems = [f"{one.name} is not installed" for one in self.packages if one.version is None]
        return [*problems, *(f"{one.path} cannot be written: {one.purpose}" for one in self.folders if not one.usable)]

    def as_dict(self) -> Json:
        return asdict(self) | {"problems": self.problems}


def examine() -> Examination:
    """Examine this installation. Nothing is loaded that is not needed, and nothing leaves the machine."""
    listed = requirements(importlib.metadata.requires(PACKAGE) or [])
    features = [
        Feature(extra, about, tuple(one.name for one in listed.get(extra, ()) if one.version is None))
        for extra, about in FEATURES.items()
    ]
    total, available = _memory()
    return Examination(
        version=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        packages=tuple(listed.get("", ())),
        features=tuple(features),
        folders=_folders(),
        threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=total,
        memory_available_bytes=available,
        java=shutil.which("java"),
    )


def requirements(lines: Iterable[str]) -> dict[str, list[Needed]]:
    """Return the packages that metadata require, by extra. Those that are always required have the empty name.

    >>> requirements(['nowhere-to-be-found>=2,<3; extra == "web"'])
    {'web': [Needed(name='nowhere-to-be-found', bounds='>=2,<3', version=None)]}
    """
    packages: dict[str, list[Needed]] = {}
    for line in lines:
        if match := REQUIREMENT.match(line.strip()):
            extra = EXTRA.search(match["marker"] or "")
            needed = Needed(match["name"], match["bounds"], _installed(match["name"]))
            packages.setdefault(extra[1] if extra else "", []).append(needed)
    return packages


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _folders() -> tuple[Folder, ...]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / PACKAGE / "kernels"
    listed = {
        "ledger and keys": state_folder(),
        "compiled loops": Path(os.environ.get("NUMBA_CACHE_DIR") or cache),
        "temporary files": Path(temporary_folder()),
    }
    return tuple(_folder(purpose, path) for purpose, path in listed.items())


def _folder(purpose: str, path: Path) -> Folder:
    """Return the facts about a folder, or about the nearest existing folder above it."""
    there = next((one for one in (path, *path.parents) if one.exists()), Path("/"))
    usable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    return Folder(purpose, str(path), usable, shutil.disk_usage(there).free if usable else None)


def _memory() -> tuple[int | None, int | None]:
    """Return the total and the free memory of the machine, where the system reports them."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on this system
        return None, None
