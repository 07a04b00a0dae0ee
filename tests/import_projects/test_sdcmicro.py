"""Scripts of sdcMicro: key variables become quasi-identifiers, and the figures are sdcMicro's."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import InputError
from sfumato.import_projects.sdcmicro import arguments_of, import_sdcmicro

KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
SCRIPT = """
library(sdcMicro)   # createSdcObj(keyVars = "not this")
data(testdata)
keys <- c("urbrur", 'roof', "walls", "water",
          "electcon", "relat", "sex")
sdc <- createSdcObj(testdata, keyVars = keys, numVars = c("expend", "income", "savings"),
                    weightVar = "sampling_weight", hhId = "ori_hid", sensibleVar = NULL, seed = 1L)
"""


def test_a_script_of_two_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n1,x,9\n1,,9\n")
    (tmp_path / "s.R").write_text("d <- read.csv('a.csv')\ns <- createSdcObj(dat=d, keyVars=c('a','b'))\n")
    imported = import_sdcmicro(tmp_path / "s.R", tmp_path / "a.csv", tmp_path / "run.toml")
    text = imported.run_file.read_text("utf-8")
    assert 'a = { role = "quasi_identifier"' in text
    assert '# c = { role = "" }  # not in the script: decide' in text
    assert any("nothing runs until each of these has a role: c" in note for note in imported.notes)


def test_risk_as_sdcmicro_measures_it(shared: Path, tmp_path: Path) -> None:
    """157 unique records and an expected 10.7783 re-identifications, as sdcMicro 5.8.1 says of its own test data.

    For classes of three records sdcMicro takes an approximation, and the closed form is taken here.
    """
    table = shared / "data/sdcmicro/testdata.csv"
    (tmp_path / "s.R").write_text(SCRIPT)
    imported = import_sdcmicro(tmp_path / "s.R", table, tmp_path / "run.toml")
    text = imported.run_file.read_text("utf-8").replace("# ", "").replace('role = ""', 'role = "drop"')
    lines = [line for line in text.splitlines() if "=" in line or line.startswith("[")]
    imported.run_file.write_text("\n".join(line.split("  ")[0] for line in lines))
    study = sf.read(imported.run_file)
    assert [name for name, one in study.columns.items() if one.role is sf.Role.QUASI_IDENTIFIER] == [
        name for name in study.columns if name in KEYS
    ]
    audit = sf.audit(study)
    assert [round(audit[name] * audit.rows) for name in ("uniques", "below_3", "below_5")] == [157, 281, 458]
    with (shared / "data/sdcmicro/reference/testdata_indivrisk.csv").open() as file:
        theirs = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert sum(row["risk"] for row in theirs) == pytest.approx(10.7782989187, abs=1e-8)
    assert [sum(row["fk"] < k for row in theirs) for k in (2, 3, 5)] == [157, 281, 458]
    three = sum(row["risk"] for row in theirs if row["fk"] == 3)
    closed = sum(closed_form_of_three(row["Fk"]) for row in theirs if row["fk"] == 3)
    assert audit["individual_risk"] * audit.rows == pytest.approx(10.7782989187 - three + closed, abs=1e-8)
    assert closed - three == pytest.approx(-0.00203703, abs=1e-7)


@cache
def closed_form_of_three(people: float) -> float:
    """The expected 1/F for three records that stand for so many people, by numbers of the negative binomial."""
    share = 3 / people
    total, probability = 0.0, share**3  # P(F = 3)
    for number in range(3, 50_000):
        total += probability / number
        probability *= (1 - share) * number / (number - 2)
    return total


def test_values_that_are_not_written_out_are_not_guessed() -> None:
    found = arguments_of(
        'createSdcObj(keyVars = names(d)[1:3], weightVar = paste0("w", 1), hhId = "h")', "createSdcObj"
    )
    assert found == {"keyVars": None, "weightVar": None, "hhId": ["h"]}
    assert arguments_of("# createSdcObj(keyVars = 'a')", "createSdcObj") is None


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("age,b\n1,x\n")
    (tmp_path / "s.R").write_text("createSdcObj(d, keyVars='aeg')")
    with pytest.raises(InputError, match="'aeg', which is no column"):
        import_sdcmicro(tmp_path / "s.R", tmp_path / "a.csv", tmp_path / "run.toml")
    assert not (tmp_path / "run.toml").exists()
    (tmp_path / "s.R").write_text("createSdcObj(d, keyVars=keys())")
    assert run(["import", "sdcmicro", str(tmp_path / "s.R"), str(tmp_path / "a.csv"), "--json"]) == 2
    assert "not names in quotes" in json.loads(capsys.readouterr().out)["error"]["what"]
