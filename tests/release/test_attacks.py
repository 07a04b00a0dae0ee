"""Attacks on a release by someone who has this source code, with the command line alone and no names of its parts."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import pytest

from sfumato.cli import run
from sfumato.release import publish

KEYS = """
age = { role = "quasi_identifier", hierarchy = { build = "interval", widths = [10, 20] } }
zip = { role = "quasi_identifier", hierarchy = { build = "prefix" } }
sex = { role = "quasi_identifier", hierarchy = { build = "flat" } }
ill = { role = "sensitive" }
"""
SEARCH = '[search]\nobjectives = ["k", "general_loss"]\nmax_suppression = 0.05\n'


def people(rows: int = 600, seed: int = 3) -> pandas.DataFrame:
    """One row per person; the age, the postcode and the sex are the keys."""
    draw = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "age": draw.integers(20, 60, rows),
            "zip": draw.integers(100, 110, rows),
            "sex": draw.choice(["F", "M"], rows),
            "ill": draw.choice(["flu", "cold", "gout"], rows),
            "job": draw.choice(["cook", "clerk", "smith", "nurse", "miner"], rows),
            "eyes": draw.choice(["blue", "brown", "green"], rows),
            "town": draw.choice(["north", "south", "west"], rows),
            "size": draw.integers(150, 200, rows),
        }
    )


def visits() -> pandas.DataFrame:
    """Three to seven rows of each of 120 persons, who keep age, postcode and sex."""
    draw = np.random.default_rng(4)
    owner = np.repeat(np.arange(120), draw.integers(3, 8, 120))
    table = people(120)[["age", "zip", "sex"]].iloc[owner].reset_index(drop=True)
    table["ill"] = draw.choice(["flu", "cold", "gout"], len(table))
    return table.assign(person=owner + 500)


def front_of(folder: Path, table: pandas.DataFrame, *lines: str, name: str = "t", keys: str = KEYS) -> Path:
    """Search a table with a run file in which all columns without a line are dropped; the front."""
    folder.mkdir(exist_ok=True)
    table.to_csv(folder / f"{name}.csv", index=False)
    declared = {line.partition(" ")[0] for line in (*keys.split("\n"), *lines)}
    dropped = [f'{column} = {{ role = "drop" }}' for column in table if column not in declared]
    columns = "\n".join([keys, *lines, *dropped])
    text = f'version = 1\n{SEARCH}[data]\npath = "{name}.csv"\n[columns]\n{columns}\n'
    (folder / f"{name}.toml").write_text(text, "utf-8")
    assert run(["search", str(folder / f"{name}.toml"), "-o", str(folder / f"{name}-front")]) == 0
    return folder / f"{name}-front"


def chosen(front: Path) -> str:
    """The point of a front with the smallest loss among those that meet the policy and show the age in bands."""
    points = json.loads((front / "front.json").read_text("utf-8"))["points"]
    fine = [p for p in points if p["values"]["k"] >= 6 and p["plan"]["age"] in (1, 2)]
    return str(min(fine, key=lambda p: p["loss"])["id"])


def published(front: Path, out: Path, *more: str) -> int:
    return run(["publish", str(front), "--point", chosen(front), "-o", str(out), *more])


# Several rows per person


def together(table: pandas.DataFrame) -> pandas.DataFrame:
    number = table["person"] - 500
    return table.assign(clinic=number // 12 + 1, nr=number % 12 + 1).drop(columns="person")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda table: table, 'person = { role = "identifier" }'),
        (lambda table: table.assign(person=table["person"] * 3 + 1).rename(columns={"person": "q"}), ""),
        (together, ""),
        (together, 'nr = { role = "other" }'),
    ],
    ids=["a number", "another name", "two columns together", "one of the two kept"],
)
def test_rows_of_persons_are_not_published_as_persons(
    change: Callable[[pandas.DataFrame], pandas.DataFrame],
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    front = front_of(tmp_path, change(visits()), line)
    capsys.readouterr()
    assert published(front, tmp_path / "out") == 3
    assert "it is not declared what a row is" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "write",
    [
        lambda number, row: f"p{number}" if row % 2 else f"P{number}",
        lambda number, row: f"{number}" if row % 2 else f"{number}.0",
        lambda number, row: f"{number}" if row % 2 else f"00{number}",
    ],
    ids=["case", "fractions", "zeros"],
)
def test_a_person_whose_number_is_written_in_two_ways_is_not_counted_twice(
    write: Callable[[int, int], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = visits()
    table["person"] = [write(number, row) for row, number in enumerate(table["person"])]
    with pytest.raises(AssertionError):
        front_of(tmp_path, table, 'person = { role = "unit" }')
    assert "120 values of person, the unit column, are written in several ways" in capsys.readouterr().err


# What a folder says of itself


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the same table in each format, beside the source."""
    folder = tmp_path_factory.mktemp("formats")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_STATE", str(folder / "state"))
        return made(folder)


