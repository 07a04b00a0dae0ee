"""Run a notebook and write it as a page: python docs/notebooks/render.py pandas page.html"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbclient
import nbformat
from nbconvert import HTMLExporter


def main(name: str, target: str) -> None:
    os.environ.setdefault("PLOTLY_RENDERER", "notebook")  # a page has no extension that draws plotly's figures
    book = nbformat.read(Path(__file__).parent / f"{name}.ipynb", as_version=4)
    executed = nbclient.NotebookClient(book, timeout=600, kernel_name="python3").execute()
    page, _ = HTMLExporter().from_notebook_node(executed)
    Path(target).write_text(page, "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
