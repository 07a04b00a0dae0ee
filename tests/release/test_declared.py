"""What a publisher reads from inspect to publish, on the command line: what is counted, and what ends nowhere."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from sfumato.cli import main

REASON = "a table that was made for a test"
KEYS = (
    'district = { role = "quasi_identifier", hierarchy = { build = "flat" } }\n'
    'sex = { role = "quasi_identifier", hierarchy = { build = "flat" } }\n'
)


def write(path: Path, head: str, rows: list[list[object]]) -> None:
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n", "utf-8")


def clients(folder: Path, exact: bool = True) -> int:
    """Rows of 120 clients, two to five each, whose wage is constant; returns how many rows there are."""
    chance, rows = random.Random(8), []
    for client in range(120):
        known = [1000 + client, chance.choice("NSEW"), chance.choice("fm")]
        wage = round(chance.lognormvariate(3, 0.5), 4) if exact else chance.choice([10, 20, 30])
        rows += [[*known, wage, chance.choice("abcd")] for _ in range(chance.randint(2, 5))]
    write(folder / "table.csv", "client,district,sex,wage,ill", rows)
    return len(rows)


def declare(folder: Path, client: str, more: str = "") -> str:
    roles = f'client = {{ role = "{client}" }}\n{KEYS}wage = {{ role = "sensitive" }}\nill = {{ role = "sensitive" }}\n'
    text = f'version = 1\n[data]\npath = "table.csv"\n[columns]\n{roles}{more}'
    (folder / "run.toml").write_text(text, "utf-8")
    return str(folder / "run.toml")


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    shown = capsys.readouterr()
    assert (ended.value.code or 0) == code, shown.err
    return shown.out + shown.err


def test_an_identifier_that_repeats_is_refused_and_no_reason_opens_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of one person are no crowd, whatever k in rows is; the refusal says what to declare."""
    clients(tmp_path, exact=False)
    run = declare(tmp_path, "identifier")
    front, release = str(tmp_path / "front"), tmp_path / "release"
    said(capsys, "search", run, "-o", front)
    text = said(capsys, "publish", front, "--point", "1", "-o", str(release), code=3)
    assert 'role = "unit" for client' in text
    text = said(
        capsys, "publish", front, "--point", "1", "-o", str(release), "--accept", f"unit:client={REASON}", code=2
    )
    assert "the rule unit cannot be accepted" in text
    assert 'role = "unit"' in text
    assert "is not valid" not in text
    assert not release.exists()


