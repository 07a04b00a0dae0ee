"""A search that is stopped says after how many generations: asked for again, it gives the same front."""

from __future__ import annotations

from pathlib import Path

from tests.web.bench import write_table

import sfumato as sf

COLUMNS = {
    "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10, 20]}},
    "zip": {"role": "quasi_identifier", "hierarchy": {"build": "prefix"}},
    "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
    "ill": {"role": "sensitive"},
}


def test_a_stopped_search_is_repeated_to_the_same_front(tmp_path: Path) -> None:
    path = write_table(tmp_path / "people.csv", rows=60)
    search = {"system": "cuts", "problem": 2, "generations": 5000, "max_suppression": 0.05}
    study = sf.Study(data={"path": str(path)}, columns=COLUMNS, search=search)
    table = study.table()
    begun: list[int] = []

    def stop(done: int, total: int) -> bool:  # of the lattice's nodes first, then of generations
        begun.append(total)
        return begun.count(5000) == 3

    front = sf.search(study, stop, table=table)
    assert front.study.search.generations == 2  # the first word is about the start
    again = sf.search(front.study, table=table)
    assert [point.saved() for point in again.points] == [point.saved() for point in front.points]
    cut_short = sf.search(study, lambda done, total: True, table=table)  # before the first generation
    assert cut_short.certificate["repeatable"] is False
