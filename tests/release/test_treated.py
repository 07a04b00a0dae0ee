"""Released numbers and dates that are rounded or put in bands: what is written, measured and verified."""

from __future__ import annotations

import csv
import datetime
import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import write_csv

import sfumato as sf
from sfumato.errors import DataError, SfumatoError
from sfumato.methods.apply import apply_plan

ROWS = 240


def rounded(text: str, step: str) -> str:
    """The nearest multiple by exact decimals, halves away from zero, with as many decimals as the step."""
    times = (Decimal(text) / Decimal(step)).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    return str(abs(times * Decimal(step)) if times == 0 else times * Decimal(step))


def band(text: str, edges: Sequence[int]) -> str:
    value = Decimal(text)
    if value < edges[0]:
        return f"<{edges[0]}"
    for low, high in itertools.pairwise(edges):
        if low <= value < high:
            return f"[{low}, {high})"
    return f">={edges[-1]}"


def month(text: str) -> str:
    return datetime.datetime.fromisoformat(text).strftime("%Y-%m")


def quarter(text: str) -> str:
    day = datetime.datetime.fromisoformat(text)
    return f"{day.year}-Q{(day.month - 1) // 3 + 1}"


def wages(rng: random.Random, number: int) -> str:
    return "" if number % 40 == 7 else repr(round(rng.lognormvariate(2.4, 0.5), 12))


def incomes(rng: random.Random, number: int) -> str:
    return f"{rng.randint(-300, 7000) + number / 1000:.3f}"


def times(rng: random.Random, number: int) -> str:
    start = datetime.datetime(2012, 1, 1)
    return (start + datetime.timedelta(seconds=rng.randrange(70_000_000))).isoformat(sep=" ")


CASES: dict[str, tuple[Callable[..., str], dict[str, Any], Callable[[str], str]]] = {
    "half": (wages, {"round": 0.5}, lambda text: rounded(text, "0.5")),
    "tenth": (wages, {"round": 0.1}, lambda text: rounded(text, "0.1")),
    "hundreds": (incomes, {"round": 100}, lambda text: rounded(text, "100")),
    "bands": (incomes, {"bands": [0, 1000, 2000, 5000]}, lambda text: band(text, [0, 1000, 2000, 5000])),
    "month": (times, {"round": "month"}, month),
    "quarter": (times, {"round": "quarter"}, quarter),
    "year": (times, {"round": "year"}, lambda text: text[:4]),
    "decade": (times, {"round": "decade"}, lambda text: f"{text[:3]}0s"),
}


def write(folder: Path, made: Callable[..., str], rows: int = ROWS) -> Path:
    rng = random.Random(3)
    cells: list[list[Any]] = [["age", "sex", "x"]]
    cells += [[rng.randint(20, 40), rng.choice("FM"), made(rng, number)] for number in range(rows)]
    return write_csv(folder / "t.csv", cells)


def study_of(path: Path, x: Mapping[str, Any], **sections: Any) -> sf.Study:
    columns = {
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5, 10]}},
        "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "x": dict(x),
    }
    settings = {
        "policy": {"l": 1, "t": 1.0, "uniques": 1.0, "identifying": 1.0, "reason": "made up for a test"},
        **sections,
    }
    return sf.Study(data={"path": str(path), "missing": "category"}, columns=columns, **settings)


def best(front: sf.Front, k: int = 3) -> int:
    return min((p for p in front.points if p.values["k"] >= k), key=lambda p: p.loss).id


def published(study: sf.Study, folder: Path, k: int = 3) -> Any:
    front = sf.search(study)
    return sf.publish(sf.pick(front, point=best(front, k)), folder, state=folder.parent / "state")