def made(folder: Path) -> Path:
    front = front_of(folder, people())
    for kind in ("csv.gz", "parquet", "xlsx", "sav", "dta"):
        assert published(front, folder / kind, "--name", f"data.{kind}") == 0
        assert run(["verify", str(folder / kind), "--source", str(folder / "t.csv")]) == 0
    return folder


def tampered(
    releases: Path, kind: str, out: Path, change: Callable[[Path], None], version: str = ""
) -> tuple[Path, str]:
    """A copy in which a file was changed, with all digests put right: by one who has the source code."""
    shutil.copytree(releases / kind, out)
    data = out / "public" / f"data.{kind}"
    before = hashlib.sha256(data.read_bytes()).hexdigest()
    change(out)
    after = hashlib.sha256(data.read_bytes()).hexdigest()
    page = out / "public/croissant.json"
    page.write_text(page.read_text("utf-8").replace(before, after), "utf-8")
    manifest = json.loads((out / "private/manifest.json").read_text("utf-8"))
    if version:
        manifest["versions"]["sfumato"] = version
    (out / "private/manifest.json").unlink()
    files = sorted(path for path in out.rglob("*") if path.is_file())
    manifest["files"] = {p.relative_to(out).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
    content = {name: value for name, value in manifest.items() if name != "checksum"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    manifest["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    (out / "private/manifest.json").write_text(json.dumps(manifest), "utf-8")
    return out, str(releases / "t.csv")


def behind(data: Path, raw: bytes) -> None:
    data.write_bytes(data.read_bytes() + raw)


def in_a_name(data: Path, raw: bytes) -> None:
    """The comment of a packed stream, which no reader shows."""
    packed = data.read_bytes()
    data.write_bytes(packed[:3] + b"\x10" + packed[4:10] + raw.replace(b"\0", b"") + b"\0" + packed[10:])


def a_further_part(data: Path, raw: bytes) -> None:
    with zipfile.ZipFile(data, "a") as packed:
        packed.writestr("xl/worksheets/sheet7.xml", raw)


def in_the_margin(data: Path, raw: bytes) -> None:
    """A comment in the XML of a part."""
    with zipfile.ZipFile(data) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    parts["docProps/app.xml"] += b"<!--" + raw + b"-->"
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            packed.writestr(name, text)


def before_the_footer(data: Path, raw: bytes) -> None:
    packed = data.read_bytes()
    place = len(packed) - 8 - int.from_bytes(packed[-8:-4], "little")
    data.write_bytes(packed[:place] + raw + packed[place:])


def in_the_metadata(data: Path, raw: bytes) -> None:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(data)
    pyarrow.parquet.write_table(table.replace_schema_metadata({b"note": raw}), data)


@pytest.mark.parametrize(
    ("kind", "hide"),
    [
        ("csv.gz", in_a_name),
        ("csv.gz", lambda data, raw: behind(data, b"\0" * 16 + raw)),
        ("xlsx", a_further_part),
        ("xlsx", in_the_margin),
        ("parquet", before_the_footer),
        ("parquet", in_the_metadata),
        ("sav", behind),
        ("dta", behind),
    ],
)
def test_the_source_is_not_hidden_in_the_data_file(
    kind: str,
    hide: Callable[[Path, bytes], None],
    releases: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    raw = (releases / "t.csv").read_bytes()
    release, source = tampered(releases, kind, tmp_path / "out", lambda out: hide(out / f"public/data.{kind}", raw))
    assert run(["verify", str(release), "--source", source]) == 4
    assert f"public/data.{kind}" in "".join(capsys.readouterr())


@pytest.mark.parametrize("name", ["extra.csv.gz", ".extra", "Data.csv.gz", "more/data.csv.gz", "data.csv.gz.d/x"])
def test_a_raw_table_in_the_public_folder(name: str, releases: Path, tmp_path: Path) -> None:
    def put(out: Path) -> None:
        path = out / "public" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress((releases / "t.csv").read_bytes()))

    release, source = tampered(releases, "csv.gz", tmp_path / "out", put)
    assert run(["verify", str(release), "--source", source]) == 4


def test_an_empty_folder_and_a_hard_link_are_no_part_of_a_release(releases: Path, tmp_path: Path) -> None:
    release, source = tampered(releases, "csv.gz", tmp_path / "a", lambda out: (out / "public/.git").mkdir())
    assert run(["verify", str(release), "--source", source]) == 4

    def link(out: Path) -> None:
        (out / "public/data2.csv.gz").hardlink_to(out / "public/data.csv.gz")

    release, source = tampered(releases, "csv.gz", tmp_path / "b", link)
    assert run(["verify", str(release), "--source", source]) == 4


def changed(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        text = (out / name).read_text("utf-8")
        assert old in text
        (out / name).write_text(text.replace(old, new, 1), "utf-8")

    return change


@pytest.mark.parametrize("version", ["0.1.9", "9.0.0", ""])
def test_another_text_of_a_page_does_not_agree(
    version: str, releases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = changed("public/external.html", "</main>", "<p>k is 500.</p></main>")
    release, source = tampered(releases, "csv.gz", tmp_path / "out", change, version)
    assert run(["verify", str(release), "--source", source]) == 4
    assert "reports agree" not in "".join(capsys.readouterr())


SCRIPT = '<h:script xmlns:h="http://www.w3.org/1999/xhtml">alert(1)</h:script></codeBook>'


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("public/ddi.xml", "</codeBook>", SCRIPT),
        ("public/ddi.xml", "</codeBook>", '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/></codeBook>'),
        ("public/external.html", "</main>", "<svg onload=alert(1)></main>"),
        ("public/external.html", "</main>", '<a href="javascript:alert(1)">k</a></main>'),
        ("public/external.html", "</main>", '<img src="data:image/svg+xml,x"></main>'),
        ("public/external.html", "</main>", "<style>main{display:none}</style></main>"),
        ("public/external.html", "</main>", '<p title="\x1b$B">k</p></main>'),
    ],
)
def test_a_page_of_another_version_can_only_be_read(
    name: str, old: str, new: str, releases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where it is accepted that the words were not compared."""
    release, source = tampered(releases, "csv.gz", tmp_path / "out", changed(name, old, new), "0.1.9")
    assert run(["verify", str(release), "--source", source, "--other-version"]) == 4
    assert name in "".join(capsys.readouterr())


# The ledger


EXPORTS: dict[str, Callable[[pandas.DataFrame], pandas.DataFrame]] = {
    "one column dropped, shuffled": lambda t: t.drop(columns="eyes").sample(frac=1, random_state=1),
    "renamed": lambda t: t.rename(columns={"job": "Work", "eyes": "e"}),
    "as floats": lambda t: t.assign(age=t["age"].astype(float)),
}
SHIFTED = KEYS.replace("widths = [10, 20]", "widths = [7, 21]")


@pytest.mark.parametrize("name", EXPORTS)
def test_another_export_of_the_same_people_is_recognized(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert published(front_of(tmp_path, people()), tmp_path / "one") == 0
    again = front_of(tmp_path, EXPORTS[name](people()), name="again", keys=SHIFTED)
    capsys.readouterr()
    code = published(again, tmp_path / "two")
    said = "".join(capsys.readouterr())
    assert "same people" in said, said
    assert code == 3 or "It discloses nothing" in said or "link" in said


def test_other_people_with_the_same_columns_are_not_taken_for_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert published(front_of(tmp_path, people()), tmp_path / "one") == 0
    again = front_of(tmp_path, people(2_000, seed=99), name="again", keys=SHIFTED)
    capsys.readouterr()
    assert published(again, tmp_path / "two") == 0
    assert "same people" not in "".join(capsys.readouterr())


def test_two_at_once_of_a_copy_in_other_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy that is shuffled and written with capitals is published while the first is about to get its name."""
    one = front_of(tmp_path, people())
    copy = people().assign(ill=people()["ill"].str.upper()).sample(frac=1, random_state=5)
    two = front_of(tmp_path, copy, name="copy", keys=SHIFTED)
    real, calls = publish.require_source, list[int]()

    def late(*given: object, **named: object) -> None:
        real(*given, **named)  # type: ignore[arg-type]
        calls.append(1)
        if len(calls) == 2:
            assert published(two, tmp_path / "two") == 0

    monkeypatch.setattr(publish, "require_source", late)
    assert published(one, tmp_path / "one") != 0
    assert (tmp_path / "two").exists()
    assert not (tmp_path / "one").exists()


# The policy


def test_an_exact_number_is_not_published_because_it_is_sensitive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people().assign(income=[20_000 + 13 * row for row in range(600)])
    front = front_of(tmp_path, table, 'income = { role = "sensitive" }')
    capsys.readouterr()
    assert published(front, tmp_path / "out") == 3
    assert "identifying:income" in capsys.readouterr().err


@pytest.mark.parametrize(
    "reason", ["", "          ", "xxxxxxxxxxxx", "ab ab ab ab ab", "No no, no. NO no", "\u200b" * 12]
)
def test_a_policy_is_not_weakened_without_a_reason(reason: str, tmp_path: Path) -> None:
    front = front_of(tmp_path, people())
    points = json.loads((front / "front.json").read_text("utf-8"))["points"]
    first = next(str(point["id"]) for point in points if point["loss"] == 0)
    accept = [word for rule in ("raw", "k", "l", "t", "uniques") for word in ("--accept", f"{rule}={reason}")]
    assert run(["publish", str(front), "--point", first, "-o", str(tmp_path / "out"), *accept]) == 2
    text = (tmp_path / "t.toml").read_text("utf-8")
    weak = f"[policy]\nk = 1\nl = 1\nt = 1.0\nuniques = 1.0\nreason = {json.dumps(reason)}\n"
    (tmp_path / "weak.toml").write_text(text + weak, "utf-8")
    assert run(["search", str(tmp_path / "weak.toml"), "-o", str(tmp_path / "weak")]) == 2


def test_original_records_are_raw_however_many_are_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of which a few rows are suppressed and nothing is recoded."""
    table = pandas.concat(
        [people()[["sex", "ill"]].assign(age=30, zip=100), people(1).assign(age=59)[["age", "zip", "sex", "ill"]]]
    )
    front = front_of(tmp_path, table)
    capsys.readouterr()
    points = json.loads((front / "front.json").read_text("utf-8"))["points"]
    kept = [p for p in points if p["suppressed"] and not any(p["plan"].values())]
    assert kept
    assert run(["publish", str(front), "--point", str(kept[0]["id"]), "-o", str(tmp_path / "out")]) == 3
    assert "these are original records" in capsys.readouterr().err
