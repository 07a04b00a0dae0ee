"""A protected file is released as it was measured: attacked again after writing, verified, and nothing believed."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.methods.groups.files import protected_front, protected_study
from tests.release.fronts import publish_protection

import sfumato as sf
from sfumato.cli import run
from sfumato.methods.groups.search import Level, worth_offering
from sfumato.methods.registry import load_front
from sfumato.plans.swaps import SwapPlan
from sfumato.release import manifest as pack

Capture = pytest.CaptureFixture[str]
UNIQUE = {"uniques": "a small table made for a test"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A protection and its release, beside the tables they are made from; never changed."""
    folder = tmp_path_factory.mktemp("canary-groups")
    protected_study(folder)
    protected_front(folder).save(folder / "out")
    accept = {**UNIQUE, "attacks": "so small a table cannot be hidden better"}
    publish_protection(load_front(folder / "out"), folder / "release", accept=accept, state=folder / "state")
    return folder


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    """A copy of the protection that a test may spoil."""
    shutil.copytree(made / "out", tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "release", tmp_path / "release")
    return tmp_path / "release"


def json_of(capsys: Capture, *words: str | Path) -> tuple[int, dict[str, Any]]:
    code = run([str(word) for word in (*words, "--json")])
    return code, json.loads(capsys.readouterr().out)


def resealed(release: Path, manifest: dict[str, Any] | None = None) -> None:
    """A manifest whose digests and checksum fit the folder again: what someone does who tampers well."""
    manifest = manifest or pack.read_manifest(release)
    (release / pack.MANIFEST).unlink()
    pack.write_manifest(release, {name: value for name, value in manifest.items() if name != "checksum"})


def change(*keys: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def changed(told: dict[str, Any]) -> None:
        inside: Any = told
        for key in keys[:-1]:
            inside = inside[key]
        assert inside[keys[-1]] != to
        inside[keys[-1]] = to

    return changed


LIES = {
    "found before": change("details", "found_before", to=9999),
    "found": change("points", 0, "values", "findings", to=123),
    "cost": change("points", 0, "values", "cost", to=0.001),
    "loss": change("points", 0, "loss", to=0.0),
    "an attack": change("points", 0, "details", "residual", 0, "ranks_after", to=[6]),
    "members": change("details", "areas", 0, "q", "secret", to=1),
    "members after": change("points", 0, "details", "q_after", "secret", 0, to=1),
    "a signal": change("points", 0, "details", "signals", 0, "after", 0, to=1.0),
    "sensitive": change("details", "sensitive", to=["B"]),
    "records": change("rows", to=1000),
}


@pytest.mark.long
@pytest.mark.parametrize("lie", LIES)
def test_a_tampered_protection_is_not_published(
    lie: str, out: Path, made: Path, tmp_path: Path, capsys: Capture
) -> None:
    told = json.loads((out / "front.json").read_text("utf-8"))
    LIES[lie](told)
    (out / "front.json").write_text(json.dumps(told), "utf-8")
    accepted = [word for rule in ("uniques", "attacks") for word in ("--accept", f"{rule}=only to see what happens")]
    words = ["publish", out, "-o", tmp_path / "never", *accepted]
    assert json_of(capsys, *words)[0] == 2  # the folder's seal is broken
    code, found = json_of(capsys, *words, "--run", made / "run.toml")
    assert (code, "error" in found) == (2, True), found
    assert "nothing was released" in found["error"]["what"]
    assert not (tmp_path / "never").exists()


def test_tampered_swaps_are_not_published(out: Path, made: Path, tmp_path: Path) -> None:
    """Another pair, a row that is not there, a pair less: none is what the protection says."""

    def next_row(plan: dict[str, Any]) -> None:
        taken = {*plan["givers"], *plan["takers"]}
        plan["takers"][0] = next(i for i in range(300) if i not in taken)

    def far_row(plan: dict[str, Any]) -> None:
        plan["givers"][0] = 10**6

    def one_less(plan: dict[str, Any]) -> None:
        del plan["givers"][0], plan["takers"][0]

    def half_a_pair(plan: dict[str, Any]) -> None:
        del plan["givers"][0]

    def twice(plan: dict[str, Any]) -> None:
        plan["takers"][0] = plan["givers"][0]

    for how in (next_row, far_row, one_less, half_a_pair, twice):
        shutil.copytree(out, tmp_path / "spoiled")
        told = json.loads((out / "front.json").read_text("utf-8"))
        for point in told["points"]:
            how(point["plan"])
        (tmp_path / "spoiled" / "front.json").write_text(json.dumps(told), "utf-8")
        with pytest.raises(
            sf.InputError,
            match=r"the protection says|that are not in the file|cannot be read|below the lower bound",
        ):
            publish_protection(load_front(tmp_path / "spoiled", made / "run.toml"), tmp_path / "never", accept=UNIQUE)
        assert not (tmp_path / "never").exists()
        shutil.rmtree(tmp_path / "spoiled")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"points": [], "chosen": 0, "fingerprint": ""}', "[" * 5000, '{"points": [{"id": NaN}]}', "nul"],
)
def test_what_is_no_protection_is_said(text: str, out: Path) -> None:
    (out / "front.json").write_text(text, "utf-8")
    with pytest.raises(sf.InputError, match=r"front\.json (cannot be read|is nested too deeply|holds NaN)"):
        load_front(out)


