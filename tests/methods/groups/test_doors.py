"""The groups commands, end to end, and what they say to bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from tests.methods.groups.files import GOOD, PROTECT, rows

from sfumato.cli import run
from sfumato.decide.pick import pick
from sfumato.methods.groups.front import swaps_of
from sfumato.methods.registry import load_front
from sfumato.papers.groups import make_census
from sfumato.samples.census import COLUMNS, people, plant

Capture = pytest.CaptureFixture[str]
KNOWN = ("uniques", "identifying:depart", "identifying:inctot")
ACCEPTED = (
    *(word for rule in KNOWN for word in ("--accept", f"{rule}=a census made for a test")),
    *("--accept", "attacks=what is left is looked at here"),
)


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups") / "census"
    made = make_census(folder, 5_000, 250, 10, seed=3)
    text = made.run.read_text("utf-8")
    attack = "\n[groups.attack]\nruns = 2\ngenerations = 20\nseeds = 2\nfolds = 3\n"
    protect = '[groups.protect]\nattackers = ["exact", "evolutionary"]\nlevels = 2\nknown_seeds = 1\nfresh_seeds = 1\nsealed_attackers = []\n'
    made.run.write_text(text + attack + protect, encoding="utf-8")
    return folder


def json_of(capsys: Capture, *arguments: str) -> tuple[int, dict[str, Any]]:
    code = run([*arguments, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


@pytest.mark.long
@pytest.mark.parametrize("attacker", ["exact", "evolutionary", "boosted"])
def test_attack(census: Path, capsys: Capture, attacker: str) -> None:
    code, found = json_of(capsys, "groups", "attack", str(census / "run.toml"), "--attacker", attacker)
    assert code == 0, found
    assert {"attacker", "rules", "areas", "outliers", "adequacy"} <= set(found)
    assert set(found["areas"][0]) >= {"area", "q", "auxiliary", "crisp", "rank"}
    assert len(found["spread"]) == 2
    for rule in found["rules"]:
        assert set(rule) >= {"rule", "words", "df", "rcf", "support"}
        assert rule["df"] > 0
        assert (rule["rcf"] is None) == ("infinite" in rule)
    sensitive = set(found["outliers"]["sensitive"])
    top = {a["area"] for a in found["areas"] if a["rank"] <= len(sensitive)}
    assert sensitive & top


def test_the_same_seed_gives_the_same_attack(census: Path, capsys: Capture) -> None:
    arguments = ("groups", "attack", str(census / "run.toml"), "--attacker", "evolutionary", "--seeds", "1")
    assert json_of(capsys, *arguments) == json_of(capsys, *arguments)


@pytest.mark.long
def test_protect_publish_verify(census: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    out, release = tmp_path / "out", tmp_path / "release"
    words = ("search", str(census / "run.toml"), "-o", str(out), "--set", "groups.protect.test_seed=1")
    code, found = json_of(capsys, *words)
    assert code in (0, 3), found
    chosen = found["points"][found["details"]["chosen"]]
    assert (code == 0) == found["met"] == (chosen["values"]["findings"] == 0)
    assert chosen["values"]["findings"] < found["details"]["found_before"]
    assert all(0 <= point["loss"] <= 1 for point in found["points"])
    before = sum(area["q"]["military"] for area in found["details"]["areas"])
    for point in found["points"]:
        assert before == sum(point["details"]["q_after"]["military"])
    assert "givers" not in json.dumps(found)  # who is swapped is in the folder alone
    code, told = json_of(capsys, "publish", str(out), "-o", str(release), *ACCEPTED)
    assert code == 0, told
    one = pyarrow.parquet.read_table(census / "survey.parquet")
    two = pyarrow.parquet.read_table(release / "public" / "data.parquet")
    assert "military" not in two.column_names
    for name in two.column_names:
        assert sorted(one[name].to_pylist()) == sorted(two[name].to_pylist()), name
    stays = [name for name in two.column_names if name not in ("state", "puma")]
    rows = [sorted(zip(*(t[name].to_pylist() for name in stays), strict=True)) for t in (one, two)]
    assert rows[0] == rows[1]
    for source in ("survey.parquet", "run.toml"):
        assert run(["verify", str(release), "--source", str(census / source)]) == 0
    manifest = (release / "private" / "manifest.json").read_text("utf-8")
    swapped = swaps_of(pick(load_front(out)).point)
    assert "giver" not in manifest
    assert swapped.swaps > 0
    capsys.readouterr()
    code, seen = json_of(capsys, "groups", "harmonise", str(release / "private" / "run.toml"))
    assert code == 0
    assert seen["members"] == {}  # nobody can tell the members from the release
    (release / "public" / "data.parquet").write_bytes((census / "survey.parquet").read_bytes())
    assert run(["verify", str(release)]) == 4
    capsys.readouterr()
    assert run(["search", str(census / "run.toml"), "-o", str(out)]) == 2  # it already exists


@pytest.mark.long
def test_memetic_protects_as_well(census: Path, tmp_path: Path, capsys: Capture) -> None:
    run_file = census / "memetic.toml"
    text = (census / "run.toml").read_text("utf-8").replace("levels = 2", "levels = 1\ngenerations = 30")
    run_file.write_text(text, encoding="utf-8")
    arguments = ("search", str(run_file), "-o", str(tmp_path / "out"), "--set", "groups.protect.method=memetic")
    code, found = json_of(capsys, *arguments)
    assert code in (0, 3), found
    assert "bound" not in found["points"][0]
    assert found["points"][0]["swaps"] > 0


def change(old: str, new: str) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        text = (folder / "run.toml").read_text("utf-8")
        assert old in text
        (folder / "run.toml").write_text(text.replace(old, new), encoding="utf-8")

    return changed


def table(name: str, **given: Any) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(rows(np.random.default_rng(1), **given), "utf-8") and None


def without(name: str, column: str) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        lines = [line.split(",") for line in (folder / name).read_text("utf-8").splitlines()]
        place = lines[0].index(column)
        text = "".join(",".join([*line[:place], *line[place + 1 :]]) + "\n" for line in lines)
        (folder / name).write_text(text, encoding="utf-8")

    return cut


CASES: dict[str, tuple[Callable[[Path], None], str, int]] = {
    "attribute missing in one file": (without("aux.csv", "sex"), "aux.csv lacks 1 column that the mapping reads: sex", 2),
    "attribute of one file only": (change('"aux.csv" }', '"aux.csv", attributes = { agee = { column = "age" } } }'), 'aux.csv maps "agee"', 2),
    "column missing": (change('column = "sex"', 'column = "gender"'), "lacks 1 column that the mapping reads: gender", 2),
    "ranges drop everything": (change('column = "age"', 'column = "age", range = [90, 99]'), "the ranges drop all 300 rows", 2),
    "no members": (table("aux.csv", job="66"), "no record of aux.csv in range is in the group secret", 2),
    "one area": (table("t.csv", towns="A"), "has one area", 2),
    "no rule passes": (change("[groups.vital]", "[groups.attack]\ngamma = 900.0\nkappa = 0.2\n[groups.vital]"), "no rule reaches gamma = 900", 3),
    "no auxiliary": (change('auxiliary = [{ path = "aux.csv" }]', ""), "no auxiliary file is declared", 2),
    "unknown area": (change('area = ["town"]', 'area = ["town"]\nexpert = ["Z"]'), 'no area "Z"', 2),
    "unknown recipe": (change('area = ["town"]', 'recipe = "asc"'), 'unknown recipe "asc"', 2),
    "typo": (change("ordinal = true", "ordnal = true"), 'unknown key "ordnal"', 2),
    "no section": (lambda folder: (folder / "run.toml").write_text('version = 1\n[data]\npath = "t.csv"\n[columns]\n', "utf-8") and None, "no [groups] section", 2),
    "unknown term": (change("ordinal = true", 'terms = { x = { kind = "pie", numbers = [1] } }'), 'unknown membership function "pie"', 2),
    "backward range": (change('column = "age"', 'column = "age", range = [9, 1]'), "groups.attributes.age", 2),
}  # fmt: skip


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "run.toml").write_text(GOOD, encoding="utf-8")
    table("t.csv")(tmp_path)
    (tmp_path / "aux.csv").write_text(rows(np.random.default_rng(2)), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case: str, small: Path, capsys: Capture) -> None:
    spoil, says, expected = CASES[case]
    spoil(small)
    code, found = json_of(capsys, "groups", "attack", str(small / "run.toml"))
    assert code == expected, found
    assert says in found["error"]["what"]
    assert found["error"]["expected"] or found["error"]["try"]


def test_the_good_case_and_proposed_variables(small: Path, capsys: Capture) -> None:
    code, found = json_of(capsys, "groups", "attack", str(small / "run.toml"), "--seeds", "1")
    assert code == 0, found
    assert found["areas"][0]["rank"] == 1  # where most of them are
    code, terms = json_of(capsys, "groups", "variables", str(small / "run.toml"))
    assert list(terms["sex"]) == ["sex 1", "sex 2"]
    assert len(terms["age"]) == 3


def test_no_rule_says_the_best_there_is(small: Path, capsys: Capture) -> None:
    CASES["no rule passes"][0](small)
    _, found = json_of(capsys, "groups", "attack", str(small / "run.toml"))
    assert "at most" in found["error"]["expected"]
    assert "age" in found["error"]["expected"]


def test_targets_that_cannot_be_reached(small: Path, capsys: Capture) -> None:
    text = "".join(
        line for line in rows(np.random.default_rng(1)).splitlines(keepends=True) if ",A," in line or "town" in line
    )
    others = "50,1,B,11\n51,1,C,11\n52,2,D,11\n"
    (small / "t.csv").write_text(text + others, encoding="utf-8")
    change("[groups.vital]", PROTECT + "targets = { A = 1 }\n[groups.vital]")(small)
    change('area = ["town"]', 'area = ["town"]\nexpert = ["A"]')(small)
    code, found = json_of(capsys, "search", str(small / "run.toml"), "-o", str(small / "out"))
    assert code == 3, found
    assert "cannot be reached" in found["error"]["what"]
    assert "A: " in found["error"]["expected"]
    assert not (small / "out").exists()


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ("{ A = -1 }", "groups.protect.targets.A"),
        ("{ B = 1 }", "the targets include B, which are not among the areas to hide"),
    ],
)
def test_targets_that_mean_nothing(small: Path, capsys: Capture, targets: str, says: str) -> None:
    change("[groups.vital]", PROTECT + f"targets = {targets}\n[groups.vital]")(small)
    code, found = json_of(capsys, "search", str(small / "run.toml"), "-o", str(small / "out"))
    assert code == 2, found
    assert says in found["error"]["what"]


def test_nobody_to_protect(small: Path, capsys: Capture) -> None:
    table("t.csv", job="66")(small)
    change("[groups.vital]", PROTECT + "[groups.vital]")(small)
    code, found = json_of(capsys, "search", str(small / "run.toml"), "-o", str(small / "out"))
    assert code == 2
    assert "no record of t.csv in range is in a group" in found["error"]["what"]


def test_nothing_to_protect(small: Path, capsys: Capture) -> None:
    lines = ["age,sex,town,job"] + [
        f"{20 + i % 7},{1 + i % 2},{'ABC'[i % 3]},{55 if i % 6 < 3 else 11}" for i in range(240)
    ]
    (small / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    change("[groups.vital]", PROTECT + "[groups.vital]")(small)
    code, found = json_of(capsys, "search", str(small / "run.toml"), "-o", str(small / "out"))
    assert code == 2
    assert "every area has the same number of members" in found["error"]["what"]


def test_the_vital_column_is_never_released(small: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(small / "state"))
    for name in ("t.csv", "aux.csv"):
        lines = (small / name).read_text("utf-8").splitlines()
        again = [line + "," + ("branch" if i == 0 else line.split(",")[3]) for i, line in enumerate(lines)]
        (small / name).write_text("\n".join(again) + "\n", encoding="utf-8")
    change("[groups.vital]", PROTECT + "[groups.vital]")(small)
    words = ("search", str(small / "run.toml"), "-o", str(small / "out"))
    code, found = json_of(capsys, *words)
    assert code == 2
    assert "identify the group: branch" in found["error"]["what"]
    change("[groups]", '[columns]\njob = { role = "other" }\n[groups]')(small)
    code, found = json_of(capsys, *words)
    assert code == 2
    assert "the vital columns job are declared for release" in found["error"]["what"]
    assert not (small / "out").exists()


def test_a_census_is_the_same_for_the_same_seed() -> None:
    found = plant(30_000, 400, 20, seed=5)
    one, two = (next(people(found, 7)) for _ in "ab")
    assert all(np.array_equal(one[name], two[name]) for name in one)
    member = one["military"] == 1
    assert member.sum() == 400
    for name in COLUMNS:  # no value is exclusive to the group; incomes are too many to meet all in a small file
        step = 5_000 if name == "inctot" else 30 if name == "depart" else 1
        mine, others = (set((one[name][kind] // step).tolist()) for kind in (member, ~member))
        assert mine <= others, name


def test_ipums_extracts(tmp_path: Path, capsys: Capture) -> None:
    ddi = tmp_path / "x.xml"
    ddi.write_text(DDI, encoding="utf-8")
    (tmp_path / "x.dat").write_text("0301\n0452\n0181\n", encoding="utf-8")
    code, found = json_of(capsys, "groups", "ipums", str(ddi), "-o", str(tmp_path / "x.parquet"))
    assert code == 0, found
    table = pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pydict()
    assert table == {"AGE": [30, 45, 18], "SEX": [1, 2, 1]}


DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5" version="2.5">
<stdyDscr><citation><titlStmt><titl>t</titl></titlStmt><prodStmt><producer>IPUMS</producer></prodStmt>
<distStmt><contact email="x" URI="x">x</contact></distStmt>
<serStmt><serName abbr="usa">x</serName><serInfo>doi</serInfo></serStmt></citation>
<stdyInfo><sumDscr><collDate>x</collDate><nation>x</nation></sumDscr></stdyInfo>
<dataAccs><useStmt><conditions>c</conditions><citReq>c</citReq></useStmt><notes>IPUMS collection ID: usa</notes></dataAccs></stdyDscr>
<fileDscr ID="f"><fileTxt><fileName>x.dat</fileName><fileCont>x</fileCont><fileStrc type="rectangular"><recGrp rectype="P" recidvar="RECTYPE" keyvar="P"/></fileStrc>
<fileType charset="UTF-8">d</fileType><format>fixed length fields</format><filePlac>x</filePlac></fileTxt></fileDscr>
<dataDscr>
<var ID="AGE" name="AGE" files="F" dcml="0" intrvl="contin"><location StartPos="1" EndPos="3" width="3"/><labl>Age</labl><txt>a</txt><concept>c</concept><varFormat type="numeric" schema="other"/><notes/></var>
<var ID="SEX" name="SEX" files="F" dcml="0" intrvl="discrete"><location StartPos="4" EndPos="4" width="1"/><labl>Sex</labl><txt>s</txt><concept>c</concept><varFormat type="numeric" schema="other"/></var>
</dataDscr></codeBook>
"""


