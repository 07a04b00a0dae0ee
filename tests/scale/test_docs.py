"""docs/scale.md, followed to the letter in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scale.cluster import QUICK

pytestmark = [pytest.mark.scale, pytest.mark.published]

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def test_the_page_can_be_followed(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(python|toml|sh)\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in blocks] == ["python", "toml", "python", "sh", "sh"]
    # The first is the console script's twin; the second only saves time.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sfumato").write_text(f'#!/bin/sh\nexec {sys.executable} -m sfumato "$@"\n')
    (tmp_path / "bin" / "sfumato").chmod(0o755)
    given = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "JDK_JAVA_OPTIONS": QUICK}
    given |= {"SFUMATO_STATE": str(tmp_path / "state")}
    for kind, text in blocks:
        if kind == "toml":
            (tmp_path / "spark.toml").write_text(text, "utf-8")
            continue
        command = [sys.executable, "-c", text] if kind == "python" else ["bash", "-euc", text]
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | given, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "WARN" not in done.stderr, "Spark's own words do not reach the user"
    assert (
        sorted(path.name for path in (tmp_path / "release" / "public" / "people.parquet").iterdir())[0]
        == "part-00000.parquet"
    )
