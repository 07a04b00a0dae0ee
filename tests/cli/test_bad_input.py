"""Bad input: exit 2, a sentence with a remedy, nothing written, no sensitive value printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.cli import run

Capture = pytest.CaptureFixture[str]
COLUMNS = 'age = { role = "quasi_identifier", hierarchy = "age.csv" }\nill = { role = "sensitive" }\n'
TREE = "level0,level1,level2\n20,20s,*\n21,20s,*\n30,30s,*\n"
GOOD = "age,ill\n20,flu\n21,flu\n30,sEcReT\n"


def table(text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "t.csv").write_text(text, encoding="utf-8") and None


def tree(text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "age.csv").write_text(text, encoding="utf-8") and None


def raw(data: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / "t.csv").write_bytes(data) and None


def run_file(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / "run.toml").read_text(encoding="utf-8")
        assert old in text
        (folder / "run.toml").write_text(text.replace(old, new), encoding="utf-8")

    return change


def folder_instead(folder: Path) -> None:
    (folder / "t.csv").unlink()
    (folder / "t.csv").mkdir()


def both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda folder: [change(folder) for change in changes] and None


DROP = run_file("[data]", '[data]\nmissing = "drop"')
CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty file": (table(""), "is empty"),
    "blank file": (table("\n\n  \n"), "is empty"),
    "header only": (table("age,ill\n"), "a header and no rows"),
    "ragged rows": (table(GOOD + "20\n21,flu,sEcReT\n"), "2 rows do not have 2 fields; the first is line 5"),
    "duplicate names": (table("age,age\n20,1\n21,2\n"), "1 column name is repeated: age"),
    "name missing": (table("age,\n20,1\n21,2\n"), "column 2 has no name"),
    "open quote": (table('age,ill\n20,"sEcReT\n21,flu\n'), "cannot be read"),
    "role for an unknown column": (run_file("[columns]", "[columns]\nsex = { role = 'drop' }"), "column that the table lacks"),
    "column without a role": (run_file('ill = { role = "sensitive" }\n', ""), "1 column has no role: ill"),
    "no quasi-identifier": (run_file('role = "quasi_identifier", hierarchy = "age.csv"', 'role = "other"'), "no column is a quasi_identifier"),
    "hierarchy misses values": (tree("level0,level1\n20,*\n21,*\n"), "lacks 1 value of the data: '30'; the first is in row 3"),
    "duplicate leaves": (tree(TREE + "20,20s,*\n"), "1 duplicate leaf"),
    "not nested": (tree("20,a,p,*\n21,a,q,*\n30,b,q,*\n"), "not nested"),
    "several roots": (tree("20,a\n21,a\n30,b\n"), "2 roots"),
    "hierarchy is no file": (run_file("age.csv", "nowhere.csv"), "nowhere.csv is not there"),
    "value the hierarchy lacks": (table(GOOD + "99,flu\n"), "lacks 1 value of the data: '99'; the first is in row 4"),
    "all rows missing": (both(DROP, table("age,ill\n,flu\n20,\n21,?\n")), "all 3 rows have a missing value"),
    "one row": (table("age,ill\n20,flu\n"), "the table has one row"),
    "one complete row": (both(DROP, table("age,ill\n20,flu\n21,\n")), "one row that is complete"),
    "not UTF-8": (raw("age,ill\n20,Zoë\n21,flu\n".encode("latin-1")), "is not UTF-8"),
    "folder": (folder_instead, "is a folder"),
    "binary file": (raw(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 20), "not a text file"),
    "fake parquet": (run_file('na = ["?"]', 'na = ["?"]\nformat = "parquet"'), "not a Parquet file"),
    "no file": (run_file("t.csv", "tt.csv"), "there is no file"),
    "typo in a key": (run_file("[data]", '[data]\nmising = "drop"'), 'unknown key "mising" in [data]'),
    "typo in a column key": (run_file('role = "sensitive"', 'rolle = "sensitive"'), 'unknown key "rolle"'),
    "typo in a section": (run_file("[data]", "[date]"), 'unknown key "date"'),
    "typo in a recipe": (run_file('"age.csv"', '{ build = "flat", bin = 3 }'), 'unknown key "bin" in [columns.age.hierarchy]'),
    "unknown role": (run_file('"sensitive"', '"sensitiv"'), "columns.ill.role = 'sensitiv' is not valid"),
    "unknown version": (run_file("version = 1", "version = 2"), "version"),
    "not TOML": (run_file("[data]", "[data"), "is not TOML"),
    "unknown measure": (run_file("[columns]", "[measures]\nkk = {}\n[columns]"), 'unknown measure "kk"'),
    "unknown parameter": (run_file("[columns]", "[measures]\nk = { x = 1 }\n[columns]"), 'k has no parameter "x"'),
    "unknown encoding": (run_file("[data]", '[data]\nencoding = "utf-88"'), 'unknown encoding "utf-88"'),
    "unknown build": (run_file('"age.csv"', '{ build = "intervall" }'), "columns.age.hierarchy"),
    "two labels": (
        lambda folder: [f(folder) for f in (table("age,ill,b\n20,1,1\n21,1,1\n"), tree(TREE), run_file('"sensitive"', '"label"'),
                                            run_file("[columns]", '[columns]\nb = { role = "label" }'))] and None,
        "2 columns have the role label",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case: str, tmp_path: Path, capsys: Capture) -> None:
    table(GOOD)(tmp_path)
    tree(TREE)(tmp_path)
    text = f'version = 1\n[data]\npath = "t.csv"\nna = ["?"]\n[columns]\n{COLUMNS}'
    (tmp_path / "run.toml").write_text(text, encoding="utf-8")
    spoil, says = CASES[case]
    spoil(tmp_path)
    before = sorted(tmp_path.iterdir())
    page = tmp_path / "out.html"
    code = run(["audit", "--run", str(tmp_path / "run.toml"), "--html", str(page), "--json"])
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert code == 2, error
    assert says in error["what"]
    assert error["expected"]
    assert "sEcReT" not in printed.out + printed.err
    assert sorted(tmp_path.iterdir()) == before


def test_the_good_case_is_good(tmp_path: Path, capsys: Capture) -> None:
    table(GOOD)(tmp_path)
    tree(TREE)(tmp_path)
    (tmp_path / "run.toml").write_text(f'version = 1\n[data]\npath = "t.csv"\n[columns]\n{COLUMNS}', encoding="utf-8")
    assert run(["audit", "--run", str(tmp_path / "run.toml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 3


def test_an_unknown_key_names_the_nearest(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "run.toml").write_text(
        'version = 1\n[data]\npath = "t"\nmising = "drop"\n[columns]\n', encoding="utf-8"
    )
    assert run(["audit", "--run", str(tmp_path / "run.toml"), "--json"]) == 2
    assert 'did you mean "missing"?' in json.loads(capsys.readouterr().out)["error"]["try"]


def test_the_hierarchy_of_a_sensitive_column_is_not_quoted(tmp_path: Path, capsys: Capture) -> None:
    table(GOOD)(tmp_path)
    (tmp_path / "ill.csv").write_text("flu,*\n", encoding="utf-8")
    columns = 'age = { role = "quasi_identifier" }\nill = { role = "sensitive", distance = "ordered", hierarchy = "ill.csv" }\n'
    for recipe in ('"ill.csv"', '{ build = "interval" }'):
        text = (
            f'version = 1\n[data]\npath = "t.csv"\n[columns]\n{columns.replace(chr(34) + "ill.csv" + chr(34), recipe)}'
        )
        (tmp_path / "run.toml").write_text(text, encoding="utf-8")
        assert run(["audit", "--run", str(tmp_path / "run.toml")]) == 2
        printed = capsys.readouterr()
        assert "sEcReT" not in printed.err + printed.out
        assert "hierarchy of ill" in printed.err


@pytest.mark.parametrize("name", ["", "header.csv", "binary.bin", "folder"])
def test_inspect_refuses_what_is_no_table(tmp_path: Path, capsys: Capture, name: str) -> None:
    (tmp_path / "header.csv").write_text("a,b\n", encoding="utf-8")
    (tmp_path / "binary.bin").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "folder").mkdir()
    target = tmp_path / "run.toml"
    assert run(["inspect", str(tmp_path / name), "-o", str(target), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["what"]
    assert not target.exists()