def test_a_release_is_verified_and_attacked_again(release: Path, made: Path, capsys: Capture) -> None:
    code, found = json_of(capsys, "verify", release)
    assert (code, found["differences"]) == (0, [])
    assert found["not_compared"][0].startswith("what attacks find")
    code, found = json_of(capsys, "verify", release, "--source", made / "t.csv")
    assert (code, found["differences"], "rows" in found["compared"]) == (0, [], True)
    code, found = json_of(capsys, "verify", release, "--source", made / "run.toml")
    assert (code, found["differences"], found["not_compared"]) == (0, [], [])
    assert {"rows", "attacks"} <= set(found["compared"])


def test_a_release_cannot_be_applied_to_another_file(release: Path, made: Path, capsys: Capture) -> None:
    code, found = json_of(capsys, "apply", release, made / "t.csv", "-o", made / "never")
    assert code == 2, found
    assert "internal error" not in found["error"]["what"]


def forged(release: Path, lie: Callable[[dict[str, Any]], None]) -> None:
    """A manifest that says something else, with pages that say the same, all digests fitting."""
    from sfumato.methods.groups.release import pages_of

    manifest = pack.read_manifest(release)
    lie(manifest)
    for name, text in pages_of(release, manifest).items():
        (release / name).write_text(text, "utf-8")
    resealed(release, manifest)


def hidden(manifest: dict[str, Any]) -> None:
    """As if no attack had found anything after."""
    told = manifest["own"]["protection"]
    for rows in (manifest["own"]["attacks"], told["points"][told["chosen"]]["residual"]):
        for row in rows:
            row |= {"areas_after": 0, "found_after": dict.fromkeys(row["found_after"], 0), "protected": True}
            row["low_after"] = 0
    for point in (manifest["point"], told["points"][told["chosen"]]):
        point |= {"found": 0, "found_after": dict.fromkeys(point["found_after"], 0)}
        point["sealed"] = {"attacks": point["sealed"]["attacks"], "finding": 0, "areas": 0, "low": 0}
    told["holds"] = True
    manifest["figures"]["found_after"] = 0


def seen_before(manifest: dict[str, Any]) -> None:
    """As if the attacks had found more before."""
    told = manifest["own"]["protection"]
    for rows in (manifest["own"]["attacks"], told["points"][told["chosen"]]["residual"]):
        rows[-1]["areas_before"] = 1 - rows[-1]["areas_before"]  # a held-out attack
    sealed = [row for row in manifest["own"]["attacks"] if row["role"] == "sealed"]
    manifest["figures"]["found_before"] = sum(row["areas_before"] for row in sealed)
    told["found_before"] = manifest["figures"]["found_before"]


def test_forged_figures_are_found_by_attacking_again(release: Path, made: Path) -> None:
    manifest = pack.read_manifest(release)
    forged(release, hidden if manifest["figures"]["found_after"] else seen_before)
    assert sf.verify(release).not_compared
    checked = sf.verify(release, made / "run.toml")
    assert any("what attacks find in the repeated attack" in d.what for d in checked.differences), checked.differences


def test_figures_that_do_not_fit_are_found_without_any_source(release: Path) -> None:
    forged(release, change("figures", "found_before", to=9999))
    assert any("its found_before is not what the released files show" in d.what for d in sf.verify(release).differences)


