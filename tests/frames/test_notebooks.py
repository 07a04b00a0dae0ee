"""The notebooks of the docs run from top to bottom, and show what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
OCCUPATIONS = ("Adm-clerical", "Exec-managerial", "Handlers-cleaners", "Prof-specialty", "Armed-Forces")


@pytest.fixture(scope="module", params=["pandas", "polars"])
def executed(request: pytest.FixtureRequest) -> Any:
    book = nbformat.read(NOTEBOOKS / f"{request.param}.ipynb", as_version=4)
    nbformat.validate(book)
    assert not any(cell.get("outputs") for cell in book.cells), "notebooks are kept without what they printed"
    return nbclient.NotebookClient(book, timeout=500, kernel_name="python3").execute()


@pytest.mark.long
def test_notebook(executed: Any) -> None:
    shown = [output for cell in executed.cells for output in cell.get("outputs", ())]
    assert not [output for output in shown if output.output_type == "error"]
    assert not [output for output in shown if output.output_type == "stream" and output.name == "stderr"]
    pages = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
    ours = [page for page in pages if "<svg" in page]
    assert len(ours) >= 4
    for page in ours:  # a study, an audit, a front, a choice, a release: no sensitive value
        assert not re.search("|".join(OCCUPATIONS), page)