def test_a_wage_that_repeats_with_its_person_is_foreseen_and_refused_in_persons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each wage is in several rows, all of one person: no row is unique by it, and every person is."""
    clients(tmp_path)
    run = declare(tmp_path, "unit")
    finding = "wage has a value that no other person has for 100.0 % of the persons"
    assert finding in said(capsys, "audit", "--run", run)
    searched = said(capsys, "search", run, "-o", str(tmp_path / "front"))
    assert finding in searched
    text = said(capsys, "publish", str(tmp_path / "front"), "--point", "1", "-o", str(tmp_path / "release"), code=3)
    assert finding in text
    assert "of the records" not in next(line for line in text.splitlines() if "no other" in line)


@pytest.mark.parametrize("system", ["lattice", "local"])
def test_what_search_says_of_the_policy_counts_persons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], system: str
) -> None:
    """Twelve rows of two persons in every district are k 2, not 12, and search says so before publish does."""
    rows = [[person, f"d{person // 2}", "f", "a" if person % 2 else "b"] for person in range(40) for _ in range(6)]
    write(tmp_path / "table.csv", "client,district,sex,ill", rows)
    roles = f'client = {{ role = "unit" }}\n{KEYS}ill = {{ role = "sensitive" }}\n'
    given = '[search]\nobjectives = ["k", "general_loss"]\n[local]\nk = [2, 4]\neffort = 0\nbounds = false\n'
    run = tmp_path / "run.toml"
    run.write_text(f'version = 1\n[data]\npath = "table.csv"\n[columns]\n{roles}{given}', "utf-8")
    text = said(capsys, "search", str(run), "-o", str(tmp_path / "front"), "--system", system)
    foreseen = next(line for line in text.splitlines() if line.startswith("policy:"))
    assert "k (0)" in foreseen
    text = said(capsys, "publish", str(tmp_path / "front"), "--point", "0", "-o", str(tmp_path / "r"), code=3)
    assert "k is 2, below 3" in text or "k is 1, below 3" in text


def test_households_are_foreseen_for_local_recodings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three persons of one family in each district are k 3 and one household."""
    rows = [[family, f"d{family}", "f", "abc"[person]] for family in range(30) for person in range(3)]
    write(tmp_path / "table.csv", "hid,district,sex,ill", rows)
    roles = f'hid = {{ role = "household" }}\n{KEYS}ill = {{ role = "sensitive" }}\n'
    run = tmp_path / "run.toml"
    given = "[local]\nk = [3]\neffort = 0\nbounds = false\n"
    run.write_text(f'version = 1\n[data]\npath = "table.csv"\n[columns]\n{roles}{given}', "utf-8")
    text = said(capsys, "search", str(run), "-o", str(tmp_path / "front"), "--system", "local")
    assert "households" in next(line for line in text.splitlines() if line.startswith("policy:"))
    said(capsys, "publish", str(tmp_path / "front"), "--point", "0", "-o", str(tmp_path / "r"), code=3)


def test_an_audit_in_persons_says_persons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    number = clients(tmp_path, exact=False)
    run = declare(tmp_path, "unit")
    page = tmp_path / "audit.html"
    text = said(capsys, "audit", "--run", run, "--html", str(page))
    assert f"{number} records of 120 persons in 8 classes" in text
    for words in ("unique persons, share", "mean per person", "fewer unique persons"):
        assert words in text
    assert "unique records" not in text
    shown = page.read_text("utf-8")
    assert f"{number} records of 120 persons in 8 classes" in shown
    assert "The share of persons that are unique on the quasi-identifiers." in shown
    assert "The share of records that are unique" not in shown


def test_the_internal_report_in_persons_says_persons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clients(tmp_path, exact=False)
    run = declare(tmp_path, "unit")
    said(capsys, "search", run, "-o", str(tmp_path / "front"))
    out = tmp_path / "release"
    said(capsys, "publish", str(tmp_path / "front"), "--point", "1", "-o", str(out), "--accept", f"t={REASON}")
    shown = (out / "private" / "internal.html").read_text("utf-8")
    assert "The share of persons that are unique on the quasi-identifiers." in shown
    assert "The share of records that are unique on the quasi-identifiers." not in shown
    assert "Every released person has the same quasi-identifiers" in shown
    assert "The size of a class is the number of its persons." in shown
    said(capsys, "verify", str(out), "--source", run)


