"""What data hold is shown, not sent: no command lets a table speak to the terminal."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from tests.methods.channel.files import channel_run

from sfumato.cli import run
from sfumato.cli.show import Watch, shown

ESCAPE = "\x1b]0;owned\x07"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{'x' + ESCAPE if i % 2 else 'y'},{i % 3}\n" for i in range(30))
    (tmp_path / "t.csv").write_text("job,n\n" + rows, "utf-8")
    (tmp_path / "tree.csv").write_text(f"x{ESCAPE},g\x9b31m,*\ny,g\u202e,*\n", "utf-8")
    (tmp_path / "header.csv").write_text(f"job{ESCAPE},n\n1,2\n3,4\n", "utf-8")
    columns = 'job = { role = "quasi_identifier", hierarchy = "tree.csv" }\nn = { role = "other" }\n'
    (tmp_path / "run.toml").write_text(f'version = 1\n[data]\npath = "t.csv"\n[columns]\n{columns}', "utf-8")
    (tmp_path / "short.csv").write_text("y,*\n", "utf-8")
    channel_run(tmp_path, "t.csv", columns=["job"], points=1)
    (tmp_path / "short.toml").write_text((tmp_path / "run.toml").read_text().replace("tree.csv", "short.csv"), "utf-8")
    return tmp_path


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["hierarchy", "show", "tree.csv"],
        ["hierarchy", "check", "tree.csv", "--data", "t.csv", "-c", "job"],
        ["inspect", "header.csv"],
        ["inspect", "t.csv", "-o", "new.toml"],
        ["audit", "--run", "run.toml"],
        ["audit", "--run", "short.toml"],
        ["search", "channel.toml"],
        [f"no{ESCAPE}command"],
        ["inspect", f"no{ESCAPE}file.csv"],
        ["sample", f"no{ESCAPE}sample"],
    ],
)
def test_nothing_reaches_the_terminal(
    folder: Path, arguments: list[str], as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    run([*arguments, *(["--json"] if as_json else [])])
    said = capsys.readouterr()
    assert said.out + said.err
    assert HIDDEN.findall(said.out + said.err) == []


def test_a_value_is_shown_with_its_escapes() -> None:
    assert shown("a\x1b[31m\tb\n\x7f\u202e") == "a\\x1b[31m\tb\n\\x7f\\u202e"


def test_no_command_prints_around_it() -> None:
    """The one place that prints is the one that escapes."""
    import sfumato.cli

    for path in Path(sfumato.cli.__file__).parent.glob("*.py"):
        if path.name not in ("show.py", "watch.py"):
            assert not re.search(r"(?<![\w.])print\(", path.read_text("utf-8")), path.name


def test_the_first_ctrl_c_ends_work_of_which_nothing_can_be_kept() -> None:
    """Between two stages nobody asks whether to stop, so that a wish to stop would be lost."""
    with Watch("steps", keeps=False) as watch, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert not watch.interrupted
    with Watch("nodes") as watch:
        signal.raise_signal(signal.SIGINT)
    assert watch(1, 2)
