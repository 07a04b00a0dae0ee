"""A release folder holds what its method writes and nothing else; a page holds nothing that runs or loads."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.release.fronts import ANYTHING, small
from tests.release.test_every_system import SYSTEMS

import sfumato as sf
from sfumato.cli import run
from sfumato.release import manifest as pack
from sfumato.release.contents import active_in, strange_in
from sfumato.release.publish import Release
from sfumato.release.verify import VerificationError

WHY = "a small table made for a test"


def boxes(system: str) -> Callable[[Path], Callable[[Path], Release]]:
    def made(folder: Path) -> Callable[[Path], Release]:
        study = small(folder, rows=90, income={"role": "drop"})
        study = study.model_copy(update={"policy": ANYTHING}).with_search(system=system)
        study = study.with_settings({system: {"k": [3]}})
        front = sf.search(study)
        accept = dict.fromkeys(("k", "uniques"), WHY)
        return lambda out: sf.publish(sf.pick(front, point=0), out, accept=accept, state=out.parent / "state")

    return made


METHODS = {**SYSTEMS, "local": boxes("local"), "cells": boxes("cells")}


@pytest.fixture(scope="module", params=METHODS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of each method beside its source, never changed."""
    folder = tmp_path_factory.mktemp(request.param)
    METHODS[request.param](folder)(folder / "release")
    return folder


@pytest.fixture(scope="module")
def lattice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lattice")
    METHODS["lattice"](folder)(folder / "release")
    return folder


def resealed(release: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """What someone does who tampers well: certificate and manifest list every file, and all digests fit."""
    certificate = json.loads((release / pack.CERTIFICATE).read_text("utf-8"))
    certificate["files"] = {name: pack.digest(release / "public" / name) for name in certificate["files"]}
    text = json.dumps(certificate, indent=1, ensure_ascii=False)
    (release / pack.CERTIFICATE).write_text(text + "\n", "utf-8")
    manifest: dict[str, Any] = json.loads((release / pack.MANIFEST).read_text("utf-8"))
    change(manifest)
    (release / pack.MANIFEST).unlink()
    pack.write_manifest(release, {k: v for k, v in manifest.items() if k != "checksum"})  # type: ignore[typeddict-item]


def older(manifest: dict[str, Any]) -> None:
    manifest["versions"]["sfumato"] = "0.1.9"


def copied(made: Path, folder: Path) -> Path:
    shutil.copytree(made / "release", folder / "out")
    return folder / "out"


def files_that_differ(release: Path, source: Path) -> set[str]:
    return {difference.file for difference in sf.verify(release, source).differences}


PLACES = ("", "public", "private", "private/hierarchies", "public/more", "private/more", "public/data.csv.d", "other")
NAMES = (
    "extra.csv.gz",
    "data2.csv",
    "part-00000.csv",
    "external2.html",
    ".hidden",
    "DATA.CSV",
    "people.csv",
    "column1.csv",
)


@pytest.mark.long
def test_any_other_file_anywhere_is_a_difference(made: Path, tmp_path: Path) -> None:
    """The source itself, under any name and in any place, listed in the manifest or not."""
    rng = random.Random(7)
    release, source = copied(made, tmp_path), made / "people.csv"
    assert sf.verify(release, source)
    there = {path.relative_to(release).as_posix() for path in release.rglob("*") if path.is_file()}
    for place in PLACES:
        name = "/".join(filter(None, (place, rng.choice(NAMES))))
        if name in there:
            continue
        path = release / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)
        assert name in files_that_differ(release, source), name
        manifest = (release / pack.MANIFEST).read_bytes()
        resealed(release)
        assert name in files_that_differ(release, source), name
        (release / pack.MANIFEST).write_bytes(manifest)
        (release / pack.MANIFEST).chmod(0o600)
        path.unlink()
        if not any(path.parent.iterdir()) and path.parent.relative_to(release).as_posix() in PLACES[4:]:
            path.parent.rmdir()
    assert sf.verify(release, source)


def test_a_hierarchy_that_the_manifest_adds_is_no_file_of_a_release(lattice: Path, tmp_path: Path) -> None:
    """The entry of a column that is not released, or of one that does not exist, brings no file with it."""
    for column in ("name", "nothing"):
        release = tmp_path / column
        shutil.copytree(lattice / "release", release)
        file = f"private/hierarchies/{column}.csv"
        shutil.copy(lattice / "people.csv", release / file)

        def add(manifest: dict[str, Any], column: str = column, file: str = file) -> None:
            entry = dict(next(iter(manifest["hierarchies"].values())))
            manifest["hierarchies"][column] = entry | {"file": file, "named": None}

        resealed(release, add)
        assert file in files_that_differ(release, lattice / "people.csv")


@pytest.mark.parametrize(
    "data", ["public/data.*", "private/run.toml", "public/../private/run.toml", "public/external.html"]
)
def test_a_data_file_with_an_impossible_name(lattice: Path, tmp_path: Path, data: str) -> None:
    release = copied(lattice, tmp_path)
    resealed(release, lambda manifest: manifest.update(data=data))
    assert not sf.verify(release, lattice / "people.csv")


