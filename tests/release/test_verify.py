"""Verifying: any change to a release is noticed and its file named; no half release ever passes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.release.fronts import front_of, publish, small

from sfumato.errors import InputError, SfumatoError
from sfumato.methods.publish import verify
from sfumato.release.manifest import checksum, digest

DATA = "public/data.csv"
LEVELS = {"age": 2, "post code": 2, "sex": 0}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    publish(front_of(small(folder, rows=400), [LEVELS], 20), 0, folder / "out", state=folder / "state")
    return folder / "out"


@pytest.fixture
def copy(published: Path, tmp_path: Path) -> Path:
    shutil.copytree(published, tmp_path / "out")
    return tmp_path / "out"


def named(folder: Path, source: Path | None = None) -> set[str]:
    return {difference.file for difference in verify(folder, source).differences}


def test_a_copy_verifies(copy: Path, published: Path) -> None:
    verify(copy).raise_if_failed()
    verify(copy, published.parent / "people.csv").raise_if_failed()


@pytest.mark.long
def test_one_byte_of_any_file(copy: Path) -> None:
    for path in sorted(path for path in copy.rglob("*") if path.is_file()):
        raw = path.read_bytes()
        for place in (0, len(raw) // 2, len(raw) - 1):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
            found = named(copy)
            whitespace = path.name == "manifest.json" and raw[place : place + 1].isspace() and not found
            assert whitespace or path.relative_to(copy).as_posix() in found, (path.name, place)
        path.write_bytes(raw)
    verify(copy).raise_if_failed()


def resealed(folder: Path, change: Callable[[dict], None] = lambda manifest: None) -> None:
    """What a forger would do: change, and write every digest and the checksum anew."""
    manifest = json.loads((folder / "private/manifest.json").read_text())
    change(manifest)
    manifest["files"] = {name: digest(folder / name) for name in manifest["files"]}
    manifest["checksum"] = checksum(manifest)
    (folder / "private/manifest.json").write_text(json.dumps(manifest))


def test_one_cell_even_when_the_digests_are_forged(copy: Path, published: Path) -> None:
    rows = (copy / DATA).read_text().splitlines()
    head, *body = rows
    cells = body[3].split(",")
    for place, value in ((0, "20"), (0, "40-59" if cells[0] != "40-59" else "20-39"), (2, ""), (0, "nonsense")):
        changed = [*cells[:place], value, *cells[place + 1 :]]
        (copy / DATA).write_text("\n".join([head, *body[:3], ",".join(changed), *body[4:]]) + "\n")
        assert DATA in named(copy)
        resealed(copy)
        assert DATA in named(copy), (place, value)
    place = next(i for i, row in enumerate(body) if body.count(row) > 1)  # one that is unique would stay so
    income = [*body[place].split(",")[:4], "1"]
    (copy / DATA).write_text("\n".join([head, *body[:place], ",".join(income), *body[place + 1 :]]) + "\n")
    resealed(copy)
    digest = "public/croissant.json"  # it has that of the file
    assert named(copy) == {DATA, digest}  # over all columns together the records are counted,
    assert named(copy, published.parent / "people.csv") == {DATA, digest}  # and the source tells


def test_one_figure_of_a_report_even_when_the_digests_are_forged(copy: Path) -> None:
    for name in ("private/internal.html", "public/external.html"):
        text = (copy / name).read_text()
        changed = re.sub(r'("k": (?:\{"value": )?)(\d+)', lambda m: m[1] + str(int(m[2]) + 1), text, count=1)
        assert changed != text
        (copy / name).write_text(changed)
        assert named(copy) == {name}
        resealed(copy)
        assert name in named(copy)
        (copy / name).write_text(text)
        resealed(copy)


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["figures"]["k"].update(value=m["figures"]["k"]["value"] + 1),
        lambda m: m.update(loss=m["loss"] / 2),
        lambda m: m.update(suppressed=m["suppressed"] - 1),
        lambda m: m.update(records=m["records"] + 1),
        lambda m: m["point"]["values"].update(k=99),
        lambda m: m["point"]["plan"].update(age=1),
        lambda m: m["files"].pop("public/external.html"),
        lambda m: m.pop("figures"),
        lambda m: m.update(figures=3),
        lambda m: m.update(hierarchies={}),
        lambda m: m.update(run_file="nonsense"),
        lambda m: m.update(format=9),
    ],
)
def test_one_figure_of_the_manifest(copy: Path, change: Callable[[dict], None]) -> None:
    manifest = json.loads((copy / "private/manifest.json").read_text())
    change(manifest)
    (copy / "private/manifest.json").write_text(json.dumps(manifest))
    assert "private/manifest.json" in named(copy)
    manifest["checksum"] = checksum(manifest)
    (copy / "private/manifest.json").write_text(json.dumps(manifest))
    assert named(copy)


def test_the_raw_table_in_place_of_the_release(copy: Path, published: Path) -> None:
    """The run file leads to another file than the manifest's, which is the source itself; all digests are forged."""
    moved = copy / "private" / "hierarchies" / "fine.csv"
    (copy / DATA).rename(moved)
    shutil.copy(published.parent / "people.csv", copy / DATA)
    run_file = copy / "private" / "run.toml"
    run_file.write_text(run_file.read_text().replace(f"../{DATA}", "hierarchies/fine.csv"))
    resealed(copy, lambda m: m["files"].update({"private/hierarchies/fine.csv": ""}))
    assert not verify(copy, published.parent / "people.csv")
    outside = published.parent / "elsewhere.csv"
    moved.rename(outside)
    run_file.write_text(run_file.read_text().replace("hierarchies/fine.csv", str(outside)))
    resealed(copy, lambda m: m["files"].pop("private/hierarchies/fine.csv"))
    assert "public/data.csv" in named(copy, published.parent / "people.csv")


