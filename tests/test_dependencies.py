"""No package with a recorded hole is installed, locked, or allowed by a lower bound; and the check can fail."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / ".ci/audit_dependencies.py"))


def test_no_known_hole(script: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert script["main"]() == 0, capsys.readouterr().err


def test_an_old_version_is_named(script: dict[str, Any]) -> None:
    advisory = {"package": "Jinja2", "id": "X-1", "fixed": "3.1.6", "about": "a hole"}
    assert script["holes"]({"jinja2": "3.1.5"}, [advisory], "installed") == [
        "installed: Jinja2 3.1.5 has X-1 (a hole); 3.1.6 has not"
    ]
    assert script["holes"]({"jinja2": "3.1.6", "other": "1"}, [advisory], "installed") == []
    project = {"dependencies": ["jinja2>=3.1,<4", "other"], "optional-dependencies": {"web": ["h11>=0.16"]}}
    assert script["lowest"](project) == {"jinja2": "3.1", "other": "0", "h11": "0.16"}


def test_the_lock_names_what_is_declared(script: dict[str, Any]) -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = script["locked"]((ROOT / ".ci/requirements.lock").read_text("utf-8"))
    needed = script["lowest"]({**project, "optional-dependencies": {"dev": project["optional-dependencies"]["dev"]}})
    assert [name for name in needed if name not in names] == []
