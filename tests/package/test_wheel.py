"""The wheel and the source archive, built and installed in environments of their own, without the repository.

Run by `make test-package`. It installs from a package index.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.package
ROOT = Path(__file__).parents[2]


def call(*command: str | Path, folder: Path, **more: str) -> str:
    """Run a command without anything of the repository in its environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SFUMATO", "VIRTUAL"))}
    done = subprocess.run(command, cwd=folder, env=kept | more, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    folder = tmp_path_factory.mktemp("built")
    call(sys.executable, "-m", "venv", folder / "builder", folder=folder)
    python = folder / "builder" / "bin" / "python"
    call(python, "-m", "pip", "install", "--quiet", "hatchling", folder=folder)
    call(python, "-m", "hatchling", "build", "-d", folder / "dist", folder=ROOT)
    wheels, archives = list((folder / "dist").glob("*.whl")), list((folder / "dist").glob("*.tar.gz"))
    assert (len(wheels), len(archives)) == (1, 1)
    return wheels[0], archives[0]


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and its dependencies, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    call(sys.executable, "-m", "venv", folder / "clean", folder=folder)
    call(folder / "clean" / "bin" / "python", "-m", "pip", "install", "--quiet", built[0], folder=folder)
    return folder / "clean" / "bin"


def test_the_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    names = zipfile.ZipFile(built[0]).namelist()
    assert all(name.startswith(("sfumato/", "sfumato-")) for name in names)
    assert "sfumato/samples/adult/run.toml" in names
    assert "sfumato/samples/adult-complete/run.toml" in names
    assert "sfumato/py.typed" in names
    assert not any("__pycache__" in name or name.startswith("sfumato/tests") for name in names)
    assert built[0].stat().st_size < 4 << 20


def test_the_source_archive_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, built[1], folder=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert sorted(zipfile.ZipFile(wheel).namelist()) == sorted(zipfile.ZipFile(built[0]).namelist())


def demo_steps() -> tuple[dict[str, str], list[str]]:
    """The environment of `make demo`, and those of its commands that are Sfumato's."""
    text = (ROOT / "Makefile").read_text("utf-8")
    recipe = re.search(r"^demo: \$.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert recipe is not None
    steps = [line.strip().removeprefix("@") for line in recipe[1].splitlines() if "$(BIN)/sfumato" in line]
    return dict(re.findall(r"^demo: export (\w+) = (\S+)$", text, re.MULTILINE)), steps


def test_the_demo_runs_without_the_repository(installed: Path, tmp_path: Path) -> None:
    """Done when, 5."""
    assert "Everything that Sfumato itself needs is there." in call(installed / "sfumato", "doctor", folder=tmp_path)
    (tmp_path / "demo").mkdir()
    given, steps = demo_steps()
    assert len(steps) >= 9
    for step in steps:
        call("bash", "-euc", step.replace("$(BIN)", str(installed)), folder=tmp_path, **given)
    assert (tmp_path / "demo" / "release" / "public" / "external.html").is_file()
    assert (tmp_path / "demo" / "front" / "map.html").is_file()


def test_importing_loads_nothing_large(installed: Path, tmp_path: Path) -> None:
    program = "import sys, sfumato; print(sorted(set(sys.modules) & {'numpy', 'numba', 'duckdb', 'plotly', 'pandas'}))"
    assert call(installed / "python", "-c", program, folder=tmp_path).strip() == "[]"
