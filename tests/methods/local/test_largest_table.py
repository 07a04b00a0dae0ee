"""The report of a local release names the two-way table with the largest error, as plain Python finds it."""

from __future__ import annotations

import csv
import itertools
import random
from pathlib import Path

import pytest
from tests.release.fronts import write_csv

import sfumato as sf


def share_of(label: str, values: list[str]) -> dict[str, float]:
    """How a reader spreads a label over the values of a column."""
    inside = values if label == "*" else [label]
    if label.startswith("["):
        low, high = map(int, label[1:-1].split(" .. "))
        inside = [value for value in values if low <= int(value) <= high]
    return dict.fromkeys(inside, 1 / len(inside))


def test_the_largest_table_is_named_with_its_columns(tmp_path: Path) -> None:
    rng = random.Random(9)
    names = ["age", "year", "size"]
    rows = [[rng.randint(20, 39), rng.randint(1, 12), rng.choice([1, 1, 1, 2, 3, 9])] for _ in range(160)]
    path = write_csv(tmp_path / "t.csv", [[*names, "ill"], *([*row, rng.choice("abc")] for row in rows)])
    columns = {name: {"role": "quasi_identifier"} for name in names} | {"ill": {"role": "sensitive"}}
    study = sf.Study(data={"path": str(path)}, columns=columns, local={"k": [4]})
    accept = {"l": "made up for a test", "t": "made up for a test"}
    release = sf.publish(sf.pick(sf.search(study), point=0), tmp_path / "out", state=tmp_path / "state", accept=accept)
    with release.data.open(encoding="utf-8", newline="") as file:
        released = list(csv.DictReader(file))
    values = [sorted({str(row[j]) for row in rows}) for j in range(3)]
    errors = {}
    for i, j in itertools.combinations(range(3), 2):
        off = dict.fromkeys(itertools.product(values[i], values[j]), 0.0)
        for row in rows:
            off[str(row[i]), str(row[j])] += 1 / len(rows)
        for record in released:
            for a, one in share_of(record[names[i]], values[i]).items():
                for b, two in share_of(record[names[j]], values[j]).items():
                    off[a, b] -= one * two / len(released)
        errors[i, j] = sum(map(abs, off.values())) / 2
    worst = max(errors, key=lambda pair: errors[pair])
    figure = release.manifest["figures"]["table_error"]
    assert figure["value"] == pytest.approx(sum(errors.values()) / 3, abs=1e-9)
    assert figure["largest"] == pytest.approx(errors[worst], abs=1e-9)
    assert figure["largest_columns"] == [names[place] for place in worst]
    page = (release.folder / "private" / "internal.html").read_text("utf-8")
    assert f"at most, in the table of {names[worst[0]]} and {names[worst[1]]}." in page
