"""The package as a whole: what it exports, and which way it imports."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import SfumatoError
from sfumato.measures.registry import documented


def test_every_exported_name_exists_and_is_documented() -> None:
    assert sf.__all__ == sorted(sf.__all__)
    for name in sf.__all__:
        assert getattr(sf, name).__doc__, name
    assert set(dir(sf)) == {*sf.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'audits'"):
        sf.audits  # noqa: B018


def test_no_room_is_named_like_a_public_name() -> None:
    rooms = {path.stem for path in Path(sf.__file__).parent.iterdir() if path.name != "__init__.py"}
    assert rooms & set(sf.__all__) == {"measures"}  # the room itself is public: sf.measures.k(df, [...])
    assert sf.measures is importlib.import_module("sfumato.measures")


def test_rooms_import_only_from_their_left() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [program, "--config", root / "pyproject.toml"], capture_output=True, text=True, check=False, cwd=root
    )
    assert done.returncode == 0, done.stdout


def test_every_error_belongs_to_the_family() -> None:
    errors = importlib.import_module("sfumato.errors")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    kinds = [kind for kind in kinds if not issubclass(kind, Warning)]
    assert len(kinds) >= 7
    assert all(issubclass(kind, SfumatoError) for kind in kinds)


def test_docs_say_of_measures_and_roles_what_is_so() -> None:
    """A row of docs/measures.md is as `sfumato measures --markdown` prints it. A measure may come before its row."""
    docs = Path(__file__).parent.parent / "docs"
    run_file, readme = (docs / "run-file.md").read_text("utf-8"), (docs.parent / "README.md").read_text("utf-8")
    told = (docs / "measures.md").read_text("utf-8").split("## Rules for all")[0]
    rows = [line for line in told.splitlines() if line.startswith("|")]
    assert rows
    assert not set(rows) - {row for kind in documented().values() for row in kind}
    assert all(f"`{role}`" in run_file for role in sf.Role)
    claimed = re.search(r"\*\*more than (\d+) measures\*\*", readme)
    assert claimed is not None
    assert int(claimed.group(1)) < len(sf.known_measures())


def test_no_measure_is_counted_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """Other names are aliases of one measure, and no two measures say the same."""
    measures = sf.known_measures().values()
    names = [name for measure in measures for name in measure.names]
    assert len(set(names)) == len(names)
    told = [measure.about.sentence for measure in measures]
    assert len(set(told)) == len(told)
    assert run(["measures", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {measure.name for measure in measures}


def test_no_import_hides_a_cycle() -> None:
    """Imports inside functions and for types count like any other."""
    graph = grimp.build_graph("sfumato", cache_dir=None)
    left = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    while free := {module for module, imported in left.items() if not imported & left.keys()}:
        left = {module: imported for module, imported in left.items() if module not in free}
    assert not left, sorted(left)
