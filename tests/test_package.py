"""The package as a whole: what it exports, and which way it imports."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError


def test_every_exported_name_exists_and_is_documented() -> None:
    assert sf.__all__ == sorted(sf.__all__)
    for name in sf.__all__:
        assert getattr(sf, name).__doc__, name
    assert set(dir(sf)) == {*sf.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'audits'"):
        sf.audits  # noqa: B018


def test_no_room_is_named_like_a_public_name() -> None:
    rooms = {path.stem for path in Path(sf.__file__).parent.iterdir() if path.name != "__init__.py"}
    assert not rooms & set(sf.__all__)


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
    assert len(kinds) >= 7
    assert all(issubclass(kind, SfumatoError) for kind in kinds)


def test_docs_name_every_measure_and_role() -> None:
    docs = Path(__file__).parent.parent / "docs"
    measures, run_file = (docs / "measures.md").read_text("utf-8"), (docs / "run-file.md").read_text("utf-8")
    for name, measure in sf.known_measures().items():
        assert f"| `{name}` |" in measures
        assert measure.sentence in measures
    assert all(f"`{role}`" in run_file for role in sf.Role)
    assert f"**{len(sf.known_measures())} measures**" in (docs.parent / "README.md").read_text("utf-8")