@pytest.mark.parametrize("role", ["unit", "household"])
def test_both_reports_say_the_same_of_a_generalized_column(
    role: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Districts in two groups are two groups for the publisher as for readers, whatever is counted."""
    clients(tmp_path, exact=False)
    (tmp_path / "district.csv").write_text("N;north;*\nE;north;*\nS;south;*\nW;south;*\n", "utf-8")
    run = Path(declare(tmp_path, role))
    grouped = run.read_text("utf-8").replace('{ build = "flat" }', '"district.csv"', 1)
    run.write_text(grouped + '[search]\nobjectives = ["k", "general_loss"]\n', "utf-8")
    said(capsys, "search", str(run), "-o", str(tmp_path / "front"))
    points = json.loads((tmp_path / "front" / "front.json").read_text("utf-8"))["points"]
    point = next(point["id"] for point in points if point["plan"] == {"district": 1, "sex": 0})
    out = tmp_path / "release"
    accept = ("--accept", f"t={REASON}")
    said(capsys, "publish", str(tmp_path / "front"), "--point", str(point), "-o", str(out), *accept)
    for page in ("public/external.html", "private/internal.html"):
        assert "Grouped into 2 groups." in (out / page).read_text("utf-8"), page


def test_the_policy_of_a_report_keeps_the_thresholds_of_a_rule_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clients(tmp_path, exact=False)
    run = declare(tmp_path, "unit")
    said(capsys, "search", run, "-o", str(tmp_path / "front"))
    out = tmp_path / "release"
    said(capsys, "publish", str(tmp_path / "front"), "--point", "1", "-o", str(out), "--accept", f"t={REASON}")
    shown = (out / "private" / "internal.html").read_text("utf-8").replace("\u00a0", " ")
    assert "by a factor of at most 1.5, or to at most 75 %, where 100 records" in shown
    assert "have them, at most 5 % of the records with a value of their own" in shown


def test_inspect_counts_the_persons_that_it_suggests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Few rows are unique where every person has several equal ones; nearly all persons are."""
    rows = [[7000 + person, 1930 + person % 60, "NSEW"[person % 4], "fm"[person // 60]] for person in range(120)]
    write(tmp_path / "table.csv", "patient_id,birthyear,district,sex", [row for row in rows for _ in range(4)])
    text = said(capsys, "inspect", str(tmp_path / "table.csv"), "-o", str(tmp_path / "first.toml"))
    assert "together: 0 % of the records are unique." in text
    assert "Of the persons, 100.0 % have a record that no other person shares" in text


def test_household_incomes_are_refused_until_the_household_is_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number of the family is dropped, its income is exact: nothing is published, and the number is named."""
    chance, rows = random.Random(4), []
    for family in range(150):
        income, district = chance.randint(10_000, 90_000), chance.choice("NSEW")
        rows += [[family, district, chance.choice("fm"), income, chance.choice("abcd")] for _ in range(4)]
    write(tmp_path / "table.csv", "hid,district,sex,income,ill", rows)
    roles = f'hid = {{ role = "drop" }}\n{KEYS}income = {{ role = "sensitive" }}\nill = {{ role = "sensitive" }}\n'
    run = tmp_path / "run.toml"
    run.write_text(f'version = 1\n[data]\npath = "table.csv"\n[columns]\n{roles}', "utf-8")
    said(capsys, "search", str(run), "-o", str(tmp_path / "front"))
    text = said(capsys, "publish", str(tmp_path / "front"), "--point", "1", "-o", str(tmp_path / "r"), code=3)
    assert 'role = "household" for hid' in text


OWN = {
    "wage": lambda number: f"{number * 1.37:.6f}",
    "second": lambda number: f"2020-05-01 {number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}",
    "note": lambda number: f"case {number} was heard",
}


@pytest.mark.parametrize("kind", OWN)
def test_a_sensitive_column_of_own_values_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """A wage, the second of a booking, a note: sensitive, different for everybody, released as they are."""
    rows: list[list[object]] = [
        ["NS"[number % 2], "fm"[number // 2 % 2], OWN[kind](number), "abcd"[number // 4 % 4]] for number in range(600)
    ]
    write(tmp_path / "table.csv", "district,sex,wage,ill", rows)
    roles = f'{KEYS}wage = {{ role = "sensitive" }}\nill = {{ role = "sensitive" }}\n'
    run = tmp_path / "run.toml"
    run.write_text(f'version = 1\n[data]\npath = "table.csv"\n[columns]\n{roles}', "utf-8")
    said(capsys, "search", str(run), "-o", str(tmp_path / "front"))
    text = said(
        capsys,
        "publish",
        str(tmp_path / "front"),
        "--point",
        "1",
        "-o",
        str(tmp_path / "r"),
        "--accept",
        f"t={REASON}",
        code=3,
    )
    assert "identifying:wage" in text
    assert not (tmp_path / "r").exists()


def test_apply_asks_again_whether_an_earlier_release_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason was about this year's table; next year's two files disclose people of their own."""
    for name, seed in (("table", 1), ("next", 2)):
        chance = random.Random(seed)
        rows = [
            [10 * chance.randrange(8), chance.choice("NSEW"), chance.choice("fm"), chance.choice("pqrstuv"),
             chance.choice("abc")]
            for _ in range(1500)
        ]  # fmt: skip
        write(tmp_path / f"{name}.csv", "age,district,sex,job,ill", rows)
    age = 'age = { role = "quasi_identifier", hierarchy = { build = "interval", widths = [20, 40] } }\n'
    job = 'job = { role = "quasi_identifier", hierarchy = { build = "flat" } }\n'
    run = tmp_path / "run.toml"
    columns = f'{age}{KEYS}{job}ill = {{ role = "sensitive" }}\n'
    run.write_text(f'version = 1\n[data]\npath = "table.csv"\n[columns]\n{columns}', "utf-8")
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    front, others = str(tmp_path / "front"), ["--accept", f"l={REASON}", "--accept", f"t={REASON}"]
    said(capsys, "search", str(run), "-o", front)
    made = [str(tmp_path / "one"), str(tmp_path / "two")]
    said(capsys, "publish", front, "--point", "3", "-o", made[0], *others)
    said(capsys, "publish", front, "--point", "2", "-o", made[1], *others, "--accept", f"earlier={REASON}")
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "fresh"))
    following = str(tmp_path / "next.csv")
    said(capsys, "apply", made[0], following, "-o", str(tmp_path / "three"), *others)
    text = said(capsys, "apply", made[1], following, "-o", str(tmp_path / "four"), *others, code=3)
    assert "earlier=" in text


@pytest.mark.parametrize("system", ["lattice", "local"])
@pytest.mark.parametrize("person", [False, True])
def test_an_income_that_only_one_household_has_is_unique(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], system: str, person: bool
) -> None:
    """No row and no person has an income of their own; a neighbour who knows the income finds the family."""
    chance, rows = random.Random(5), []
    for household in range(150):
        income = round(chance.lognormvariate(9, 0.4), 2)
        for _ in range(chance.randint(2, 4)):
            number = 5000 + len(rows)
            rows.append(
                [700 + household, number, chance.choice("NS"), chance.choice("fm"), income, chance.choice("ab")]
            )
    write(tmp_path / "table.csv", "home,person,district,sex,income,ill", rows)
    role = "unit" if person else "drop"
    text = (
        f'version = 1\n[data]\npath = "table.csv"\n[search]\nsystem = "{system}"\n[local]\nk = [5]\npasses = 1\n'
        f'[columns]\n{KEYS}home = {{ role = "household" }}\nperson = {{ role = "{role}" }}\n'
        'income = { role = "sensitive", distance = "equal" }\nill = { role = "sensitive" }\n'
    )
    (tmp_path / "run.toml").write_text(text, "utf-8")
    finding = "income has a value that no other household has for 100.0 % of the households"
    assert finding in said(capsys, "audit", "--run", str(tmp_path / "run.toml"))
    front, release = str(tmp_path / "front"), str(tmp_path / "release")
    assert finding in said(capsys, "search", str(tmp_path / "run.toml"), "-o", front)
    point = ["--point", "0" if system == "local" else "1", "-o", release]
    others = [word for rule in ("raw", "l", "t", "dependence:income") for word in ("--accept", f"{rule}={REASON}")]
    assert finding in said(capsys, "publish", front, *point, *others, code=3)
    known = ["--accept", f"identifying:income={REASON}", "--accept", f"uniques={REASON}"]
    said(capsys, "publish", front, *point, *others, *known)
    said(capsys, "verify", release, "--source", str(tmp_path / "table.csv"))
    manifest = Path(release) / "private" / "manifest.json"
    stated = json.loads(manifest.read_text("utf-8"))["own"]["households"]
    assert (stated["counted"], stated["own_values"]["income"]["unique_share"]) == ("households", 1.0)
