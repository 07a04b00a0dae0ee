"""Names of files and texts as an engine can be given them: it reads some characters as a pattern, an escape or more."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

PATTERN = re.compile(r"([*?\[])")
ODD = re.compile(r"[*?\[\]{}\\#%\x00-\x1f\x7f\ud800-\udfff]")  # the last are bytes that are not UTF-8
ENDINGS = re.compile(r"(\.[A-Za-z0-9]+){0,2}$")  # by these the engine tells a compressed file


def engine_name(file: Path, folder: Path) -> str:
    """A path that DuckDB reads as this very file: for an odd name, that of a link to it, which is made in `folder`.

    Its own escapes do not reach far enough: a backslash beside a bracket has none, and what follows a question mark
    is not looked at for the ending of a compressed file.
    """
    path = file.absolute()
    if ODD.search(str(path)):
        ending = ENDINGS.search(path.name)
        link = folder.absolute() / f"{secrets.token_hex(8)}{ending[0] if ending else ''}"
        link.symlink_to(path)
        path = link
    return PATTERN.sub(r"[\1]", str(path))  # the folder of the links may be odd as well


def quoted(text: str) -> str:
    r"""A text literal in SQL. A backslash is a character for one engine, an escape for another, so it goes by number.

    >>> print(quoted("it's"), quoted("a\\b"))
    'it''s' ('a' || chr(92) || 'b')
    """
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\\")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(92) || ".join(parts) + ")"
