"""The command line, end to end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

import sfumato
from sfumato.cli import COMMANDS, application, run

Write = Callable[[str, str], Path]
Capture = pytest.CaptureFixture[str]


def json_of(capsys: Capture, *arguments: str) -> dict[str, Any]:
    code = run([*arguments, "--json"])
    printed = capsys.readouterr().out
    found: dict[str, Any] = json.loads(printed)
    assert code == 0, found
    return found


@pytest.fixture
def adult_folder(tmp_path: Path) -> Path:
    assert run(["sample", "adult-complete", "-o", str(tmp_path / "adult")]) == 0
    return tmp_path / "adult"


def test_audit_of_the_sample(adult_folder: Path, capsys: Capture) -> None:
    found = json_of(capsys, "audit", "--run", str(adult_folder / "run.toml"))
    assert found["rows"] == 30162
    assert found["classes"] == 12458
    measures = found["measures"]
    assert measures["k"]["value"] == 1
    assert measures["k"]["direction"] == "max"
    assert measures["delta_disclosure"]["value"] is None
    assert {"value", "columns.occupation"} <= set(measures["delta_disclosure"]["infinite"])
    assert set(measures["delta_disclosure"]["columns"]) == {"occupation"}
    assert measures["journalist_risk"]["reason"] == "needs a population table"
    assert measures["distinct_l"]["columns"] == {"occupation": 1.0}
    assert found["columns"]["age"]["risk_contribution"]["uniques"] > 0.2
    assert sum(s * n for s, n in zip(*found["class_sizes"].values(), strict=True)) == 30162


def test_audit_for_people_and_as_a_page(adult_folder: Path, capsys: Capture) -> None:
    page = adult_folder / "audit.html"
    assert run(["audit", "--run", str(adult_folder / "run.toml"), "--html", str(page)]) == 0
    printed = capsys.readouterr()
    assert "30,162 records in 12,458 classes" in printed.out
    assert "Over all 9 columns that are released, 51.4 % of the records are unique" in printed.err
    text = page.read_text(encoding="utf-8")
    assert text.count("Plotly.newPlot(") >= 2
    assert "<script src" not in text
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "http" not in markup
    assert run(["audit", "--run", str(adult_folder / "run.toml"), "--html", str(page)]) == 2
    assert "already exists" in capsys.readouterr().err


def test_audit_of_a_generalized_file(write: Write, capsys: Capture) -> None:
    write(
        "age.csv",
        "level0,level1,level2\n" + "".join(f"{v},{v // 10 * 10}-{v // 10 * 10 + 9},*\n" for v in range(20, 40)),
    )
    raw = write("raw.csv", "age,zip,ill\n" + "".join(f"{20 + i},{i % 2},{'ab'[i % 2]}\n" for i in range(20)))
    run_file = write(
        "run.toml",
        """version = 1
