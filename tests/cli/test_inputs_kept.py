"""No command writes over a file that it reads, whatever --force says; several files are replaced together or not."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import typer.main
from tests.methods.channel.files import channel_run
from tests.methods.groups.files import protected_study
from tests.methods.groups.test_doors import DDI
from tests.release.fronts import front_of, small

import sfumato as sf
from sfumato.base.files import new_files, write_text
from sfumato.cli import application, run
from sfumato.errors import InputError
from sfumato.plans.channel import load_channel

LEVELS = {"age": 1, "post code": 1, "sex": 0}
# Each command that may overwrite, as it is run, with the files it reads; TARGET is where it is told to write.
CASES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "audit": (["--run", "run.toml", "--html", "TARGET"], ["run.toml", "people.csv", "sex.csv"]),
    "inspect": (["people.csv", "-o", "TARGET"], ["people.csv"]),
    "map": (["front", "-o", "TARGET"], ["people.csv", "front/front.json", "front/run.toml"]),
    "baselines": (
        ["run.toml", "--k", "2", "--front", "front", "-o", "TARGET"],
        ["run.toml", "people.csv", "sex.csv", "front/front.json"],
    ),
    "hierarchy build": (["people.csv", "-c", "sex", "--kind", "flat", "-o", "TARGET"], ["people.csv"]),
    "channel export": (["channels", "--point", "0", "-o", "TARGET"], ["channels/front.json", "channels/run.toml"]),
    "channel make": (
        ["--data", "people.csv", "-c", "ill", "--family", "grr", "--parameter", "1", "-o", "TARGET"],
        ["people.csv"],
    ),
    "groups harmonise": (["groups/run.toml", "-o", "TARGET"], ["groups/run.toml", "groups/t.csv"]),
    "groups attack": (
        ["groups/run.toml", "--html", "TARGET"],
        ["groups/run.toml", "groups/t.csv", "groups/aux.csv"],
    ),
    "groups ipums": (["x.xml", "-o", "TARGET"], ["x.xml", "x.dat"]),
    "import sdcmicro": (["script.R", "people.csv", "-o", "TARGET"], ["script.R", "people.csv"]),
}
PAIRS = [(command, name) for command, (_, names) in CASES.items() for name in names]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of input."""
    folder = tmp_path_factory.mktemp("inputs")
    study = small(folder, sex={"role": "quasi_identifier", "hierarchy": str(folder / "sex.csv")})
    (folder / "sex.csv").write_text("F,*\nM,*\n", "utf-8")
    (folder / "run.toml").write_text(study.as_toml(), "utf-8")
    front_of(study, [LEVELS]).save(folder / "front")
    declared = channel_run(folder, folder / "people.csv", columns=["ill"], points=1)
    assert run(["search", str(declared), "-o", str(folder / "channels")]) == 0
    assert run(["channel", "export", str(folder / "channels"), "--point", "0", "-o", str(folder / "c.json")]) == 0
    (folder / "groups").mkdir()
    protected_study(folder / "groups")
    (folder / "x.xml").write_text(DDI, "utf-8")
    (folder / "x.dat").write_text("0301\n0452\n0181\n", "utf-8")
    (folder / "script.R").write_text("s <- createSdcObj(d, keyVars = c('age', 'sex'))\n", "utf-8")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(files: Path, command: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    before = contents(files)
    given = [target if word == "TARGET" else word for word in CASES[command][0]]
    assert run([*command.split(), *given, "--force"]) == 2
    assert contents(files) == before


@pytest.mark.long
@pytest.mark.parametrize(("command", "name"), PAIRS, ids=[f"{c}: {n}" for c, n in PAIRS])
def test_an_input_is_not_overwritten(
    files: Path, command: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(files, command, name, monkeypatch)
    assert "is an input of this command" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["inspect", "channel make", "hierarchy build"])
def test_a_hard_link_is_the_same_file(
    files: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    link = files / "linked.csv"
    os.link(files / "people.csv", link)
    try:
        refused(files, command, "linked.csv", monkeypatch)
    finally:
        link.unlink()
    assert "is an input of this command" in capsys.readouterr().err


def test_a_link_to_an_input_is_refused(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = files / "linked.csv"
    link.symlink_to(files / "people.csv")
    try:
        refused(files, "inspect", "linked.csv", monkeypatch)
    finally:
        link.unlink()


def test_every_command_that_overwrites_is_tried() -> None:
    """Commands that reproduce published tables read nothing of the user's but one folder of census files."""
    found = {name for name, command in _commands(typer.main.get_command(application())) if "force" in _options(command)}
    assert {name for name in found if not name.startswith("reproduce ")} == set(CASES)


def _options(command: object) -> set[str]:
    return {str(option.name) for option in getattr(command, "params", ())}


def _commands(group: object, before: str = "") -> Iterator[tuple[str, object]]:
    for name, command in getattr(group, "commands", {}).items():
        yield f"{before}{name}", command
        yield from _commands(command, f"{before}{name} ")


def test_another_file_is_overwritten(files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The guard is of one command: what an earlier one read may be written by the next."""
    monkeypatch.chdir(files)
    target = str(tmp_path / "again.toml")
    for _ in range(2):
        assert run(["inspect", "people.csv", "-o", target, "--force"]) == 0
    assert run(["audit", "--run", target]) in (0, 2)
    assert run(["inspect", "people.csv", "-o", target, "--force"]) == 0


def test_a_disguise_in_python_does_not_overwrite_its_table(files: Path) -> None:
    before = contents(files)
    study = sf.Study(data={"path": str(files / "people.csv")})
    for name in ("people.csv", "c.json", "groups"):
        with pytest.raises(InputError, match="already exists"):
            sf.disguise(study, [load_channel(files / "c.json")], files / name)
    assert contents(files) == before


def test_files_are_replaced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / "data.csv", tmp_path / "data.csv.channel.json"]
    for path in paths:
        write_text(path, f"old {path.name}")
    with new_files(paths, overwrite=True) as parts:
        for part in parts:
            part.write_text("new", "utf-8")
        assert [path.read_text("utf-8") for path in paths] == [f"old {path.name}" for path in paths]
    assert [path.read_text("utf-8") for path in paths] == ["new", "new"]
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize("failing", [1, 2, 3])
@pytest.mark.parametrize("existing", [True, False])
def test_a_failed_replacement_leaves_all_files_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, existing: bool
) -> None:
    paths = [tmp_path / "data.csv", tmp_path / "data.csv.channel.json"]
    if existing:
        for path in paths:
            write_text(path, f"old {path.name}")
    before = contents(tmp_path)
    plain, calls = os.replace, iter(range(1, 100))

    def replaced(one: Path, two: Path) -> None:
        if next(calls) == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        plain(one, two)

    monkeypatch.setattr(os, "replace", replaced)
    failed = False
    try:
        with new_files(paths, overwrite=True) as parts:
            for part in parts:
                part.write_text("new", "utf-8")
    except InputError:
        failed = True
    assert failed == (failing <= 2)
    after = contents(tmp_path)
    assert after == (before if failed else {path.name: b"new" for path in paths})