def test_a_cost_that_does_not_fit_is_found_without_any_source(release: Path) -> None:
    def cheaper(manifest: dict[str, Any]) -> None:
        told = manifest["own"]["protection"]
        for point in (manifest["point"], told["points"][told["chosen"]]):
            point["cost"] = point["bound"] = 1.0
        manifest["figures"]["cost"] = 1.0

    forged(release, cheaper)
    assert any("its loss do not agree" in d.what for d in sf.verify(release).differences)


def test_the_file_as_it_was_is_not_the_release(release: Path, made: Path) -> None:
    """Without the group's column, but nobody moved: the rows pass for exchanged ones, the attacks do not."""
    lines = [line.rsplit(",", 1)[0] for line in (made / "t.csv").read_text("utf-8").splitlines()]
    (release / "public" / "data.csv").write_text("\n".join(lines) + "\n", "utf-8")
    resealed(release)
    checked = sf.verify(release, made / "run.toml")
    assert any("what attacks find" in d.what for d in checked.differences), checked.differences


def test_more_rows_in_another_place_than_the_swaps_can_have_moved_are_found(release: Path, made: Path) -> None:
    """Every row takes the town of the next: towns occur as often as before, but each swap moves two rows only."""
    path = release / "public" / "data.csv"
    head, *lines = path.read_text("utf-8").splitlines()
    cells, place = [line.split(",") for line in lines], head.split(",").index("town")
    towns = [row[place] for row in cells]
    for row, town in zip(cells, towns[1:] + towns[:1], strict=True):
        row[place] = town
    path.write_text("\n".join([head, *(",".join(row) for row in cells)]) + "\n", "utf-8")
    resealed(release)
    source = Counter(line.rsplit(",", 1)[0] for line in (made / "t.csv").read_text("utf-8").splitlines()[1:])
    now = Counter(",".join(row) for row in cells)
    assert (source - now).total() > 2 * pack.read_manifest(release)["point"]["swaps"]
    found = [d.what for d in sf.verify(release, made / "t.csv").differences]
    assert any("more rows have another place than the swaps can have moved" in what for what in found), found


def test_another_run_file_or_auxiliary_file_is_not_taken(release: Path, made: Path, tmp_path: Path) -> None:
    for name in ("t.csv", "aux.csv", "run.toml"):
        shutil.copy(made / name, tmp_path / name)
    assert sf.verify(release, tmp_path / "run.toml")  # the same files elsewhere
    text = (tmp_path / "run.toml").read_text("utf-8")
    (tmp_path / "run.toml").write_text(text.replace("fresh_seeds = 1", "fresh_seeds = 2"), "utf-8")
    assert any("is not that of the release" in d.what for d in sf.verify(release, tmp_path / "run.toml").differences)
    (tmp_path / "run.toml").write_text(text, "utf-8")
    (tmp_path / "aux.csv").write_text((tmp_path / "aux.csv").read_text("utf-8") + "20,1,A,55\n", "utf-8")
    assert any("not the one of the release" in d.what for d in sf.verify(release, tmp_path / "run.toml").differences)


def test_what_attacks_still_find_must_be_accepted(tmp_path: Path, capsys: Capture) -> None:
    """A target that is met may still leave an area that attacks find."""
    protected_study(tmp_path)
    text = (tmp_path / "run.toml").read_text("utf-8")
    (tmp_path / "run.toml").write_text(text.replace("levels = 2", "targets = { A = 45 }"), "utf-8")
    code, told = json_of(capsys, "search", tmp_path / "run.toml", "-o", tmp_path / "out")
    assert (code, told["met"]) == (3, False), told
    assert any(sentence.startswith("not hidden: after point") for sentence in told["sentences"])
    words = ["publish", tmp_path / "out", "-o", tmp_path / "release"]
    words += ["--accept", "uniques=a small table made for a test"]
    code, found = json_of(capsys, *words)
    assert code == 3, found
    assert "attacks on the written file still identify an area" in found["error"]["what"]
    assert not (tmp_path / "release").exists()
    code, found = json_of(capsys, *words, "--accept", "attacks=the area is known to everybody")
    assert code == 0, found
    internal = (tmp_path / "release" / "private" / "internal.html").read_text("utf-8")
    assert "the area is known to everybody" in internal
    manifest = pack.read_manifest(tmp_path / "release")
    assert manifest["figures"]["found_after"] > 0
    resealed(tmp_path / "release", manifest | {"accepted": []})
    differences = sf.verify(tmp_path / "release").differences
    assert any("does not give the reason for accepting this" in d.what for d in differences)


