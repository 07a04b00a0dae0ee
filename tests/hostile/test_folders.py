"""A folder that somebody sends is data: no command starts what it names, connects to it, or reads it.

The commands are found by walking the command tree: whatever takes a folder is called with hostile ones.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer

import sfumato as sf
from sfumato.cli import application, run
from sfumato.errors import DataError
from sfumato.release.manifest import checksum, digest
from sfumato.study import Study, read_kept
from tests.hostile.watching import CANARY, watched
from tests.methods.groups.files import protected_front, protected_study
from tests.release.fronts import front_of, publish, small

LEVELS = {"age": 3, "post code": 3, "sex": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A front and a release of one's own, and the canary."""
    folder = tmp_path_factory.mktemp("made")
    front = front_of(small(folder, rows=400), [LEVELS, LEVELS | {"age": 2}])  # nothing suppressed: `ask` has an answer
    front.save(folder / "front")
    publish(front, 0, folder / "release", state=folder / "state")
    (folder / "own.toml").write_text(front.study.as_toml(), "utf-8")
    sf.search(front.study.replace(channel={"columns": ("ill",), "points": 2}).with_search(system="channel")).save(
        folder / "channel"
    )
    (folder / "groups").mkdir()
    protected_study(folder / "groups")
    protected_front(folder / "groups").save(folder / "protection")
    shutil.copy(folder / "people.csv", folder / f"{CANARY}.csv")
    (folder / f"{CANARY}.txt").write_text("20,20-29,*\n")
    return folder


def spark(text: str, made: Path) -> str:
    options = '\n[engine_options]\nmaster = "local[1]"\n'
    return text.replace("version = 1\n", 'version = 1\nengine = "spark"\n', 1) + options


def commands(text: str, made: Path) -> str:
    """Spark's options of the Java machine, which can run a shell command."""
    conf = 'conf = { "spark.driver.extraJavaOptions" = "-XX:OnOutOfMemoryError=touch PWNED" }\n'
    return spark(text, made) + conf


def database(text: str, made: Path) -> str:
    lines = [line for line in text.splitlines() if not line.startswith(("path =", "separator", "quote", "header"))]
    lines.insert(lines.index("[data]") + 1, 'path = "postgresql://127.0.0.1:9/x?user=victim"\ntable = "t"')
    return "\n".join(line for line in lines if not line.startswith("format =")) + "\n"


def elsewhere(text: str, made: Path) -> str:
    lines = text.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("path ="))
    lines[place] = f"path = {json.dumps(str(made / (CANARY + '.csv')))}"
    return "\n".join(lines) + "\n"


def hierarchies(text: str, made: Path) -> str:
    """Trees from outside the folder."""
    tree = json.dumps(str(made / f"{CANARY}.txt"))
    lines = [
        f'age = {{ role = "quasi_identifier", hierarchy = {tree} }}' if line.startswith("age =") else line
        for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


ATTACKS = [spark, commands, database, elsewhere, hierarchies]


def hostile_front(folder: Path, made: Path, attack: Callable[[str, Path], str], kind: str = "front") -> None:
    shutil.copytree(made / kind, folder)
    (folder / "run.toml").write_text(attack((folder / "run.toml").read_text("utf-8"), made), "utf-8")


def hostile_release(folder: Path, made: Path, attack: Callable[[str, Path], str]) -> None:
    shutil.copytree(made / "release", folder)
    path = folder / "private" / "run.toml"
    path.write_text(attack(path.read_text("utf-8"), made), "utf-8")
    manifest = json.loads((folder / "private" / "manifest.json").read_text("utf-8"))
    manifest["run_file"] = attack(manifest["run_file"], made)
    if attack is hierarchies:
        manifest["hierarchies"]["age"]["file"] = str(made / f"{CANARY}.txt")
    manifest["files"] = {name: digest(folder / name) for name in manifest["files"]}
    manifest["checksum"] = checksum(manifest)
    (folder / "private" / "manifest.json").write_text(json.dumps(manifest), "utf-8")


KINDS: dict[str, Callable[[Path, Path, Callable[[str, Path], str]], None]] = {
    "front": hostile_front,
    "release": hostile_release,
    "channel": partial(hostile_front, kind="channel"),
    "protection": partial(hostile_front, kind="protection"),
}


def leaves(command: Any, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for part, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, (*name, part))
    if not getattr(command, "commands", {}):
        yield name, command


def takes_folder(parameter: Any) -> bool:
    text = str(getattr(parameter, "help", "") or "").lower()
    path = "Path" in str(parameter.type_descriptor.annotation)
    return path and any(words in text for words in ("folder of", "folder that", "a front"))


COMMANDS = [
    (name, command)
    for name, command in leaves(typer.main.get_command(application()))
    if name != ("serve",) and any(takes_folder(p) and p.name != "output" for p in command.params)
]


def arguments_for(command: Any, folder: Path, made: Path, target: Path) -> list[str]:
    """What a user would type: the folder wherever one is taken, and something fitting wherever something is needed."""
    given: list[str] = []
    for parameter in command.params:
        if parameter.name in ("as_json", "help", "run_file"):
            continue
        value: str | None = None
        if parameter.name == "output":
            value = str(target)
        elif takes_folder(parameter):
            value = str(folder)
        elif parameter.name == "point":
            value = "0"
        elif parameter.name == "max_loss" and not any(p.name == "point" for p in command.params):
            value = "0.9"
        elif parameter.name == "run" and parameter.required:
            value = str(made / "own.toml")
        elif parameter.required:
            value = str(made / "people.csv")
        if value is not None and parameter.param_type_name == "option":
            given += [parameter.opts[0], value]
        elif value is not None:
            given.append(value)
    return given


def test_the_commands_that_open_folders_are_found() -> None:
    names = {" ".join(name) for name, _ in COMMANDS}
    assert {"verify", "apply", "map", "ask", "pick", "compare", "publish", "channel export", "baselines"} <= names


@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[" ".join(name) for name, _ in COMMANDS])
def test_no_command_follows_a_folder(
    name: tuple[str, ...],
    command: Any,
    kind: str,
    attack: Callable[[str, Path], str],
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    KINDS[kind](tmp_path / "evil", made, attack)
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    with watched() as seen:
        code = run([*name, *arguments_for(command, tmp_path / "evil", made, tmp_path / "target")])
    printed = capsys.readouterr()
    assert seen == [], (seen, printed.err)
    assert code in (0, 1, 2, 3, 4), printed.err
    assert "internal error" not in printed.err
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()} == before
    assert not Path("PWNED").exists()


def test_a_folder_of_ones_own_is_followed_and_a_changed_one_is_not(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "front", tmp_path / "front")
    assert read_kept(tmp_path / "front" / "run.toml").table().rows == 400
    (tmp_path / "front" / "map.html").write_text("a picture that was added")
    assert read_kept(tmp_path / "front" / "run.toml").table().rows == 400
    path = tmp_path / "front" / "front.json"
    path.write_text(path.read_text("utf-8").replace('"k": ', '"k":  ', 1), "utf-8")
    with pytest.raises(DataError, match="no table that it names is opened"):
        read_kept(tmp_path / "front" / "run.toml").table()


def test_ones_own_run_file_names_the_table_again(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "front", tmp_path / "front")
    own = tmp_path / "own.toml"
    own.write_text((tmp_path / "front" / "run.toml").read_text("utf-8"), "utf-8")
    (tmp_path / "front" / "seal").unlink()
    study: Study = read_kept(tmp_path / "front" / "run.toml", own)
    assert study.table().rows == 400
