"""The folders that the tests of hostile input spoil."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.folders import make_folders


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each kind of folder, and run files and tables of one's own."""
    folder = tmp_path_factory.mktemp("made")
    make_folders(folder)
    return folder
