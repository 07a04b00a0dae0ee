"""A bar of progress: HTML that is replaced in a notebook, a line that is written again in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import Any, TextIO

WIDTH = 30


class ProgressBar:
    """Shows how far a search is. Give it to `sf.search(study, progress=sf.ProgressBar())`, or say `progress=True`.

    A step is shown only where it changes what is seen, so that a search does not wait for its bar.

    >>> import io
    >>> out = io.StringIO()
    >>> bar = ProgressBar("search", out)
    >>> bar(1, 2), bar(2, 2)
    (False, False)
    >>> [line.strip() for line in out.getvalue().split("\\r") if line]
    ['search [###############...............]  50 %', 'search [##############################] 100 %']
    """

    def __init__(self, title: str = "search", out: TextIO | None = None) -> None:
        self._title = title
        self._out = out
        self._seen = -1
        self._update: Callable[[str], None] | None = _notebook() if out is None else None

    def __call__(self, done: int, total: int) -> bool:
        percent = min(100, 100 * done // total) if total > 0 else 0
        if percent == self._seen:
            return False
        self._seen = percent
        if self._update is not None:
            self._update(
                f'<div style="font:13px system-ui,sans-serif">{escape(self._title)} '
                f'<progress max="100" value="{percent}" style="vertical-align:middle"></progress> {percent} %</div>'
            )
            return False
        out = self._out or sys.stderr
        filled = WIDTH * percent // 100
        end = "\n" if percent == 100 else ""
        out.write(f"\r{self._title} [{'#' * filled}{'.' * (WIDTH - filled)}] {percent:3d} %{end}")
        out.flush()
        return False

    def finish(self) -> None:
        """Show that all is done: a search may end before its last step, when nothing is left to decide."""
        self(1, 1)


def _notebook() -> Callable[[str], None] | None:
    """What replaces a piece of HTML in the notebook that runs us; None elsewhere."""
    shell = sys.modules.get("IPython")
    running: Any = shell.get_ipython() if shell is not None else None
    if running is None or not hasattr(running, "kernel"):
        return None
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)
    return lambda html: handle.update(HTML(html))
