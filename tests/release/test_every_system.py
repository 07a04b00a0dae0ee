"""Whatever made a release: one folder, one manifest, one verification, and a plan applied or refused with a reason."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.methods.groups.files import protected_front, protected_study
from tests.release.fronts import ANYTHING, front_of, publish, publish_protection, small
from tests.release.planted import front_with

import sfumato as sf
from sfumato.data.open import open_source
from sfumato.data.source import Source
from sfumato.methods.channel.estimate import warner
from sfumato.plans.channel import Channel
from sfumato.plans.recodings import CutPlan
from sfumato.release import manifest as pack
from sfumato.release.publish import Release

ACCEPT = dict.fromkeys(("uniques", "attacks"), "a small table made for a test")
LEVELS = {"age": 2, "post code": 2, "sex": 0}


def lattice(folder: Path) -> Callable[[Path], Release]:
    front = front_of(small(folder, rows=400), [LEVELS], 20)
    return lambda out: publish(front, 0, out, state=out.parent / "state")


def cuts(folder: Path) -> Callable[[Path], Release]:
    study = small(folder, rows=400)
    study = study.model_copy(update={"policy": ANYTHING})
    halves = {}
    for domain in study.table().domains:
        order = [domain.hierarchy.leaves[leaf] for leaf in domain.order]
        halves[domain.name] = (order[0], order[len(order) // 2])  # a missing sex is in one group with M
    front = front_with(study, CutPlan(halves, 5))
    return lambda out: publish(front, 0, out, state=out.parent / "state")


def channel(folder: Path) -> Callable[[Path], Release]:
    study = small(folder, rows=400)
    coin = Channel(("ill",), ("cold", "flu", "gout"), ("cold", "flu", "gout"), warner(3, 0.6))
    return lambda out: sf.disguise(study, [coin], out, keep=["sex"], state=out.parent / "state")


def groups(folder: Path) -> Callable[[Path], Release]:
    protected_study(folder)
    (folder / "t.csv").rename(folder / "people.csv")
    run = folder / "run.toml"
    run.write_text(run.read_text("utf-8").replace('path = "t.csv"', 'path = "people.csv"'), "utf-8")
    front = protected_front(folder)
    return lambda out: publish_protection(front, out, accept=ACCEPT, state=out.parent / "state")


SYSTEMS = {"lattice": lattice, "cuts": cuts, "channel": channel, "groups": groups}


@dataclass(frozen=True)
class Made:
    folder: Path
    publish: Callable[[Path], Release]
    release: Release


@pytest.fixture(scope="module", params=SYSTEMS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A release of each system, beside its source; never changed."""
    folder = tmp_path_factory.mktemp(request.param)
    again = SYSTEMS[request.param](folder)
    return Made(folder, again, again(folder / "release"))


def released_file(release: Release) -> Source:
    """The file as its own run file reads it."""
    own = sf.read(release.folder / pack.RUN)
    return open_source(own.data, own.folder)


