"""One search for all systems."""

from __future__ import annotations

from sfumato.front import Front
from sfumato.study import Study
from sfumato.systems.cuts import search_cuts
from sfumato.systems.lattice import Progress, search_lattice


def search(study: Study, progress: Progress | None = None) -> Front:
    """Find the front of a study. The same study, data and seed give the same front on any number of threads.

    `progress(done, total)` is told how far it is, and stops it by returning True; what was found is kept.
    """
    if study.search.system == "cuts":
        return search_cuts(study, progress=progress)
    return search_lattice(study, progress=progress)