def test_uniqueness_over_all_columns_is_stated_and_held_to_the_policy(made: Path, tmp_path: Path) -> None:
    with pytest.raises(sf.UnreachableError, match=r"released records .* are unique") as raised:
        publish_protection(
            load_front(made / "out"), tmp_path / "out", accept={"attacks": "so small a table"}, state=tmp_path
        )
    rows = [tuple(line.split(",")[:3]) for line in (made / "t.csv").read_text("utf-8").splitlines()[1:]]
    manifest = pack.read_manifest(made / "release")
    released = [
        tuple(line.split(",")) for line in (made / "release/public/data.csv").read_text("utf-8").splitlines()[1:]
    ]
    alone = sum(released.count(row) == 1 for row in released)
    assert manifest["whole"]["all_columns"]["unique"] == alone
    assert f"{alone:,} of {len(rows):,} released records" in str(raised.value)
    assert "columns together" in (made / "release" / "public" / "external.html").read_text("utf-8")


def level(findings: int, near: int, cost: float) -> Level:
    """A level as the filter sees it."""

    class Given(Level):
        @property
        def findings(self) -> int:
            return findings

        @property
        def near(self) -> int:
            return near

    return Given(0.5, SwapPlan(np.array([0]), np.array([1]), cost), 0.0, ())


def test_only_points_worth_their_cost_are_offered() -> None:
    nothing = level(45, 3, 0.0)
    useless, good, dear, lower = level(45, 1, 195.0), level(20, 5, 300.0), level(20, 5, 301.0), level(20, 2, 400.0)
    assert worth_offering([useless, good, dear, lower], nothing) == [good, lower]
    assert worth_offering([useless], nothing) == [nothing]
    assert worth_offering([level(0, 0, 10.0)], level(0, 0, 0.0))[0].plan.cost == 0


def test_the_points_of_a_protection_are_a_front(made: Path) -> None:
    front = load_front(made / "out")
    figures = [(p.values["findings"], p.details["near"], p.values["cost"]) for p in front.points]
    assert all(count < front.details["planned_before"] or cost == 0 for count, _, cost in figures)
    for one in figures:
        assert not any(other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in figures)


def test_no_secret_is_in_the_public_part(release: Path, made: Path) -> None:
    manifest = pack.read_manifest(release)
    canaries = [str(made), "canary", str(Path.home()), socket.gethostname(), manifest["source"]["sha256"], "aux.csv"]
    digests = [digest for name, digest in manifest["files"].items() if not name.startswith("public/")]
    canaries += ["giver", "secret", "seed", *digests]
    public = sorted(path for path in (release / "public").rglob("*") if path.is_file())
    names = ["certificate.json", "croissant.json", "data.csv", "ddi.xml"]
    names += ["dictionary.html", "dictionary.json", "external.html"]
    assert [path.name for path in public] == names
    for path in public:
        text = path.read_text("utf-8")
        assert [canary for canary in canaries if canary in text] == [], path.name
    for path in release.rglob("*"):
        assert b"giver" not in path.read_bytes() if path.is_file() else True


def test_swaps_are_for_their_owner(tmp_path: Path) -> None:
    protected_study(tmp_path)
    before = os.umask(0)
    try:
        protected_front(tmp_path).save(tmp_path / "out")
        accept = {**UNIQUE, "attacks": "so small a table cannot be hidden better"}
        publish_protection(load_front(tmp_path / "out"), tmp_path / "release", accept=accept, state=tmp_path / "state")
    finally:
        os.umask(before)
    for folder in (tmp_path / "out", tmp_path / "release" / "private"):
        assert oct(folder.stat().st_mode)[-3:] == "700"
        assert {oct(path.stat().st_mode)[-3:] for path in folder.iterdir()} == {"600"}


@pytest.mark.long
@pytest.mark.parametrize("weird", [None, -1, "x", [], {"a": 1}])
def test_a_manifest_of_another_kind_is_a_difference_and_no_fault(release: Path, weird: Any) -> None:
    """Whatever stands in a sealed manifest, a verification ends with a sentence."""
    told = pack.read_manifest(release)
    for name in sorted(n for n in set(told) - {"checksum", "files", "format", "system"} if told[n] != weird):
        resealed(release, told | {name: weird})
        checked = sf.verify(release)
        # Not measured without more; a seal and templates count where pages are not equal to the byte.
        if name not in ("auxiliary", "created", "exact", "reason", "versions", "warnings", "seal", "templates"):
            assert not checked, name
    resealed(release, told)
    assert sf.verify(release)