def resealed(release: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """What someone does who tampers well: digests and checksum fit again."""
    manifest: dict[str, Any] = json.loads((release / pack.MANIFEST).read_text("utf-8"))
    change(manifest)
    (release / pack.MANIFEST).unlink()
    pack.write_manifest(release, {k: v for k, v in manifest.items() if k != "checksum"})  # type: ignore[typeddict-item]


COMMON = {
    "accepted", "checksum", "columns", "created", "data", "dictionary", "figures", "files", "format", "hierarchies",
    "left_out", "loss", "own", "point", "policy", "reason", "records", "released", "run_file", "seal", "source",
    "suppressed", "system", "templates", "unit", "versions", "warnings", "whole",
}  # fmt: skip


@pytest.mark.long
def test_every_release_has_the_same_folder_and_manifest(made: Made) -> None:
    manifest = json.loads((made.release.folder / pack.MANIFEST).read_text("utf-8"))
    assert set(manifest) == COMMON
    for name in (pack.RUN, *pack.DICTIONARY, pack.INTERNAL, pack.EXTERNAL, pack.CERTIFICATE):
        assert (made.release.folder / name).is_file(), name
    assert manifest["released"] == manifest["records"] - manifest["suppressed"]
    described = [column["name"] for column in manifest["dictionary"]["columns"]]
    assert manifest["columns"] == described == list(released_file(made.release).names)
    assert {stage.name for stage in made.release.stages} >= {"write the file", "compare every row", "measure the file"}


@pytest.mark.long
def test_every_release_verifies(made: Made, tmp_path: Path) -> None:
    assert sf.verify(made.release.folder)
    assert sf.verify(made.release.folder, made.folder / "people.csv")
    (tmp_path / "other.csv").write_text((made.folder / "people.csv").read_text("utf-8") + "\n", "utf-8")
    differences = sf.verify(made.release.folder, tmp_path / "other.csv").differences
    assert [d.what for d in differences] == ["it is not the source of this release: its SHA-256 differs"]


FORGERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "the policy": lambda m: m["policy"].update(k=m["policy"]["k"] + 1),
    "a column more": lambda m: m["columns"].append("more"),
    "rows": lambda m: m.update(released=m["released"] + 1),
    "uniqueness": lambda m: m["whole"]["all_columns"].update(unique=m["whole"]["all_columns"]["unique"] + 1),
    "the loss": lambda m: m.update(loss=m["loss"] / 2 + 0.001),
    "the dictionary": lambda m: m["dictionary"]["columns"][0].update(words="Nothing was done."),
    "another system": lambda m: m.update(system="swaps"),
}


@pytest.mark.long
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_manifest_is_found(made: Made, forgery: str, tmp_path: Path) -> None:
    """With digests that fit. The pages are not forged too: so more than a page must differ."""
    shutil.copytree(made.release.folder, tmp_path / "release")
    resealed(tmp_path / "release", FORGERIES[forgery])
    differences = sf.verify(tmp_path / "release").differences
    assert any("does not agree with the manifest" not in d.what for d in differences), differences


def test_acceptances_are_checked(made: Made, tmp_path: Path) -> None:
    """What the file breaks of the policy must be accepted in the manifest too."""
    strict = {"k": 10**6, "l": 10**6, "uniques": 0.0}
    shutil.copytree(made.release.folder, tmp_path / "release")

    def stricter(manifest: dict[str, Any]) -> None:
        """A run file and a policy that the file cannot meet, and nothing accepted."""
        manifest["accepted"] = []
        manifest["policy"] |= strict
        study = sf.Study(**tomllib.loads(manifest["run_file"]))
        policy = study.policy.model_copy(update={**strict, "accept": ()})
        manifest["run_file"] = study.model_copy(update={"policy": policy}).as_toml()

    resealed(tmp_path / "release", stricter)
    differences = sf.verify(tmp_path / "release").differences
    assert any("it does not give the reason for accepting this" in d.what for d in differences), differences


def test_a_plan_is_applied_or_refused_with_the_reason(made: Made, tmp_path: Path) -> None:
    source = made.folder / "people.csv"
    if made.release.manifest["system"] in ("lattice", "cuts"):
        applied = sf.apply_plan(
            made.release.folder, source, tmp_path / "next", accept={"raw": "a table made for a test"}, state=tmp_path
        )
        assert applied.manifest["figures"]["k"] == made.release.manifest["figures"]["k"]
        return
    with pytest.raises(sf.InputError, match=r"serves no other table: its (swaps|reports)") as raised:
        sf.apply_plan(made.release.folder, source, tmp_path / "next")
    assert "lattice or cuts" in raised.value.expected
    assert not (tmp_path / "next").exists()


def test_a_source_that_changes_meanwhile_is_not_released(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last look at the source comes after everything is written."""
    write, source = pack.write_manifest, made.folder / "people.csv"
    before = source.read_bytes()

    def meanwhile(*given: Any, **how: Any) -> Any:
        source.write_bytes(before + b"\n")
        return write(*given, **how)

    monkeypatch.setattr("sfumato.release.publish.write_manifest", meanwhile)
    try:
        with pytest.raises(sf.InputError, match=r"people\.csv has changed since the search"):
            made.publish(tmp_path / "never")
    finally:
        source.write_bytes(before)
    assert not (tmp_path / "never").exists()
    ledger = tmp_path / "state" / "ledger" / "releases.jsonl"
    assert not ledger.exists()  # nothing was entered