def changed_text(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text, (path, old)
    path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.long
def test_pages_of_another_version_are_not_compared(made: Path, tmp_path: Path) -> None:
    """An honest release of another version, and one with k changed in the text: neither is said to agree."""
    release, source = copied(made, tmp_path), made / "people.csv"
    page = release / pack.EXTERNAL
    for text in (page.read_text("utf-8"), page.read_text("utf-8").replace("</p>", " k is 500.</p>", 1)):
        page.write_text(text.replace("Made with Sfumato", "Made by Sfumato"), "utf-8")
        resealed(release, older)
        checked = sf.verify(release, source)
        assert not checked
        assert not checked.differences
        assert pack.EXTERNAL in checked.pages
        assert "reports" not in checked.compared
        assert any(pack.EXTERNAL in text and "0.1.9" in text for text in checked.not_compared)
        with pytest.raises(VerificationError, match="which were not compared") as raised:
            checked.raise_if_failed()
        assert raised.value.exit_code == 4
        known = sf.verify(release, source, other_version=True)
        assert known
        assert "reports" not in known.compared


def test_the_command_ends_with_4_and_does_not_say_that_reports_agree(
    lattice: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = copied(lattice, tmp_path)
    changed_text(release / pack.EXTERNAL, "Made with", "Made by")
    resealed(release, older)
    assert run(["verify", str(release)]) == 4
    printed = capsys.readouterr()
    assert "reports agree" not in printed.out
    assert "is as it was published" not in printed.out
    assert "public/external.html" in printed.err
    assert run(["verify", str(release), "--other-version"]) == 0
    assert "reports agree" not in capsys.readouterr().out
    assert run(["verify", str(release), "--other-version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pages_not_compared"] == [pack.EXTERNAL, pack.INTERNAL]
    changed_text(release / pack.EXTERNAL, "Made by", "Made at")
    assert run(["verify", str(release), "--other-version"]) == 4


ACTIVE = {
    "a script": "<script>fetch('x')</script>",
    "a script elsewhere": '<script src="https://example.org/x.js"></script>',
    "a script in data": '<script type="application/json" id="figures"><!--<script></script>',
    "a style": "<style>body{display:none}</style>",
    "an image": '<img src="https://example.org/x.png">',
    "a picture within": '<img src="data:image/png;base64,xx">',
    "an event": '<p onmouseover="alert(1)">x</p>',
    "another event": '<button onclick="alert(1)">x</button>',
    "a link": '<a href="https://example.org">x</a>',
    "a style sheet": '<link rel="stylesheet" href="https://example.org/x.css">',
    "a refresh": '<meta http-equiv="refresh" content="0;url=https://example.org">',
    "an address in a style": '<p style="background:url(https://example.org/x)">x</p>',
    "an escaped address": r'<p style="background:\75 rl(//example.org)">x</p>',
    "a frame": "<iframe srcdoc='x'></iframe>",
    "a drawing": "<svg onload=alert(1)></svg>",
    "a form": '<form action="https://example.org"><input name="k"></form>',
    "capitals": "<ScRiPt>alert(1)</sCrIpT>",
    "broken": "<p/onclick=alert(1) x>x</p>",
    "a comment": "<!--[if IE]><script>alert(1)</script><![endif]-->",
    "a base": '<base href="https://example.org/">',
    "an object": '<object data="x"></object>',
}


@pytest.mark.parametrize("what", ACTIVE)
def test_nothing_that_runs_or_loads_is_accepted_in_any_version(lattice: Path, tmp_path: Path, what: str) -> None:
    release = copied(lattice, tmp_path)
    for name in (pack.EXTERNAL, pack.INTERNAL, pack.DICTIONARY[1]):
        page = release / name
        text = page.read_text("utf-8")
        page.write_text(text.replace("</main>", f"{ACTIVE[what]}</main>", 1), "utf-8")
        resealed(release, older)
        checked = sf.verify(release, lattice / "people.csv", other_version=True)
        assert [d.file for d in checked.differences] == [name], what
        page.write_text(text, "utf-8")
    changed_text(release / "public/ddi.xml", "?>", '?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>')
    resealed(release, older)
    assert files_that_differ(release, lattice / "people.csv") == {"public/ddi.xml"}


def test_our_own_pages_hold_nothing_that_is_not_accounted_for(made: Path) -> None:
    """Every page in plain form: nothing is excused because our own drawing has it too, but the button and scripts."""
    for path in (made / "release").rglob("*.html"):
        found = active_in(path.read_text("utf-8"))
        allowed = {'<button class="print" type="button" onclick="print()">', '<meta charset="utf-8">'}
        allowed.add('<meta name="viewport" content="width=device-width, initial-scale=1">')
        assert found.tags <= allowed, path.name
        assert strange_in(path.read_text("utf-8"), path.read_text("utf-8")) == ""


def test_changed_words_of_the_dictionary_are_a_difference_in_any_version(lattice: Path, tmp_path: Path) -> None:
    release = copied(lattice, tmp_path)
    words = json.loads((release / pack.DICTIONARY[0]).read_text("utf-8"))["columns"][0]["words"]
    changed_text(release / pack.DICTIONARY[1], words, "Unchanged.")
    resealed(release, older)
    checked = sf.verify(release, lattice / "people.csv", other_version=True)
    assert [difference.file for difference in checked.differences] == [pack.DICTIONARY[1]]


def test_a_figure_that_cannot_be_compared_is_named_with_a_reason(lattice: Path, tmp_path: Path) -> None:
    release = copied(lattice, tmp_path)
    resealed(release, lambda manifest: manifest["own"].pop("released_loss"))
    texts = [str(difference) for difference in sf.verify(release, lattice / "people.csv").differences]
    assert any(re.search(r"cannot be .*: an entry of the manifest is missing", text) for text in texts), texts