[data]
path = "raw.csv"
[columns]
age = { role = "quasi_identifier", hierarchy = "age.csv" }
zip = { role = "quasi_identifier" }
ill = { role = "sensitive" }
""",
    )
    assert raw.exists()
    rows = ["20-29,0,a"] * 5 + ["20-29,1,b"] * 5 + ["33,0,a"] * 2 + ["*,*,b"] * 3
    released = write("released.csv", "age,zip,ill\n" + "\n".join(rows) + "\n")
    found = json_of(capsys, "audit", "--run", str(run_file), str(released), "--removed", "5")
    assert found["rows"] == 15
    assert found["classes"] == 3
    assert found["suppressed"] == 8
    assert found["measures"]["k"]["value"] == 2
    # ten rows lose 9/19 of age; three starred and five removed ones lose both cells
    assert found["measures"]["general_loss"]["value"] == pytest.approx(10 * 9 / 19 + 8 * 2)
    assert found["columns"]["age"]["generalized"] is True
    top = write("top.csv", "age,zip,ill\n" + "*,*,a\n" * 4)
    found = json_of(capsys, "audit", "--run", str(run_file), str(top))
    assert (found["classes"], found["suppressed"], found["measures"]["k"]["value"]) == (1, 0, 4)


def test_a_released_file_may_lack_identifiers(write: Write, capsys: Capture) -> None:
    write("raw.csv", "id,a\n1,x\n2,x\n")
    run_file = write(
        "run.toml",
        'version = 1\n[data]\npath = "raw.csv"\n[columns]\n'
        'id = { role = "identifier" }\na = { role = "quasi_identifier" }\n',
    )
    released = write("released.csv", "a\nx\nx\nx\n")
    assert json_of(capsys, "audit", "--run", str(run_file), str(released))["rows"] == 3


def test_inspect_writes_a_run_file_that_runs(write: Write, tmp_path: Path, capsys: Capture) -> None:
    rows = [f"{i},{20 + i % 30},{'mf'[i % 2]},{1000 + i % 7},{'?' if i % 9 == 0 else 'flu'}" for i in range(200)]
    path = write("people.csv", "person_id,Age,sex,zip code,disease\n" + "\n".join(rows) + "\n")
    target = tmp_path / "mine.toml"
    found = json_of(capsys, "inspect", str(path), "-o", str(target))
    assert found["rows"] == 200
    roles = {name: column["suggested_role"] for name, column in found["columns"].items()}
    assert roles == {
        "person_id": "identifier",
        "Age": "quasi_identifier",
        "sex": "quasi_identifier",
        "zip code": "quasi_identifier",
        "disease": "sensitive",
    }
    assert found["columns"]["disease"]["na_words"] == ["?"]
    assert found["combinations"]
    text = target.read_text(encoding="utf-8")
    assert '"drop" would leave out 23 of 200 rows' in text
    assert json_of(capsys, "audit", "--run", str(target))["left_out"] == 0
    target.write_text(text.replace('missing = "category"', 'missing = "drop"'), encoding="utf-8")
    assert json_of(capsys, "audit", "--run", str(target))["left_out"] == 23
    assert run(["inspect", str(path), "-o", str(target)]) == 2


def test_inspect_finds_encoding_and_missing_header(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes("39;Zoë;1,5\n41;Ann;2,5\n".encode("latin-1"))
    found = json_of(capsys, "inspect", "t.csv")
    assert list(found["columns"]) == ["column1", "column2", "column3"]
    written = (tmp_path / "run.toml").read_text(encoding="utf-8")
    assert 'encoding = "latin-1"' in written
    assert "header = false" in written
    assert 'decimal = ","' in written
    before = written
    assert run(["inspect", "t.csv"]) == 0
    assert "left as it is" in capsys.readouterr().err
    assert (tmp_path / "run.toml").read_text(encoding="utf-8") == before


def test_hierarchy_build_check_show(write: Write, tmp_path: Path, capsys: Capture) -> None:
    data = write("t.csv", "age,job\n21,clerk\n34,smith\n35,clerk\n58,diver\n")
    target = tmp_path / "age.csv"
    built = json_of(
        capsys,
        "hierarchy",
        "build",
        str(data),
        "-c",
        "age",
        "--kind",
        "interval",
        "--width",
        "10",
        "--width",
        "20",
        "-o",
        str(target),
    )
    assert built["levels"] == [4, 3, 2, 1]
    checked = json_of(capsys, "hierarchy", "check", str(target), "--data", str(data))
    assert checked == {"name": "age", "levels": [4, 3, 2, 1], "height": 3, "root": "*", "covered": True}
    assert run(["hierarchy", "show", str(target), "--data", str(data)]) == 0
    assert "30-39  2" in capsys.readouterr().out
    short = write("short.csv", "level0,level1\n21,*\n34,*\n")
    assert run(["hierarchy", "check", str(short), "--data", str(data), "--column", "age"]) == 2
    assert "lacks 2 values of the data: '35', '58'" in capsys.readouterr().err
    assert (
        run(["hierarchy", "build", str(data), "-c", "job", "--kind", "interval", "-o", str(tmp_path / "job.csv")]) == 2
    )
    assert not (tmp_path / "job.csv").exists()
    for wrong in (
        "--kind breaks --breaks 18,abc",
        "--kind interval --width 0 --width 5",
        "--kind interval --width nan",
    ):
        assert run(f"hierarchy build {data} -c age -o {tmp_path / 'no.csv'} {wrong}".split()) == 2


def test_sensitive_values_are_not_shown_by_hierarchy_commands(write: Write, tmp_path: Path, capsys: Capture) -> None:
    write("t.csv", "a,ill\n1,flu\n2,hiv\n")
    run_file = write(
        "run.toml",
        'version = 1\n[data]\npath = "t.csv"\n[columns]\na = { role = "drop" }\nill = { role = "sensitive" }\n',
    )
    tree = write("ill.csv", "level0,level1\nflu,*\n")
    assert run(["hierarchy", "check", str(tree), "--run", str(run_file), "-c", "ill"]) == 2
    command = f"hierarchy build {tmp_path / 't.csv'} --run {run_file} -c ill --kind interval -o {tmp_path / 'x.csv'}"
    assert run(command.split()) == 2
    printed = capsys.readouterr()
    assert "hiv" not in printed.err + printed.out


def test_measures_are_listed(capsys: Capture) -> None:
    found = json_of(capsys, "measures")
    assert {"k", "weighted_k", "sum_k", "sum_l", "distinct_l", "frequency_l", "entropy_l", "t_closeness"} <= set(found)
    assert {"general_loss", "classification_metric", "discernibility", "arx_loss"} <= set(found)
    assert run(["measures"]) == 0


def test_usage_errors_are_json_too(capsys: Capture) -> None:
    assert run(["audit", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert set(error) == {"what", "expected", "try"}
    assert run(["autid"]) == 2
    assert run(["audit", "--run", "nowhere.toml"]) == 2
    assert "run file nowhere.toml is not there" in capsys.readouterr().err


def test_faults_print_no_records(monkeypatch: pytest.MonkeyPatch, capsys: Capture, adult_folder: Path) -> None:
    def broken(*_: object) -> None:
        raise KeyError("secret value of a person")

    monkeypatch.setattr("sfumato.cli.data.read", broken)
    assert run(["audit", "--run", str(adult_folder / "run.toml")]) == 1
    printed = capsys.readouterr()
    assert "internal error: KeyError" in printed.err
    assert "secret" not in printed.err + printed.out


def test_the_program_itself(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "sfumato", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, sfumato.__version__)
    failed = subprocess.run(
        [sys.executable, "-m", "sfumato", "audit", "--run", "x.toml"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr


def test_help_loads_no_compiler_and_no_database() -> None:
    heavy = ("numba", "duckdb", "pyarrow", "plotly", "numpy")
    code = f"import sys, sfumato.cli; sys.exit(any(m in sys.modules for m in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_of_every_command_loads_no_compiler_and_no_database() -> None:
    code = (
        "import sys, typer.main\n"
        "from sfumato.cli import COMMANDS, application, run\n"
        "for name in COMMANDS:\n"
        "    command = typer.main.get_command(application([name])).commands[name]\n"
        "    for words in [[name], *([name, inner] for inner in getattr(command, 'commands', ()))]:\n"
        "        assert run([*words, '--help']) == 0, words\n"
        "        loaded = {'numba', 'scipy', 'duckdb', 'pyarrow'} & set(sys.modules)\n"
        "        assert not loaded, f'{words} --help loads {sorted(loaded)}'\n"
        "        print(*words, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert {"measures", "search", "channel disguise", "reproduce groups"} <= set(ran.stderr.splitlines())
    assert set(COMMANDS) <= set(ran.stderr.splitlines())


def test_a_command_imports_its_own_module_only() -> None:
    """`sfumato measures` does not wait for the learners of `sfumato groups`."""
    code = (
        "import sys; from sfumato.cli import COMMANDS, application, run; run(['measures', '--json'])\n"
        "print(*(m for m in sys.modules if m.startswith('sfumato.cli.')), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(ran.stderr.split()) == {"sfumato.cli.show", "sfumato.cli.data"}


def test_the_listed_help_is_the_help_of_the_command() -> None:
    """The list of commands imports none of them, so it has a copy of each first sentence."""
    tree: Any = typer.main.get_command(application())
    assert {name: command.help.partition("\n\n")[0] for name, command in tree.commands.items()} == COMMANDS
    assert list(tree.commands) == list(COMMANDS)


@pytest.mark.parametrize("before", [[], ["--"], ["--debug"]])
def test_a_command_is_found_behind_options(before: list[str], capsys: Capture) -> None:
    assert run([*before, "measures"]) == 0
    assert "privacy: " in capsys.readouterr().out
    assert run([*before, "mesures"]) == 2
    assert "Did you mean 'measures'" in capsys.readouterr().err


def test_help_keeps_what_stands_in_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["groups", "attack", "--help"]) == 0
    printed = capsys.readouterr().out
    assert "[groups]" in printed
    assert "[the first]" in printed
