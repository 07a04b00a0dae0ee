"""The public part of a release can be checked without the rest: by the command, and by a file without any package."""

from __future__ import annotations

import csv
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import front_of, publish, small, write_csv
from tests.release.test_closed import METHODS, resealed
from tests.release.test_every_system import LEVELS

import sfumato as sf
from sfumato.cli import run
from sfumato.release import checker
from sfumato.release import manifest as pack

RECODED = ("lattice", "cuts", "local", "cells")


@pytest.fixture(scope="module", params=METHODS)
def public(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public part of a release of each method, without the private part; never changed."""
    folder = tmp_path_factory.mktemp(request.param)
    METHODS[request.param](folder)(folder / "release")
    shutil.copytree(folder / "release" / "public", folder / request.param)
    return folder / request.param


def certificate_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / checker.CERTIFICATE).read_text("utf-8"))
    return found


def certified(folder: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """What someone does who forges well: the certificate lists the files as they are now."""
    certificate = certificate_in(folder)
    for name in certificate["files"]:
        if (folder / name).is_file():
            certificate["files"][name] = checker.digest(folder / name)
    change(certificate)
    (folder / checker.CERTIFICATE).write_text(json.dumps(certificate), "utf-8")


def alone(folder: Path) -> tuple[int, str]:
    """The stand-alone checker, without this package in reach."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", checker.__file__, str(folder)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def named(folder: Path) -> set[str]:
    """The files that the command names, which must be those that the stand-alone checker names."""
    found = {difference.file for difference in sf.verify(folder).differences}
    assert found == {file for file, _ in checker.check(folder).differences}
    return found


def test_the_public_part_alone_verifies(public: Path) -> None:
    checked = sf.verify(public)
    assert checked, checked.differences
    figures = {"k", "l", "t"} if public.name in RECODED else set()
    assert set(checked.compared) == {"digests", "counts", "dictionary"} | figures
    assert checked.certificate == checker.digest(public / checker.CERTIFICATE)
    code, said = alone(public)
    assert code == 0, said
    assert checked.certificate in said
    assert sf.verify(public.parent / "release").certificate == checked.certificate


def test_the_figures_are_those_of_the_file(public: Path) -> None:
    """Counted here anew, from the file and the roles in the dictionary alone."""
    dictionary = json.loads((public / "dictionary.json").read_text("utf-8"))
    with (public / "data.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    keys = [column["name"] for column in dictionary["columns"] if column["role"] == "quasi_identifier"]
    sizes = Counter(tuple(row[name] for name in keys) for row in rows)
    figures = certificate_in(public)["figures"]
    if public.name not in RECODED:
        assert figures == {}
        return
    assert figures["k"]["value"] == min(sizes.values())
    held = {group: {row["ill"] for row in rows if tuple(row[name] for name in keys) == group} for group in sizes}
    assert figures["l"]["value"] == min(map(len, held.values()))
    assert 0 <= figures["t"]["value"] <= 1


def test_each_changed_file_is_named(public: Path, tmp_path: Path) -> None:
    """One byte more in any file; and a file that is missing, or one that does not belong there."""
    for name in sorted(certificate_in(public)["files"]):
        copy = shutil.copytree(public, tmp_path / name)
        with (copy / name).open("ab") as stream:
            stream.write(b" ")
        assert name in named(copy)
        assert alone(copy)[0] == 4
        (copy / name).unlink()
        assert name in named(copy)
    copy = shutil.copytree(public, tmp_path / "more")
    (copy / "notes.txt").write_text("x")
    (copy / "folder").mkdir()
    assert named(copy) == {"notes.txt", "folder"}


def changed_row(folder: Path) -> None:
    """A value that nobody else has, in the first key column (in the first column, where there is none)."""
    certificate = certificate_in(folder)
    places = [i for i, column in enumerate(certificate["columns"]) if column["role"] == "quasi_identifier"]
    lines = (folder / "data.csv").read_text("utf-8").split("\n")
    cells = lines[1].split(",")
    cells[(places or [0])[0]] = "another"
    (folder / "data.csv").write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]), "utf-8")


def fewer_rows(folder: Path) -> None:
    lines = (folder / "data.csv").read_text("utf-8").split("\n")
    (folder / "data.csv").write_text("\n".join([lines[0], *lines[2:]]), "utf-8")


def other_words(folder: Path) -> None:
    path = folder / "dictionary.json"
    content = json.loads(path.read_text("utf-8"))
    content["columns"][0]["role"] = "other place"
    path.write_text(json.dumps(content), "utf-8")


def other_figures(folder: Path) -> None:
    path = folder / "external.html"
    head, block, rest = path.read_text("utf-8").partition('id="figures">{')
    path.write_text(f'{head}{block}"more": 1, {rest}', "utf-8")