def column(path: Path, name: str = "x") -> Counter[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return Counter(row[name] for row in csv.DictReader(file))


@pytest.mark.parametrize("role", ["sensitive", "other"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_written_is_what_was_declared(tmp_path: Path, case: str, role: str) -> None:
    made, settings, expected = CASES[case]
    path = write(tmp_path, made)
    release = published(study_of(path, {"role": role, **settings}), tmp_path / "out")
    meant = Counter(expected(text) if text else "" for text in column(path).elements())
    assert column(release.data) == meant
    verification = sf.verify(tmp_path / "out", source=str(path))
    assert verification.differences == ()
    entry = next(one for one in release.manifest["dictionary"]["columns"] if one["name"] == "x")
    assert entry["done"] == ("banded" if "bands" in settings else "rounded")
    assert "Unchanged" not in entry["words"]
    assert "unchanged" not in entry["meaning"]


@pytest.mark.parametrize("treated", [{}, {"round": 1000}])
def test_a_value_far_out_is_warned_of_in_words_that_hold_for_rounded_ones(
    tmp_path: Path, treated: dict[str, Any]
) -> None:
    path = write(tmp_path, lambda rng, number: str(9_000_000 if number == 7 else rng.randint(500, 3000)))
    (warning,) = published(study_of(path, {"role": "other", **treated}), tmp_path / "out", k=60).warnings
    assert warning.startswith("x is released with a largest value that is more than 100 times")
    assert "unchanged" not in warning


@pytest.mark.long
@pytest.mark.parametrize("system", ["lattice", "cuts", "local", "cells"])
def test_every_method_releases_treated_values(tmp_path: Path, system: str) -> None:
    """Both treatments, of a sensitive column and of a kept one, by each of the four methods and for a new table."""
    rng = random.Random(8)
    rows: list[list[Any]] = [["age", "sex", "wage", "hours"]]
    rows += [[rng.randint(20, 29), rng.choice("FM"), incomes(rng, n), f"{rng.random() * 60:.4f}"] for n in range(150)]
    path, later = write_csv(tmp_path / "t.csv", rows), write_csv(tmp_path / "later.csv", [rows[0], *rows[20:]])
    edges = [0, 1000, 3000]
    columns = {
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "interval", "widths": [5]}},
        "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "wage": {"role": "sensitive", "bands": edges},
        "hours": {"role": "other", "round": 20},
    }
    sections: dict[str, Any] = {
        "search": {"system": system},
        "policy": {"uniques": 1.0, "t": 1.0, "l": 1, "reason": "made up for a test"},
    }
    if system in ("local", "cells"):
        sections = {system: {"k": [3]}, "policy": sections["policy"]}
    study = sf.Study(data={"path": str(path)}, columns=columns, **sections)
    front = sf.search(study)
    accept = dict.fromkeys(("k", "raw"), "made up for a test")
    release = sf.publish(sf.pick(front, point=best(front)), tmp_path / "out", state=tmp_path / "state", accept=accept)
    if not release.manifest["suppressed"]:
        assert column(release.data, "wage") == Counter(band(row[2], edges) for row in rows[1:])
        assert column(release.data, "hours") == Counter(rounded(row[3], "20") for row in rows[1:])
    assert set(column(release.data, "wage")) <= {"<0", "[0, 1000)", "[1000, 3000)", ">=3000"}
    assert sf.verify(tmp_path / "out", source=str(path)).differences == ()
    if system == "cells":
        return  # its blanks are of its own records
    again = apply_plan(
        tmp_path / "out", str(later), tmp_path / "later", state=tmp_path / "state2", accept=accept, unseen="star"
    )
    assert set(column(again.data, "wage")) <= {"<0", "[0, 1000)", "[1000, 3000)", ">=3000"}
    assert all(int(hours) % 20 == 0 for hours in column(again.data, "hours"))
    assert sf.verify(tmp_path / "later", source=str(later)).differences == ()


def test_a_released_value_that_was_exchanged_is_found(tmp_path: Path) -> None:
    """Another multiple of the step in one row: the rows are not those of the source rounded again."""
    path = write(tmp_path, incomes)
    release = published(study_of(path, {"role": "other", "round": 100}), tmp_path / "out")
    lines = release.data.read_text().splitlines()
    first, _, value = lines[1].rpartition(",")
    release.data.write_text("\n".join([lines[0], f"{first},{int(value) + 100}", *lines[2:]]) + "\n")
    found = " ".join(str(one.what) for one in sf.verify(tmp_path / "out", source=str(path)).differences)
    assert "rows differ from the source" in found


def test_values_that_cannot_be_treated_are_counted_and_not_shown(tmp_path: Path) -> None:
    rows = [["age", "x"], [30, "12.5"], [31, "secret"], [31, "9,5"], [30, "7"]]
    path = write_csv(tmp_path / "t.csv", rows)
    columns = {"age": {"role": "quasi_identifier"}, "x": {"role": "sensitive", "round": 1}}
    study = sf.Study(data={"path": str(path)}, columns=columns)
    for act in (study.table, lambda: sf.audit(study)):
        with pytest.raises(DataError) as caught:
            act()
        assert "2 values of x cannot be treated" in caught.value.what
        assert "secret" not in str(caught.value)
        assert "9,5" not in str(caught.value)
    dated = sf.Study(data={"path": str(path)}, columns=columns | {"x": {"role": "sensitive", "round": "month"}})
    with pytest.raises(DataError, match="4 values of x"):
        dated.table()


def test_a_value_that_becomes_a_missing_code_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [["age", "x"], [30, "0.2"], [31, "9.4"], [31, "0"]])
    columns = {"age": {"role": "quasi_identifier"}, "x": {"role": "sensitive", "round": 1}}
    study = sf.Study(data={"path": str(path), "na": ["0"], "missing": "category"}, columns=columns)
    with pytest.raises(DataError, match="1 value of x would be released as a code"):
        study.table()


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"role": "quasi_identifier", "round": 5}, "does not read round"),
        ({"role": "sensitive", "round": 5, "bands": [1.0, 2.0]}, "either round or bands"),
        ({"role": "sensitive", "bands": [2.0, 1.0]}, "rising order"),
        ({"role": "sensitive", "round": 0}, "not valid"),
        ({"role": "sensitive", "round": "week"}, "not valid"),
        ({"role": "identifier", "bands": [2.0]}, "does not read bands"),
    ],
)
def test_what_cannot_be_meant_is_refused(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(SfumatoError) as caught:
        sf.Study(data={"path": "t.csv"}, columns={"x": declared})
    assert said in f"{caught.value.what} {caught.value.expected}"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_tables_in_memory(tmp_path: Path, kind: str) -> None:
    """Typed numbers and dates; `apply` gives the same kind of table with treated columns."""
    import pyarrow

    rng = random.Random(4)
    wage = [None if n % 30 == 3 else rng.random() * 50 for n in range(120)]
    paid = [rng.randint(0, 4000) for _ in range(120)]
    day = [datetime.date(2020, 1, 1) + datetime.timedelta(days=rng.randrange(700)) for _ in range(120)]
    plain = pyarrow.table({"age": [20 + n % 7 for n in range(120)], "wage": wage, "paid": paid, "day": day})
    table = {"pandas": plain.to_pandas, "pyarrow": lambda: plain}.get(
        kind, lambda: __import__("polars").from_arrow(plain)
    )()
    columns = {
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "wage": {"role": "sensitive", "round": 0.5},
        "paid": {"role": "other", "bands": [1000, 3000]},
        "day": {"role": "other", "round": "quarter"},
    }
    study = sf.Study(
        table,
        columns=columns,
        missing="category",
        policy={"l": 1, "t": 1.0, "uniques": 1.0, "identifying": 0.5, "reason": "made up for a test"},
    )
    choice = sf.pick(sf.search(study), point=0)
    applied = pyarrow.table(choice.apply()) if kind != "pandas" else pyarrow.Table.from_pandas(choice.apply())
    meant = [None if value is None else float(rounded(repr(value), "0.5")) for value in wage]
    assert applied.column("wage").to_pylist() == meant
    assert applied.column("paid").to_pylist() == [band(str(value), [1000, 3000]) for value in paid]
    assert applied.column("day").to_pylist() == [quarter(value.isoformat()) for value in day]
    release = sf.publish(choice, tmp_path / "out", state=tmp_path / "state", accept={"raw": "made up for a test"})
    assert sf.verify(tmp_path / "out", source=table).differences == ()
    assert release.manifest["whole"]["own_values"].get("day") is None
