"""Numbers and characters that a run file cannot sensibly hold are refused when they are given, and nothing is written
that cannot be read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import InputError, SfumatoError
from sfumato.web.api.open import open_table
from sfumato.web.api.shelf import study_of
from sfumato.web.api.study import put
from sfumato.web.workspace import Places, version_of

Capture = pytest.CaptureFixture[str]
BASE = """version = 1
[data]
path = "t.csv"
[columns]
age = { role = "quasi_identifier", hierarchy = { build = "flat" } }
sex = { role = "quasi_identifier", hierarchy = { build = "flat" } }
ill = { role = "sensitive" }
"""
ROWS = "age,sex,ill\n" + "".join(f"{20 + i % 3},{'FM'[i % 2]},{'xyz'[i % 3]}\n" for i in range(60))
SEARCHES = {
    "constraint -inf": "constraints = { k = -inf }",
    "constraint inf": "constraints = { k = inf }",
    "constraint nan": "constraints = { k = nan }",
    "constraint nan, cuts": 'system = "cuts"\nconstraints = { k = nan }',
    "constraint huge": "constraints = { k = 1e308 }",
    "epsilon nan": "epsilon = [nan, 1]",
    "epsilon inf": "epsilon = [inf, inf]",
    "epsilon below 0": 'system = "cuts"\nepsilon = [-1, 1]',
    "epsilon tiny": "epsilon = [1e-320, 1]",
    "weight nan": "weights = { age = nan }",
    "weight inf": "weights = { age = inf }",
    "weight -1": "weights = { age = -1 }",
    "weight 1e308": "weights = { age = 1e308, sex = 1e308 }",
    "weights 0": "weights = { age = 0, sex = 0 }",
    "weights 0, cuts": 'system = "cuts"\nweights = { age = 0, sex = 0 }',
    "population": 'system = "cuts"\npopulation = 100000000000',
    "threads": "threads = 100000000",
    "seed": f"seed = {'9' * 400}",
}
OTHERS = {
    "recursive_l c nan": "[measures]\nrecursive_l = { c = nan }",
    "recursive_l c inf": "[measures]\nrecursive_l = { c = inf }",
    "recursive_c l huge": "[measures]\nrecursive_c = { l = 1e308 }",
    "recursive_c l inf": "[measures]\nrecursive_c = { l = inf }",
    "engine threads": "[engine_options]\nthreads = 100000000",
    "delta nan": "[channel]\ndelta = nan",
    "privacy nan": "[channel]\nprivacy = [nan]",
    "policy t nan": "[policy]\nt = nan",
}
CASES = {name: f"[search]\n{text}\n" for name, text in SEARCHES.items()} | OTHERS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "t.csv").write_text(ROWS, "utf-8")
    (tmp_path / "run.toml").write_text(BASE, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_a_run_file_with_an_absurd_number_is_refused(folder: Path, name: str, capsys: Capture) -> None:
    (folder / "run.toml").write_text(BASE + CASES[name], "utf-8")
    assert run(["search", "run.toml", "-o", "front", "--seconds", "20"]) == 2
    said = capsys.readouterr().err
    assert "expected:" in said
    assert "Warning" not in said
    assert not (folder / "front").exists()


def test_more_members_than_a_census_can_hold(folder: Path, capsys: Capture) -> None:
    assert run(["sample", "census", "--groups", "--records", "20000", "-o", "census"]) == 2
    assert "cannot be laid out" in capsys.readouterr().err


def test_a_census_with_members_is_one_for_groups(folder: Path, capsys: Capture) -> None:
    assert run(["sample", "census", "--members", "20", "-o", "census"]) == 2
    assert "--groups" in capsys.readouterr().err
    assert not (folder / "census").exists()


def test_a_first_row_beyond_the_sample(folder: Path, capsys: Capture) -> None:
    (folder / "t.csv").write_text("age,sex,ill\n" + "x" * (3 << 20) + ",1,2\n", "utf-8")
    assert run(["inspect", "t.csv", "-o", "new.toml"]) == 2
    assert "longer than 1 MB" in capsys.readouterr().err


def test_a_key_that_a_recipe_lacks_is_named(folder: Path, capsys: Capture) -> None:
    text = BASE.replace('{ build = "flat" }', '{ build = "breaks", breaks = [1, 2] }', 1)
    (folder / "run.toml").write_text(text, "utf-8")
    assert run(["audit", "--run", "run.toml"]) == 2
    assert 'unknown key "breaks"' in capsys.readouterr().err


def test_an_absurd_baseline_is_refused(folder: Path) -> None:
    (folder / "run.toml").write_text(BASE + CASES["weights 0"], "utf-8")
    assert run(["baselines", "run.toml", "--k", "2"]) == 2


@pytest.mark.parametrize("character", ["\x7f", "\x1b", "\x00", "\x08"])
def test_control_characters_are_refused(folder: Path, character: str, capsys: Capture) -> None:
    written = f'"\\u{ord(character):04x}"'
    (folder / "run.toml").write_text(BASE.replace('path = "t.csv"', f'path = "t.csv"\nna = [{written}]'), "utf-8")
    assert run(["audit", "--run", "run.toml"]) == 2
    assert "control character" in capsys.readouterr().err
    with pytest.raises(InputError, match="control character"):
        sf.Study(data={"path": "t.csv"}, columns={f"a{character}": {"role": "drop"}})


@pytest.mark.parametrize("text", ["\ud800", "a\udcffb"])
def test_lone_surrogates_are_refused(text: str) -> None:
    for settings in ({"data": {"path": "t.csv", "na": [text]}}, {"data": {"path": text}}):
        with pytest.raises(InputError, match="not UTF-8"):
            sf.Study(**settings)


def test_a_separator_may_be_a_control_character(folder: Path) -> None:
    (folder / "t.csv").write_text(ROWS.replace(",", "\x01"), "utf-8")
    (folder / "run.toml").write_text(BASE.replace('"t.csv"', '"t.csv"\nseparator = "\\u0001"'), "utf-8")
    assert run(["search", "run.toml", "-o", "front"]) == 0
    assert sf.load_front("front").study.data.separator == "\x01"


def test_a_table_with_control_characters_in_its_header(folder: Path, capsys: Capture) -> None:
    (folder / "t.csv").write_text(ROWS.replace("sex", "s\x7fex"), "utf-8")
    assert run(["inspect", "t.csv", "-o", "new.toml"]) == 2
    assert "column 2" in capsys.readouterr().err
    assert not (folder / "new.toml").exists()
    assert run(["inspect", "t.csv", "--names", "age,sex,ill", "-o", "new.toml"]) == 0
    assert sf.read("new.toml").data.names == ("age", "sex", "ill")


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 2000 + "]" * 2000, "version = " + "1" * 5000, "a" + ".a" * 50_000 + " = 1"]
)
def test_absurd_run_files_end_in_a_sentence(folder: Path, text: str, capsys: Capture) -> None:
    (folder / "run.toml").write_text(text, "utf-8")
    assert run(["audit", "--run", "run.toml"]) == 2
    assert "internal error" not in capsys.readouterr().err


def test_a_front_that_cannot_be_read_back_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    front = sf.search(sf.read("run.toml"))
    monkeypatch.setattr(sf.Study, "as_toml", lambda self: "version = NaN\n")
    with pytest.raises(SfumatoError):
        front.save("front")
    assert sorted(path.name for path in folder.iterdir()) == ["run.toml", "t.csv"]


def test_a_run_file_that_cannot_be_read_back_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.auditing.inspect import Inspection

    monkeypatch.setattr(Inspection, "run_file", lambda *_, **__: "version = NaN\n")
    before = (folder / "run.toml").read_text("utf-8")
    assert run(["inspect", "t.csv", "-o", "run.toml", "--force"]) == 1
    assert (folder / "run.toml").read_text("utf-8") == before


CHANGES: list[dict[str, Any]] = [
    {"search": {"constraints": {"k": float("nan")}}},
    {"search": {"constraints": {"k": float("inf")}}},
    {"search": {"epsilon": [float("nan"), -1.0]}},
    {"search": {"weights": {"age": float("nan")}}},
    {"measures": {"recursive_l": {"c": float("inf")}}},
    {"measures": {"recursive_c": {"l": 1e308}}},
    {"data": {"path": "t.csv", "na": ["\x7f"]}},
    {"data": {"path": "t.csv", "na": ["\ud800"]}},
    {"data": {"path": "t.csv", "encoding": "punycode"}},
]


@pytest.mark.parametrize("changes", CHANGES, ids=[str(number) for number in range(len(CHANGES))])
def test_the_workbench_keeps_a_study_that_is_changed_absurdly(folder: Path, changes: dict[str, Any]) -> None:
    places = Places(folder)
    places.prepare()
    study = open_table(places, "t.csv", {})["id"]
    before = (places.study(study) / "run.toml").read_bytes()
    with pytest.raises(InputError):
        put(places, study, version_of(places.study(study)), **changes)
    assert (places.study(study) / "run.toml").read_bytes() == before
    assert study_of(places, study).columns
