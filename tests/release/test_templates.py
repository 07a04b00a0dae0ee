"""A sentence of a template may change: releases that were published before still verify, and forged pages never do."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pytest
from tests.release.test_closed import METHODS, changed_text

import sfumato as sf
import sfumato.report.page
from sfumato.base.trust import KEY
from sfumato.release import manifest as pack
from sfumato.report import release_pages
from sfumato.report.release_pages import templates_digest

SENTENCE = "What was done to each column"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that is never changed."""
    folder = tmp_path_factory.mktemp("lattice")
    METHODS["lattice"](folder)(folder / "release")
    return folder / "release"


@pytest.fixture
def release(published: Path, tmp_path: Path) -> Path:
    return shutil.copytree(published, tmp_path / "release")


@pytest.fixture
def reworded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program with another sentence in the template of the public report."""
    package = Path(sf.__file__).parent
    for folder in release_pages.DRAWING:
        shutil.copytree(package / folder, tmp_path / "sfumato" / folder)
    templates = tmp_path / "sfumato" / "report" / "templates"
    changed_text(templates / "external.html", SENTENCE, "The changes to each column")
    before = templates_digest()
    environment = sfumato.report.page._templates().overlay(loader=jinja2.FileSystemLoader(templates), cache_size=0)
    monkeypatch.setattr(sfumato.report.page, "_templates", lambda: environment)
    monkeypatch.setattr(release_pages, "__file__", str(tmp_path / "sfumato" / "report" / "release_pages.py"))
    changed = templates_digest.__wrapped__()
    assert changed != before
    for module in (release_pages, sfumato.release.verify, sfumato.release.publish):
        monkeypatch.setattr(module, "templates_digest", lambda: changed)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine, whose user has another key."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / KEY).write_bytes(secrets.token_bytes(32))
    (folder / KEY).chmod(0o600)
    monkeypatch.setenv("SFUMATO_STATE", str(folder))


def rewritten(release: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """The manifest as a forger writes it: all digests fit, and the old seal is kept."""
    manifest: dict[str, Any] = json.loads((release / pack.MANIFEST).read_text("utf-8"))
    change(manifest)
    manifest["files"] = {name: pack.digest(release / name) for name in manifest["files"]}
    manifest["checksum"] = pack.checksum(manifest)
    (release / pack.MANIFEST).write_text(json.dumps(manifest), "utf-8")


@pytest.mark.usefixtures("reworded")
def test_an_earlier_release_verifies_where_it_was_published(release: Path) -> None:
    assert SENTENCE in (release / pack.EXTERNAL).read_text("utf-8")
    checked = sf.verify(release)
    assert checked, checked.differences
    assert "reports" in checked.compared
    assert checked.pages == ()


@pytest.mark.usefixtures("reworded", "elsewhere")
def test_elsewhere_its_words_are_listed_as_not_compared(release: Path) -> None:
    checked = sf.verify(release)
    assert not checked
    assert checked.differences == ()
    assert pack.EXTERNAL in checked.pages
    assert "reports" not in checked.compared
    assert sf.verify(release, other_version=True)


@pytest.mark.usefixtures("elsewhere")
def test_with_the_same_templates_no_seal_is_needed(release: Path) -> None:
    assert sf.verify(release)


TEMPLATES = ["ours", "theirs", "0" * 64, ""]


@pytest.mark.parametrize("templates", TEMPLATES)
@pytest.mark.parametrize("changed", [False, True], ids=["same templates", "reworded"])
def test_an_edited_page_never_agrees(
    release: Path, templates: str, changed: bool, request: pytest.FixtureRequest
) -> None:
    """Whatever the manifest says of its templates, and although its old seal is still there."""
    if changed:
        request.getfixturevalue("reworded")
    changed_text(release / pack.EXTERNAL, "</p>", " k is 500.</p>")
    stated = {"ours": release_pages.templates_digest(), "theirs": None}.get(templates, templates)
    rewritten(release, lambda m: m.update(templates=stated or m["templates"]))
    checked = sf.verify(release)
    assert not checked
    assert "reports" not in checked.compared or checked.differences
    assert pack.EXTERNAL in {*checked.pages, *(difference.file for difference in checked.differences)}


@pytest.mark.usefixtures("reworded")
def test_the_seal_is_of_the_pages_that_were_published(release: Path) -> None:
    """An edited page under an unchanged manifest, and a script in a page under a manifest that fits."""
    changed_text(release / pack.EXTERNAL, "</p>", " k is 500.</p>")
    assert (pack.EXTERNAL, "its bytes have changed") in {(d.file, d.what) for d in sf.verify(release).differences}
    changed_text(release / pack.EXTERNAL, "</p>", "</p><script>send()</script>")
    rewritten(release)
    assert {(d.file, d.what) for d in sf.verify(release, other_version=True).differences} == {
        (pack.EXTERNAL, "it holds a script or style that is not ours")
    }


@pytest.mark.parametrize("seal", ["x", "A" * 64, 3, None, ["0" * 64]])
def test_a_seal_can_hold_nothing_else(release: Path, seal: Any) -> None:
    """It is under no digest, so its form is checked."""
    rewritten(release, lambda m: m.update(seal=seal))
    assert {difference.file for difference in sf.verify(release).differences} == {pack.MANIFEST}