FORGED = {
    "a row": (changed_row, {"data.csv", "dictionary.json"}),
    "a row less": (fewer_rows, {"data.csv"}),
    "a role": (other_words, {"dictionary.json"}),
    "figures of the report": (other_figures, {"external.html"}),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forgery_with_digests_that_fit_is_named(public: Path, tmp_path: Path, forgery: str) -> None:
    copy = shutil.copytree(public, tmp_path / "public")
    change, files = FORGED[forgery]
    change(copy)
    certified(copy)
    found = named(copy)
    if forgery == "a row" and public.name not in RECODED:
        return  # no figure is stated of this file, so only the digest of the certificate shows the change
    if forgery == "a row less" and public.name == "channel":
        return  # how many records a disguised file has is not stated
    assert found
    assert found <= files


@pytest.mark.parametrize("figure", ["k", "l", "t"])
def test_a_forged_figure_is_named(public: Path, tmp_path: Path, figure: str) -> None:
    if public.name not in RECODED:
        assert figure not in certificate_in(public)["figures"]
        return
    copy = shutil.copytree(public, tmp_path / "public")
    certified(copy, lambda one: one["figures"][figure].update(value=one["figures"][figure]["value"] + 0.25))
    assert named(copy) == {"data.csv"}
    assert f"its {figure} is" in alone(copy)[1]


NONSENSE = [
    "",
    "[]",
    "{}",
    "null",
    '{"format": "sfumato-certificate", "version": 1, "files": 3, "data": []}',
    "[" * 99_999,
]


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_a_difference_and_never_a_crash(tmp_path: Path, text: str) -> None:
    (tmp_path / checker.CERTIFICATE).write_text(text)
    assert named(tmp_path) == {checker.CERTIFICATE}
    assert alone(tmp_path)[0] == 4


def test_every_entry_of_a_certificate_may_be_of_another_kind(public: Path, tmp_path: Path) -> None:
    """Each leaf in turn replaced by something else: a difference, or nothing that was compared; never a crash."""
    copy = shutil.copytree(public, tmp_path / "public")
    original = certificate_in(public)
    for path in leaves(original):
        for other in (None, [], {}, "x", -1):
            forged = json.loads(json.dumps(original))
            place = forged
            for name in path[:-1]:
                place = place[name]
            place[path[-1]] = other
            (copy / checker.CERTIFICATE).write_text(json.dumps(forged), "utf-8")
            checker.check(copy)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for name, one in inner for found in [(*path, name), *leaves(one, (*path, name))]]


def test_a_folder_without_a_certificate_is_no_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "external.html").write_text("x")
    assert run(["verify", str(tmp_path)]) == 2
    assert alone(tmp_path)[0] == 2
    assert run(["verify", str(tmp_path / "nothing")]) == 2
    assert alone(tmp_path / "nothing")[0] == 2
    assert "is not a release" in capsys.readouterr().err