def test_a_hierarchy_outside_the_folder_even_when_the_digests_are_forged(copy: Path, tmp_path: Path) -> None:
    """The same labels, elsewhere: who changes that file later changes what the release is measured by."""
    run_file, inside = copy / "private" / "run.toml", "hierarchies/age.csv"
    for outside in (tmp_path / "age.csv", copy / "private" / "age.csv"):
        shutil.copy(copy / "private" / inside, outside)
        text = run_file.read_text()
        run_file.write_text(text.replace(inside, str(outside)))
        assert run_file.read_text() != text
        resealed(copy)
        said = [found.what for found in verify(copy).differences if found.file == DATA]
        assert said == ["it cannot be measured: private/run.toml reads a hierarchy outside private/hierarchies"]
        run_file.write_text(text)


TABLES = {
    "a population": '[population]\npath = "{path}"\n',
    "an auxiliary table": '[groups]\nauxiliary = [{{ path = "{path}" }}]\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_another_table_beside_the_release_even_when_the_digests_are_forged(
    copy: Path, published: Path, name: str
) -> None:
    """A release is measured on its own file alone: its run file can make nobody read another."""
    with (copy / "private" / "run.toml").open("a") as file:
        file.write("\n" + TABLES[name].format(path=published.parent / "people.csv"))
    resealed(copy)
    said = [found.what for found in verify(copy).differences if found.file == DATA]
    assert said == ["it cannot be measured: private/run.toml reads other tables"]


@pytest.mark.parametrize("name", ["public/external.html", "private/internal.html", "public/dictionary.html"])
def test_the_words_of_a_page_even_when_the_digests_are_forged(copy: Path, name: str) -> None:
    """What a reader sees is compared, not only the figures for machines."""
    text = (copy / name).read_text()
    head, block, rest = text.partition('<script type="application/json"')
    changed = head.replace("</p>", " (k = 500)</p>", 1) + block + rest
    assert changed != text
    (copy / name).write_text(changed)
    resealed(copy)
    assert named(copy) == {name}


def test_the_dictionary_even_when_everything_is_forged(copy: Path) -> None:
    from sfumato.release.publish import dictionary_pages
    from sfumato.release.recoding import pages_of

    def forge(manifest: dict) -> None:
        manifest["dictionary"]["columns"][0]["words"] = "Unchanged."
        for name, text in {
            **dictionary_pages(manifest, {"data.csv": manifest["files"][manifest["data"]]}),
            **pages_of(copy, manifest),
        }.items():
            (copy / name).write_text(text)

    resealed(copy, forge)
    assert named(copy) == {"public/dictionary.json"}


