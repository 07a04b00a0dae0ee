"""Every registered system keeps the same promises: from a search to a release that is verified, applied and spoiled."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from tests.methods.channel.files import channel_run
from tests.methods.groups.files import protected_study
from tests.release.fronts import ANYTHING, people, small, write_csv

import sfumato as sf
from sfumato.cli import run
from sfumato.decide.limits import class_size
from sfumato.errors import StoppedError
from sfumato.front import Front
from sfumato.measures.registry import K, measure
from sfumato.methods.publish import rehearse
from sfumato.methods.registry import MODULES, system_named
from sfumato.plans.boxes import BoxPlan
from sfumato.release import manifest as pack
from sfumato.release.foreseen import foreseen, foreseen_classes
from sfumato.release.readback import loss_of
from sfumato.study import SearchSettings

Capture = pytest.CaptureFixture[str]
ACCEPT = dict.fromkeys(("uniques", "attacks"), "a small table made for a test")
JOBS = {"clerk": 240, "cook": 180, "driver": 120, "nurse": 60}


def recoding(folder: Path, **search: Any) -> Path:
    study = small(
        folder, rows=300, income={"role": "drop"}, sex={"role": "quasi_identifier", "hierarchy": {"build": "flat"}}
    ).with_search(**search)
    study = study.model_copy(update={"policy": ANYTHING})
    (folder / "run.toml").write_text(study.as_toml(), "utf-8")
    return folder / "run.toml"


def channel(folder: Path) -> Path:
    rows = [[job, "north" if i % 2 else "south"] for job, count in JOBS.items() for i in range(count)]
    write_csv(folder / "people.csv", [["job", "town"], *rows])
    return channel_run(folder, "people.csv", name="run.toml", columns=["job"], keep=["town"], points=4)


def groups(folder: Path) -> Path:
    protected_study(folder)
    path = folder / "run.toml"
    path.write_text(path.read_text("utf-8").replace("fresh_seeds = 1\n", "fresh_seeds = 1\ntest_seed = 1\n"), "utf-8")
    return path


def local(folder: Path) -> Path:
    path = recoding(folder, system="local", max_suppression=0.05)
    path.write_text(path.read_text("utf-8") + "\n[local]\nk = [2, 3, 5, 10]\npasses = 1\n", "utf-8")
    return path


def cells(folder: Path) -> Path:
    path = recoding(folder, system="cells", max_suppression=0.05)
    path.write_text(path.read_text("utf-8") + "\n[cells]\nk = [2, 3, 5]\npasses = 1\neffort = 0\n", "utf-8")
    return path


MAKERS: dict[str, Callable[[Path], Path]] = {
    "lattice": lambda folder: recoding(folder, max_suppression=0.05),
    "cuts": lambda folder: recoding(folder, system="cuts", generations=4, population=16),
    "channel": channel,
    "groups": groups,
    "local": local,
    "cells": cells,
}


def test_every_registered_system_can_be_named_and_is_tested() -> None:
    """A new system stands in the registry, in the run file and here."""
    named = get_args(SearchSettings.model_fields["system"].annotation)
    assert set(MODULES) == set(named), "name it in SearchSettings.system (study/sections.py)"
    assert set(MODULES) == set(MAKERS), "add a run file for it to MAKERS"


@dataclass(frozen=True)
class Made:
    """What a system made, in a folder that no test changes: a run file, a front and a release."""

    folder: Path
    found: Front

    @property
    def run(self) -> Path:
        return self.folder / "run.toml"

    @property
    def front(self) -> Path:
        return self.folder / "front"

    @property
    def release(self) -> Path:
        return self.folder / "release"


@pytest.fixture(scope="module", params=MODULES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp(request.param)
    study = sf.read(MAKERS[request.param](folder))
    assert study.system == request.param
    found = sf.search(study)
    found.save(folder / "front")
    choice = sf.pick(sf.load_front(folder / "front"), point=middle(found))
    sf.publish(choice, folder / "release", accept=ACCEPT, state=folder / "state")
    return Made(folder, found)


def middle(front: Front) -> int:
    return len(front.points) // 2


def json_of(capsys: Capture, *words: str | Path) -> tuple[int, dict[str, Any]]:
    code = run([str(word) for word in (*words, "--json")])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, told


def limits_at(front: Front, number: int) -> dict[str, float]:
    """A limit on each objective that the point just keeps."""
    values = front.point(number).values
    return {f"{'min' if o.direction == 'max' else 'max'}_{o.name}": float(values[o.name]) for o in front.objectives}


def test_a_saved_front_is_the_one_that_was_found(made: Made) -> None:
    loaded = sf.load_front(made.front)
    assert loaded.as_dict() == made.found.as_dict()
    assert [point.saved() for point in loaded.points] == [point.saved() for point in made.found.points]
    assert loaded.study.as_toml() == made.found.study.as_toml()
    with pytest.raises(sf.InputError, match="already exists"):
        made.found.save(made.front)


def test_the_search_of_the_command_line_is_that_of_the_library(made: Made, capsys: Capture) -> None:
    code, told = json_of(capsys, "search", made.run)
    assert code in (0, 3)
    assert (code == 0) == told.pop("met")
    assert isinstance(told.pop("sentences"), list)
    for name in ("seconds", "stages"):
        told.pop(name)
    told.pop("policy", None)  # the points that publishing will refuse: the front does not hold the policy's answer
    expected = json.loads(json.dumps(made.found.as_dict()))
    assert told == {name: value for name, value in expected.items() if name in told}


def test_a_release_is_rehearsed_as_it_is_made(made: Made) -> None:
    choice = sf.pick(sf.load_front(made.front), point=middle(made.found))
    rehearsed = rehearse(choice, state=made.folder / "other-state")
    released = pack.read_manifest(made.release)
    foreseen = dict(rehearsed.manifest)
    assert (foreseen["records"], foreseen["suppressed"]) == (released["records"], released["suppressed"])
    assert [len(row) for row in rehearsed.rows] == [len(rehearsed.columns)] * 10
    assert list(rehearsed.columns) == [entry["name"] for entry in rehearsed.manifest["dictionary"]["columns"]]


def test_a_front_whose_points_have_a_k_is_asked(made: Made) -> None:
    front = sf.load_front(made.front)
    if not front.tells_k:
        with pytest.raises(sf.InputError, match="cannot be asked"):
            sf.ask(front, min_k=2)
        return
    wanted = class_size(front.point(middle(front)))
    answer = sf.ask(front, min_k=wanted)
    picked = sf.pick(front, min_k=wanted).point
    assert (answer.offer.k, answer.offer.loss) == (class_size(picked), picked.loss)
    assert sf.presets(front)
    if not front.recodes:
        assert answer.offer.searched
        assert answer.choice.point == picked
        with pytest.raises(sf.UnreachableError) as nothing:
            sf.ask(front, min_k=wanted, max_loss=picked.loss / 2)
        assert nothing.value.nearest["max_loss"] == pytest.approx(picked.loss, abs=1e-3)  # type: ignore[attr-defined]


def test_classes_are_foreseen_as_the_file_has_them(made: Made) -> None:
    """Of plans with a label of its own for each class; those that recode are foreseen by tests of their own."""
    front = sf.load_front(made.front)
    point = front.point(middle(front))
    if not isinstance(point.plan, BoxPlan):
        return
    table = front.study.table()
    _, classes = foreseen_classes(front.study, table, point.plan, np.random.default_rng(1))
    released = pack.read_manifest(made.release)
    assert (classes.records, classes.suppressed_rows) == (released["records"], released["suppressed"])
    assert loss_of(classes) == pytest.approx(released["loss"])
    for name in (K.name, "uniques", "marketer_risk"):
        assert measure(name).value(classes) == pytest.approx(released["figures"][name]["value"])
    assert foreseen(front, point, table).as_dict() == released["whole"]


def test_no_point_of_a_front_is_beaten(made: Made) -> None:
    """In its objectives; a protection is also judged by what stands out from below."""
    front = made.found
    figures = [[o.sign * p.values[o.name] for o in front.objectives] for p in front.points]
    below = [p.details.get("low", 0) for p in front.points]
    figures = [[*row, low] for row, low in zip(figures, below, strict=True)]
    for one in figures:
        assert not any(two != one and all(a <= b for a, b in zip(two, one, strict=True)) for two in figures)


def test_a_point_is_picked_by_several_limits_at_once(made: Made, capsys: Capture) -> None:
    front = sf.load_front(made.front)
    for number in range(len(front.points)):
        limits = limits_at(front, number)
        values = sf.pick(front, **limits).point.values
        for name, limit in limits.items():
            better = 1 if name.startswith("min_") else -1
            assert better * (values[name[4:]] - limit) >= -1e-6 * max(1.0, abs(limit))
    words = [word for name, limit in limits.items() for word in ("--limit", f"{name}={limit!r}")]
    code, told = json_of(capsys, "pick", made.front, *words)
    assert code == 0, told
    assert all(told["point"]["values"][o.name] == values[o.name] for o in front.objectives)
    first = front.objectives[0]
    impossible = "min_" if first.direction == "max" else "max_"
    code, told = json_of(capsys, "pick", made.front, "--limit", f"{impossible}{first.name}={-1e9 * first.sign}")
    assert (code, "error" in told) == (3, True), told
    code, told = json_of(capsys, "pick", made.front, "--limit", "max_nonsense=1")
    assert (code, f"{impossible}{first.name}" in told["error"]["expected"]) == (2, True), told


def test_a_front_is_drawn_and_compared(made: Made, tmp_path: Path, capsys: Capture) -> None:
    code, told = json_of(capsys, "map", made.front, "-o", tmp_path / "map.html", "--point", str(middle(made.found)))
    assert code == 0, told
    page = (tmp_path / "map.html").read_text("utf-8")
    assert "<html" in page
    assert 'src="http' not in page
    assert run(["map", str(made.front), "-o", str(tmp_path / "map.html")]) == 2  # it already exists
    capsys.readouterr()
    code, told = json_of(capsys, "compare", made.front, made.front)
    assert (code, told["dominated"], told["points"][0]) == (0, [0, 0], len(made.found.points))


def test_only_a_front_whose_points_have_a_k_can_be_asked(made: Made, capsys: Capture) -> None:
    code, told = json_of(capsys, "ask", made.front, "--max-loss", "0.99")
    assert code == (0 if made.found.tells_k else 2), told


def test_a_release_is_verified_with_and_without_the_source(made: Made, capsys: Capture) -> None:
    code, told = json_of(capsys, "verify", made.release)
    assert (code, told["differences"]) == (0, [])
    code, told = json_of(capsys, "verify", made.release, "--source", made.run)
    assert (code, told["differences"], "rows" in told["compared"]) == (0, [], True)


def test_what_was_measured_is_printed(made: Made, tmp_path: Path, capsys: Capture) -> None:
    accepted = [word for rule, reason in ACCEPT.items() for word in ("--accept", f"{rule}={reason}")]
    words = ["publish", made.front, "--point", middle(made.found), "-o", tmp_path / "out", *accepted]
    assert run([str(word) for word in words]) == 0
    printed = capsys.readouterr()
    title = "Computed from the matrix and the source" if made.found.system == "channel" else "Measured on the file"
    assert title in printed.out
    assert f"Hand out only {tmp_path / 'out' / 'public'}" in printed.err
    assert f"sfumato verify {tmp_path / 'out'}" in printed.err


def test_a_plan_is_applied_to_another_table_or_refused(made: Made, tmp_path: Path, capsys: Capture) -> None:
    system = system_named(made.found.system)
    write_csv(tmp_path / "next.csv", people(300, seed=11))
    if not system.verifier.own_records:
        applied = sf.apply_plan(
            made.release, tmp_path / "next.csv", tmp_path / "next", unseen="star", state=tmp_path / "state"
        )
        assert sf.verify(applied.folder, tmp_path / "next.csv")
        return
    for folder in (made.release, made.front):
        code, told = json_of(capsys, "apply", folder, tmp_path / "next.csv", "--point", "0", "-o", tmp_path / "out")
        assert code == 2
        assert system.verifier.own_records in told["error"]["what"]
        assert not (tmp_path / "out").exists()


def another_number(value: Any) -> Any:
    """The same with its first number changed."""
    if isinstance(value, dict):
        name = next(name for name, inner in value.items() if isinstance(inner, dict | int | float))
        return value | {name: another_number(value[name])}
    return value + 1


def resealed(release: Path, manifest: dict[str, Any]) -> None:
    """A manifest whose digests and checksum fit the folder: what someone does who tampers well."""
    (release / pack.MANIFEST).unlink()
    pack.write_manifest(release, {name: value for name, value in manifest.items() if name != "checksum"})


def spoiled_data(release: Path) -> None:
    path = release / pack.read_manifest(release)["data"]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def spoiled_figures(release: Path) -> None:
    path = release / pack.MANIFEST
    manifest = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(manifest | {"figures": another_number(manifest["figures"])}), "utf-8")


def resealed_data(release: Path) -> None:
    spoiled_data(release)
    resealed(release, pack.read_manifest(release))


def resealed_figures(release: Path) -> None:
    manifest = pack.read_manifest(release)
    resealed(release, manifest | {"figures": another_number(manifest["figures"])})


@pytest.mark.parametrize("spoil", [spoiled_data, spoiled_figures, resealed_data, resealed_figures])
def test_a_spoiled_release_is_not_verified(
    spoil: Callable[[Path], None], made: Made, tmp_path: Path, capsys: Capture
) -> None:
    shutil.copytree(made.release, tmp_path / "release")
    spoil(tmp_path / "release")
    code, told = json_of(capsys, "verify", tmp_path / "release")
    assert code in (2, 4)
    assert told.get("differences") or told.get("error")


def first_objective(about: dict[str, Any], number: int) -> None:
    about["points"][number]["values"][about["objectives"][0]["name"]] += 0.001


def last_objective(about: dict[str, Any], number: int) -> None:
    about["points"][number]["values"][about["objectives"][-1]["name"]] += 0.001


def loss(about: dict[str, Any], number: int) -> None:
    about["points"][number]["loss"] = 0.123456


@pytest.mark.parametrize("lie", [first_objective, last_objective, loss])
def test_a_front_that_lies_is_not_published(
    lie: Callable[[dict[str, Any], int], None],
    made: Made,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    """Its seal is broken; and with a run file of one's own, which names the table again, the figures are compared."""
    shutil.copytree(made.front, tmp_path / "front")
    about = json.loads((made.front / "front.json").read_text("utf-8"))
    lie(about, middle(made.found))
    (tmp_path / "front" / "front.json").write_text(json.dumps(about), "utf-8")
    words = ["publish", tmp_path / "front", "--point", str(middle(made.found)), "-o", tmp_path / "out"]
    accepted = [word for rule, reason in ACCEPT.items() for word in ("--accept", f"{rule}={reason}")]
    code, told = json_of(capsys, *words, *accepted)
    assert (code, "was changed since" in told["error"]["what"]) == (2, True), told
    code, told = json_of(capsys, *words, *accepted, "--run", made.run)
    assert code in (1, 2), told
    assert "internal error" not in told["error"]["what"]
    assert "nothing was released" in " ".join(map(str, told["error"].values()))
    assert not (tmp_path / "out").exists()


def test_another_table_than_the_searched_one_is_not_published(made: Made, tmp_path: Path) -> None:
    for path in made.folder.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path / path.name)
    table = tmp_path / Path(made.found.study.data.path).name
    lines = table.read_text("utf-8").splitlines(keepends=True)
    table.write_text("".join([*lines, lines[-1]]), "utf-8")
    text = (made.run).read_text("utf-8").replace(str(made.folder), str(tmp_path))
    (tmp_path / "run.toml").write_text(text, "utf-8")
    front = sf.load_front(made.front, tmp_path / "run.toml")
    with pytest.raises(sf.InputError, match="has changed since"):
        sf.publish(sf.pick(front, point=0), tmp_path / "out", accept=ACCEPT, state=tmp_path / "state")
    assert not (tmp_path / "out").exists()


def test_a_search_that_is_asked_to_stop_stops(made: Made) -> None:
    """It gives what it has, or says that it has nothing."""
    asked: list[int] = []

    def stop(done: int, total: int) -> bool:
        asked.append(done)
        return True

    try:
        assert sf.search(sf.read(made.run), stop).points
    except StoppedError:
        assert made.found.system == "groups"
    assert asked
    assert len(asked) <= 5
