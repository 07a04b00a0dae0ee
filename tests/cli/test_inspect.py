"""`sfumato inspect`: what nobody has decided stays open, and what singles people out is looked for everywhere."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import write_csv

import sfumato as sf
from sfumato.auditing import inspect
from sfumato.cli import run
from sfumato.errors import InputError, StudyError
from sfumato.study import read

Capture = pytest.CaptureFixture[str]

# The columns of the 2019 file of the NIST benchmark, and of the UK census teaching file, with their numbers of codes.
NIST = {"PUMA": 20, "AGEP": 96, "SEX": 2, "MSP": 7, "HISP": 5, "RAC1P": 9, "NOC": 6, "NPF": 8, "HOUSING_TYPE": 3}
NIST |= {"OWN_RENT": 3, "DENSITY": 20, "INDP": 260, "INDP_CAT": 19, "EDU": 12, "PINCP": 2_700, "PINCP_DECILE": 11}
NIST |= {"POVPIP": 500, "DVET": 7, "DREM": 3, "DPHY": 3, "DEYE": 2, "DEAR": 2, "PWGTP": 300, "WGTP": 300}
UK = {"Region": 10, "Residence Type": 2, "Family Composition": 7, "Population Base": 3, "Sex": 2, "Age": 8}
UK |= {"Marital Status": 5, "Student": 2, "Country of Birth": 3, "Health": 6, "Ethnic Group": 6, "Religion": 10}
UK |= {"Economic Activity": 10, "Occupation": 10, "Industry": 13, "Hours worked per week": 5}
UK |= {"Approximated Social Grade": 5}


def table(folder: Path, columns: dict[str, int], rows: int = 3_000, missing: str = "-9") -> Path:
    """Codes at random; in a third of the columns one record in five has no value but a code."""
    chance = random.Random(3)
    lines: list[list[Any]] = [list(columns)]
    for _ in range(rows):
        cells: list[Any] = [chance.randint(1, most) for most in columns.values()]
        lines.append([missing if i % 3 == 0 and chance.random() < 0.2 else cell for i, cell in enumerate(cells)])
    return write_csv(folder / "t.csv", lines)


def inspected(capsys: Capture, path: Path, *words: str) -> dict[str, Any]:
    assert run(["inspect", str(path), "-o", str(path.with_name("run.toml")), "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("columns", [NIST, UK], ids=["NIST", "UK"])
def test_no_column_of_a_census_is_called_harmless(tmp_path: Path, capsys: Capture, columns: dict[str, int]) -> None:
    found = inspected(capsys, table(tmp_path, columns))
    roles = {name: about["suggested_role"] for name, about in found["columns"].items()}
    assert [name for name, role in roles.items() if role == "other"] == []
    for name in ("AGEP", "RAC1P", "HISP", "MSP", "Age", "Ethnic Group", "Occupation"):
        assert roles.get(name, "quasi_identifier") == "quasi_identifier"
    assert roles.get("Health", "sensitive") == "sensitive"
    assert roles.get("PINCP", "sensitive") in ("sensitive", "quasi_identifier")


def test_a_column_that_nothing_is_known_about_stops_everything(tmp_path: Path, capsys: Capture) -> None:
    path = table(tmp_path, {"age": 60, "LT3": 5, "Q10A": 7, "sex": 2})
    found = inspected(capsys, path)
    written = (tmp_path / "run.toml").read_text("utf-8")
    for words in (["audit", "--run"], ["search"], ["predict"]):
        assert run([*words, str(tmp_path / "run.toml")]) == 2
        said = capsys.readouterr().err
        assert "2 columns have no role: LT3, Q10A" in said
    with pytest.raises(StudyError, match="have no role"):
        sf.search(read(tmp_path / "run.toml"))
    assert found["undecided"] == ["LT3", "Q10A"]
    assert found["columns"]["LT3"]["suggested_role"] is None
    assert "2 columns have no role yet" in written
    # Taking the mark away is not yet a decision.
    (tmp_path / "run.toml").write_text(written.replace("# LT3 =", "LT3 ="), "utf-8")
    assert run(["audit", "--run", str(tmp_path / "run.toml")]) == 2
    assert "columns.LT3.role = '' is not valid" in capsys.readouterr().err
    decided = written.replace('# LT3 = { role = "" }', 'LT3 = { role = "drop" }')
    decided = decided.replace('# Q10A = { role = "" }', 'Q10A = { role = "quasi_identifier" }')
    (tmp_path / "run.toml").write_text(decided, "utf-8")
    assert run(["audit", "--run", str(tmp_path / "run.toml")]) == 0


def test_what_may_mean_missing_is_named_and_not_applied(tmp_path: Path, capsys: Capture) -> None:
    path = table(tmp_path, {"age": 60, "sex": 2, "region": 9, "health": 5})
    found = inspected(capsys, path)
    assert {n: about["missing_candidates"] for n, about in found["columns"].items()} == {
        "age": ["-9"],
        "sex": [],
        "region": [],
        "health": ["-9"],
    }
    written = (tmp_path / "run.toml").read_text("utf-8")
    assert '#   "-9" in age, health' in written
    assert read(tmp_path / "run.toml").data.na == ()
    assert run(["inspect", str(path), "-o", str(tmp_path / "again.toml")]) == 0
    said = capsys.readouterr()
    assert "(has -9?)" in said.out
    assert "may be a code for a missing value" in said.err


def unique(rows: Sequence[Sequence[Any]], places: Sequence[int]) -> float:
    counts = Counter(tuple(row[place] for place in places) for row in rows)
    return sum(count == 1 for count in counts.values()) / len(rows)


def singling_table(folder: Path, rows: int) -> tuple[Path, list[list[str]]]:
    """Age and sex tell few apart; columns that no name says anything about tell nearly everybody apart."""
    chance = random.Random(5)
    widths = {"age": 70, "sex": 3, "v2": 40, "v3": 2, "v4": 90, "v5": 5, "v6": 4}
    cells = [[str(chance.randrange(most)) for most in widths.values()] for _ in range(rows)]
    return write_csv(folder / "t.csv", [list(widths), *cells]), cells


def best(cells: list[list[str]], size: int) -> list[tuple[float, tuple[int, ...]]]:
    sets = itertools.combinations(range(len(cells[0])), size)
    return sorted((-unique(cells, places), places) for places in sets)[:3]


def test_sets_that_single_out_are_looked_for_over_all_columns(tmp_path: Path) -> None:
    path, cells = singling_table(tmp_path, 2_500)
    found = sf.inspect(str(path))
    names = [column.name for column in found.columns]
    for size in (1, 2, 3):
        expected = {tuple(names[place] for place in places): -share for share, places in best(cells, size)}
        ours = {c.columns: c.unique for c in found.combinations if len(c.columns) == size}
        assert ours == pytest.approx(expected)
    assert found.rows_searched == 2_500
    assert found.everything.unique_share == pytest.approx(unique(cells, range(7)))
    assert found.everything.columns == 7


def test_large_tables_are_searched_in_part_and_counted_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(inspect, "WORK", 21 * 2_000)
    path, cells = singling_table(tmp_path, 9_000)
    found = sf.inspect(str(path))
    assert found.rows_searched < 3_000
    names = [column.name for column in found.columns]
    for combination in found.combinations:
        places = [names.index(name) for name in combination.columns]
        assert combination.unique == pytest.approx(unique(cells, places)), combination.columns
    assert run(["inspect", str(path), "-o", str(tmp_path / "run.toml")]) == 0
    said = capsys.readouterr()
    assert f"in {found.rows_searched:,} rows; their figures are for all rows" in said.err


def test_columns_that_are_never_released_single_nobody_out(tmp_path: Path) -> None:
    rows = [[f"p{i}", i % 30, i % 2, 1] for i in range(600)]
    path = write_csv(tmp_path / "t.csv", [["patient id", "age", "sex", "RT"], *rows])
    found = sf.inspect(str(path))
    assert {name for c in found.combinations for name in c.columns} == {"age", "sex"}
    assert found.everything.columns == 2
    assert found.everything.unique == 0


def test_one_of_a_thing_is_called_so(tmp_path: Path, capsys: Capture, write: Callable[[str, str], Path]) -> None:
    path = write("t.csv", "age\n" + "".join(f"{i % 7}\n" for i in range(50)))
    assert run(["inspect", str(path), "-o", str(tmp_path / "run.toml")]) == 0
    printed = capsys.readouterr().out
    assert "50 rows, 1 column\n" in printed
    assert "Small sets of columns that make records unique\n" in printed


def test_names_of_columns_are_only_names(tmp_path: Path) -> None:
    """A header cannot give itself a role: whatever a name holds, it stays within its line of the run file."""
    names = ['x"\ny = { role = "other" }', '# z = { role = "other" }', 'a"b', "é", "v'v", "[w]", "age"]
    path = write_csv(
        tmp_path / "t.csv", [names, *([i % 7, i % 5, i % 3, i % 4, i % 2, i % 6, i % 30] for i in range(90))]
    )
    found = sf.inspect(str(path))
    (tmp_path / "run.toml").write_text(found.run_file(str(path)), "utf-8")
    study = read(tmp_path / "run.toml")
    assert list(study.columns) == ["age"]
    assert len(found.undecided) == 6
    with pytest.raises(StudyError, match="6 columns have no role"):
        study.source()


def test_of_a_wide_table_a_few_columns_are_kept(tmp_path: Path, capsys: Capture) -> None:
    """The decision is in the run file, column by column; what is not kept singles nobody out."""
    path = table(tmp_path, NIST, rows=200)
    seen = inspected(capsys, path, "--keep", "SEX, AGEP")
    assert seen["all_columns"]["columns"] == 2
    assert seen["undecided"] == []
    roles = {name: settings.role for name, settings in read(tmp_path / "run.toml").columns.items()}
    assert {name for name, role in roles.items() if role != "drop"} == {"SEX", "AGEP"}
    assert set(roles) == set(NIST)
    assert '"-9" in ' not in (tmp_path / "run.toml").read_text("utf-8")  # PUMA has it, and is left out
    assert run(["inspect", str(path), "-o", str(tmp_path / "two.toml"), "--keep", "SEX,AGEP"]) == 0
    out = capsys.readouterr().out
    assert f"{len(NIST)} columns, {len(NIST) - 2} of them left out" in out
    assert "PUMA" not in out
    assert run(["inspect", str(path), "-o", str(tmp_path / "three.toml"), "--keep", "SEXX"]) == 2
    assert 'did you mean "SEX"' in capsys.readouterr().err
    assert not (tmp_path / "three.toml").exists()


def test_columns_to_keep_are_whole_names(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [["a", "ab"], [1, 2], [2, 3]])
    assert [one.role for one in sf.inspect(path, keep="ab").suggestions] == ["drop", None]
    for nothing in ("", [], [""]):
        with pytest.raises(InputError, match="no columns to keep"):
            sf.inspect(path, keep=nothing)


def test_one_column_has_one_share_of_records_that_it_singles_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 100 incomes 20 are missing and 10 occur twice: 60 of all 100 records have one of their own, not 60 of 80."""
    incomes = ["", *range(20_000, 20_060), *[30_000 + i // 2 for i in range(20)]]
    lines = [f"{incomes[i] if i < len(incomes) else ''},{'fm'[i % 2]}" for i in range(100)]
    (tmp_path / "t.csv").write_text("\n".join(["income,sex", *lines]) + "\n", "utf-8")
    assert run(["inspect", str(tmp_path / "t.csv"), "--output", str(tmp_path / "run.toml")]) == 0
    said = capsys.readouterr().out + (tmp_path / "run.toml").read_text("utf-8")
    assert "singles out 60.0 % of the records" in said
    assert re.search(r"\nincome +60\.0 %", said)
    assert "75.0 %" not in said
