"""Every alarm on real tables, judged: docs/dependence.md lists the same, with the reason for each judgement."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.published.tables import TABLES

from sfumato.base.text import percent_down
from sfumato.data.engine import open_engine
from sfumato.release.policy import release_dependences

DOCS = Path(__file__).parents[2] / "docs" / "dependence.md"
ROW = re.compile(r"\| ([\w-]+) \| (.+?) → (.+?) \| (\w+) \| ([\d.]+ %) \| ([\d.]+ %) \| (true|false) \| (.+) \|")


def listed() -> dict[str, dict[tuple[str, str], tuple[str, str, str, bool]]]:
    """The alarms in the documentation: by table and columns, how, the two shares, and the judgement."""
    found: dict[str, dict[tuple[str, str], tuple[str, str, str, bool]]] = {name: {} for name in TABLES}
    for table, kept, protected, way, right, base, judged, _ in ROW.findall(DOCS.read_text("utf-8")):
        found[table][kept, protected] = way, right, base, judged == "true"
    return found


def test_the_documentation_has_alarms_and_at_most_one_false_one_a_table() -> None:
    alarms = listed()
    assert sum(map(len, alarms.values())) > 40
    for table, rows in alarms.items():
        assert sum(not true for *_, true in rows.values()) <= 1, table


@pytest.mark.published
@pytest.mark.parametrize("name", TABLES)
def test_every_alarm_is_listed(name: str, shared: Path) -> None:
    table = TABLES[name]
    study = table.study(shared)
    columns, source = table.recodes(study), study.source()
    with open_engine() as engine:
        engine.attach(source, "raw")
        found = release_dependences(engine, source, study, columns)
    alarms = {
        (" + ".join(d.kept), d.protected): (d.way, percent_down(d.right), percent_down(d.base))
        for d in found.dependences
    }
    assert alarms == {columns: row[:3] for columns, row in listed()[name].items()}
    text = DOCS.read_text("utf-8")
    for one in found.identifying:
        if one.column not in table.sensitive:
            assert re.search(rf"\| {name} \|[^|\n]*\b{re.escape(one.column)}\b", text), one.column