@pytest.mark.long
def test_two_groups_at_once(small: Path, capsys: Capture) -> None:
    change('secret = [{ job = "55*" }]', 'secret = [{ job = "55*" }]\nold = [{ age = "45.." }]')(small)
    lines = (small / "t.csv").read_text("utf-8").splitlines()
    crowd = [f"{50 + i % 9},{1 + i % 2},B,11" for i in range(40)]
    (small / "t.csv").write_text("\n".join(lines + crowd) + "\n", encoding="utf-8")
    change("[groups.vital]", PROTECT + "suspicious_partners = true\n[groups.vital]")(small)
    change('area = ["town"]', 'area = ["town"]\nexpert = ["A", "B"]')(small)
    words = ("search", str(small / "run.toml"), "-o", str(small / "out"), "--set", "groups.protect.test_seed=1")
    code, found = json_of(capsys, *words)
    assert "error" not in found, found
    assert code in (0, 3)
    details = found["details"]
    assert details["groups"] == ["secret", "old"]
    after = found["points"][details["chosen"]]["details"]["q_after"]
    for group, area in (("secret", 0), ("old", 1)):
        assert after[group][area] < details["areas"][area]["q"][group]


@pytest.mark.long
def test_an_attacker_without_rules_is_left_out_and_told(small: Path, capsys: Capture) -> None:
    """On weak data no rule reaches the paper's γ: the file is protected from the attackers that there are."""
    for name, seed in (("t.csv", 1), ("aux.csv", 2)):
        rng = np.random.default_rng(seed)
        lines = [
            f"{rng.integers(18, 60)},{rng.integers(1, 3)},{'A' if member and rng.random() < 0.8 else rng.choice(list('ABCDEF'))},{55 if member else 11}"
            for member in rng.random(400) < 0.2
        ]
        (small / name).write_text("\n".join(["age,sex,town,job", *lines]) + "\n", encoding="utf-8")
    both = PROTECT.replace('["exact"]', '["exact", "evolutionary"]')
    change("[groups.vital]", "[groups.attack]\nruns = 1\n" + both + "[groups.vital]")(small)
    code, found = json_of(capsys, "search", str(small / "run.toml"), "-o", str(small / "out"))
    assert code in (0, 3), found
    assert found["details"]["silent"] == ["evolutionary from aux.csv, group secret"]
    told = "left out: evolutionary from aux.csv, group secret (no rule meets its thresholds, so this attack was not possible)"
    assert told in found["sentences"]
    assert {row["attacker"] for row in found["points"][0]["details"]["residual"]} == {"exact"}