def test_an_acceptance_without_its_reason_even_when_everything_is_forged(tmp_path: Path) -> None:
    """A release of original records was accepted; with the reason wiped out, nobody says why."""
    from sfumato.release.recoding import pages_of

    raw = front_of(small(tmp_path), [dict.fromkeys(LEVELS, 0)])
    publish(raw, 0, tmp_path / "out", state=tmp_path / "state")
    verify(tmp_path / "out").raise_if_failed()

    def forge(manifest: dict) -> None:
        (entry,) = manifest["accepted"]
        entry["reason"] = ""
        for name, text in pages_of(tmp_path / "out", manifest).items():
            (tmp_path / "out" / name).write_text(text)

    resealed(tmp_path / "out", forge)
    (found,) = verify(tmp_path / "out").differences
    assert found.file == "private/manifest.json"
    assert "does not give the reason for accepting this: No quasi-identifier of the released records" in found.what


@pytest.mark.parametrize("name", [DATA, "public/external.html", "private/run.toml", "private/hierarchies/age.csv"])
def test_a_link_to_the_same_bytes_is_no_file(copy: Path, tmp_path: Path, name: str) -> None:
    """What a link leads to can be changed later, without a change to the folder."""
    outside = tmp_path / "outside"
    (copy / name).rename(outside)
    (copy / name).symlink_to(outside)
    assert (name, "it is missing") in {(found.file, found.what) for found in verify(copy).differences}


def test_verification_is_true_when_all_agrees(copy: Path) -> None:
    assert verify(copy)
    (copy / "notes.txt").write_text("x")
    checked = verify(copy)
    assert not checked
    with pytest.raises(SfumatoError, match=r"notes\.txt: it is not part of the release"):
        checked.raise_if_failed()


def test_a_source_that_does_not_exist_is_an_input_error(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        verify(copy, tmp_path / "nothing.csv")


def test_extra_and_missing_files(copy: Path) -> None:
    (copy / "notes.txt").write_text("x")
    (copy / "private" / "hierarchies" / "more.csv").write_text("x")
    (copy / "empty").mkdir()
    assert named(copy) == {"notes.txt", "private/hierarchies/more.csv", "empty"}
    for name in ("notes.txt", "private/hierarchies/more.csv"):
        (copy / name).unlink()
    (copy / "empty").rmdir()
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    for path in files:
        raw = path.read_bytes()
        path.unlink()
        assert path.relative_to(copy).as_posix() in named(copy)
        path.write_bytes(raw)
    verify(copy).raise_if_failed()


def test_another_source_and_no_folder(copy: Path, tmp_path: Path, published: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text((published.parent / "people.csv").read_text() + "z,30,111,F,flu,1\n")
    assert named(copy, other) == {"other.csv"}
    with pytest.raises(InputError, match="no folder"):
        verify(tmp_path / "nothing")
    (tmp_path / "bare").mkdir()
    with pytest.raises(InputError, match="is not a release"):
        verify(tmp_path / "bare")
    (tmp_path / "bare" / "private").mkdir()
    assert named(tmp_path / "bare") == {"private/manifest.json"}


ROOT = Path(__file__).parents[2]
KILLER = """
import random, sys
from pathlib import Path
from sfumato.methods.registry import load_front
from tests.moments import attempt
from tests.release.fronts import publish
import plotly.offline, pyarrow, sfumato.measures.registry, sfumato.data.duckdb
sfumato.measures.registry.known_measures()

folder = Path(sys.argv[1])

def publish_to(target):
    publish(load_front(folder / "front"), 0, target, state=folder / "state")
    return 0

code, moments = attempt(lambda: publish_to(folder / "whole"), folder)
assert code == 0 and moments > 20, (code, moments)
rng = random.Random(5)
for number in range(int(sys.argv[2])):
    at = rng.randint(1, moments)
    print(number, attempt(lambda: publish_to(folder / f"r{number}"), folder, at)[0])
"""


@pytest.mark.long
@pytest.mark.parametrize("blows", [3, pytest.param(20, marks=pytest.mark.published)])
def test_killed_at_random_moments(tmp_path: Path, blows: int) -> None:
    front_of(small(tmp_path, rows=400), [LEVELS], 20).save(tmp_path / "front")
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path), str(blows)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    codes = [int(line.split()[1]) for line in done.stdout.splitlines()]
    assert codes.count(-9) >= len(codes) - 1  # a run may have fewer moments than the one that was counted
    for number, code in enumerate(codes):
        folder = tmp_path / f"r{number}"
        if folder.exists():
            verify(folder).raise_if_failed()  # renamed whole, or not at all
        else:
            assert code == -9
    # what a blow left behind is under another name, and passes only if it was complete
    for part in tmp_path.glob(".r*"):
        for inside in (path for path in part.iterdir() if path.is_dir()):
            if not (inside / "private/manifest.json").exists():
                assert not verify(inside)
