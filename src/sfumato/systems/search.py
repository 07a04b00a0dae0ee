"""One search for all systems."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.front import Front
from sfumato.study import Study
from sfumato.systems.lattice import search_lattice


def search(study: Study, progress: Callable[[int, int], None] | None = None) -> Front:
    """Find the front of a study. The same study, data and seed give the same front on any number of threads."""
    return search_lattice(study, progress=progress)