def test_the_command_line(public: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digest = checker.digest(public / checker.CERTIFICATE)
    assert run(["verify", str(public)]) == 0
    printed = capsys.readouterr()
    assert "agrees with its certificate: digests" in printed.out
    assert digest in printed.err
    assert run(["verify", str(public.parent / "release")]) == 0
    assert digest in capsys.readouterr().err
    copy = shutil.copytree(public, tmp_path / "public")
    (copy / "external.html").write_text("x")
    assert run(["verify", str(copy), "--json"]) == 4
    said = json.loads(capsys.readouterr().out)
    assert said["differences"] == [{"file": "external.html", "what": "its bytes have changed"}]
    assert said["certificate"] == digest
    assert run(["verify", str(public), "--source", str(public.parent / "people.csv")]) == 2


def test_a_forged_certificate_in_a_whole_release(public: Path, tmp_path: Path) -> None:
    """The publisher's check draws the certificate again, so one that was changed differs whatever the digests say."""
    release = shutil.copytree(public.parent / "release", tmp_path / "release")
    certified(release / "public", lambda one: one.update(version=1, more="x"))
    resealed(release)
    assert {difference.file for difference in sf.verify(release).differences} == {pack.CERTIFICATE}


def test_nothing_private_is_certified(public: Path) -> None:
    """No digest of the source, no count of removed records, no name of a column or table that was not released."""
    text = (public / checker.CERTIFICATE).read_text("utf-8")
    manifest = json.loads((public.parent / "release" / pack.MANIFEST).read_text("utf-8"))
    assert manifest["source"]["sha256"] not in text
    assert "people" not in text
    certificate = certificate_in(public)
    assert set(certificate) == {"format", "version", "data", "reading", "columns", "figures", "report", "files"}
    assert not {"removed", "left_out", "path"} & set(certificate["reading"])
    assert {column["name"] for column in certificate["columns"]} == set(manifest["columns"])


def test_formats(tmp_path: Path) -> None:
    """Figures of Parquet are recomputed by the command alone, and of compressed CSV by both; of others none."""
    study = small(tmp_path)
    for kind, name in (("csv", "data.csv.gz"), ("parquet", "data.parquet"), ("xlsx", "data.xlsx")):
        folder = tmp_path / kind
        publish(front_of(study, [LEVELS], 20), 0, folder, state=tmp_path / "state", name=name, format=kind)
        shutil.move(folder / "public", tmp_path / name)
        checked, other = sf.verify(tmp_path / name), checker.check(tmp_path / name)
        assert checked, checked.differences
        assert ("k" in checked.compared) == (kind != "xlsx")
        assert ("k" in other.compared) == (kind == "csv")
        assert other.differences == []
        assert any(f"{kind} file" in what for what in other.not_compared) == (kind != "csv")
    certified(tmp_path / "data.parquet", lambda one: one["figures"]["k"].update(value=99))
    assert [d.file for d in sf.verify(tmp_path / "data.parquet").differences] == ["data.parquet"]


@pytest.mark.parametrize("distance", ["equal", "ordered", None])
def test_distances_of_numbers_and_words(tmp_path: Path, distance: str | None) -> None:
    """t of two sensitive columns with missing values, one of numbers and one of words."""
    more = {} if distance is None else {"distance": distance}
    columns = {"income": {"role": "sensitive", **more}, "ill": {"role": "sensitive", **more}}
    study = small(tmp_path, rows=300, **columns)
    text = (tmp_path / "people.csv").read_text("utf-8").replace(",flu,", ",?,", 9).replace(",110\n", ",?\n")
    (tmp_path / "people.csv").write_text(text, "utf-8")
    publish(front_of(study, [LEVELS], 20), 0, tmp_path / "out", state=tmp_path / "state")
    shutil.move(tmp_path / "out" / "public", tmp_path / "public")
    checked = sf.verify(tmp_path / "public")
    assert checked, checked.differences
    assert {"k", "l", "t"} <= set(checked.compared)
    certified(tmp_path / "public", lambda one: one["figures"]["t"].update(value=one["figures"]["t"]["value"] * 1.01))
    assert named(tmp_path / "public") == {"data.csv"}


def test_what_cannot_be_recomputed_is_listed(tmp_path: Path) -> None:
    """Wildcards among the keys, and harmless sensitive values: the reason is given, and nothing is said to agree."""
    study = small(tmp_path, missing="wildcard", ill={"role": "sensitive", "harmless": ["cold"]})
    publish(front_of(study, [LEVELS]), 0, tmp_path / "out", state=tmp_path / "state")
    shutil.move(tmp_path / "out" / "public", tmp_path / "public")
    checked = sf.verify(tmp_path / "public")
    assert checked, checked.differences
    assert any(what == "k: a missing key value counts as equal to any value" for what in checked.not_compared)
    assert "l" not in checked.compared
    assert any(what.startswith("l: some sensitive values are declared harmless") for what in checked.not_compared)
    certificate = certificate_in(tmp_path / "public")
    assert "cold" not in json.dumps(certificate)


def test_figures_in_persons_are_lower_bounds(tmp_path: Path) -> None:
    """The file has no number of a person, so k in rows must be at least the stated k in persons."""
    rng = random.Random(3)
    rows: list[list[Any]] = [["person", "age", "sex", "ill"]]
    for person in range(120):
        who = [person, rng.choice([30, 40]), rng.choice("FM")]
        rows += [[*who, rng.choice(["flu", "cold", "gout"])] for _ in range(rng.randint(1, 3))]
    write_csv(tmp_path / "visits.csv", rows)
    columns = {
        "person": {"role": "unit"},
        "age": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "sex": {"role": "quasi_identifier", "hierarchy": {"build": "flat"}},
        "ill": {"role": "sensitive"},
    }
    study = sf.Study(data={"path": str(tmp_path / "visits.csv")}, columns=columns)
    front = sf.search(study)
    accept = dict.fromkeys(("uniques", "raw", "k", "t"), "a small table made for a test")
    sf.publish(sf.pick(front, point=0), tmp_path / "out", accept=accept, state=tmp_path / "state")
    shutil.move(tmp_path / "out" / "public", tmp_path / "public")
    figures = certificate_in(tmp_path / "public")["figures"]
    assert (figures["k"]["compare"], figures["k"]["counts"]) == ("at least", "person")
    assert "t" not in figures
    checked = sf.verify(tmp_path / "public")
    assert checked, checked.differences
    assert "k" in checked.compared
    certified(tmp_path / "public", lambda one: one["figures"]["k"].update(value=10_000))
    assert named(tmp_path / "public") == {"data.csv"}


def test_suppressed_and_left_out_records(tmp_path: Path) -> None:
    study = small(tmp_path, missing="drop", rows=400)
    release = publish(front_of(study, [{**LEVELS, "age": 1}], 60), 0, tmp_path / "out", state=tmp_path / "state")
    assert release.manifest["suppressed"] > 0
    assert release.manifest["left_out"] > 0
    shutil.move(tmp_path / "out" / "public", tmp_path / "public")
    checked = sf.verify(tmp_path / "public")
    assert checked, checked.differences
    assert checked.counts == {"released": release.manifest["released"]}
    assert set(checked.compared) == {"digests", "counts", "dictionary", "k", "l", "t"}
