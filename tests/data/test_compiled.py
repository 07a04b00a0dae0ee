"""Machine code does not outlive a change in a loop that it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.data import compiled


def test_a_module_is_known_by_all_that_it_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels = compiled.PACKAGE / "measures/cut_kernels.py"
    assert {compiled.PACKAGE / "measures/tally.py", compiled.PACKAGE / "data/arrays.py"} <= set(
        compiled.sources(kernels)
    )
    (tmp_path / "inner.py").write_text("A = 1\n")
    (tmp_path / "outer.py").write_text("from sfumato import nowhere\nfrom sfumato.inner import (\n    A,\n)\n")
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path)
    before = compiled.digest.__wrapped__(tmp_path / "outer.py")
    assert compiled.digest.__wrapped__(tmp_path / "outer.py") == before
    (tmp_path / "inner.py").write_text("A = 2\n")
    assert compiled.digest.__wrapped__(tmp_path / "outer.py") != before
