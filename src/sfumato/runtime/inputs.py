"""Files that a command reads: regular ones, which it never writes over, whatever it is told to overwrite."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import InputError

_active: list[dict[tuple[int, int], Path]] = []  # what has been read under each guard: device and number, and the path


_unsealed: list[Path] = []  # folders that were read since the outermost guard began, and may come from anybody


@contextmanager
def kept_inputs() -> Iterator[None]:
    """A guard for the time of one command: files that are read in it cannot be overwritten in it."""
    if not _active:
        _unsealed.clear()
    _active.append({})
    try:
        yield
    finally:
        _active.pop()


def note_input(path: Path) -> Path:
    """Say that a file is an input; every reader of files does. Pipes and devices, which may never end, are refused."""
    try:
        status = path.stat()
    except OSError:
        return path  # whoever opens it says what is wrong
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a regular file", expected="a file on a disk", remedy="copy it to a file first")
    for noted in _active:
        noted[status.st_dev, status.st_ino] = path.resolve()
    return path


def note_unsealed(folder: Path) -> None:
    """Say that a folder is read which this user did not seal: what is wrong in it is its fault, not ours."""
    _unsealed.append(folder)


def unsealed_inputs() -> list[Path]:
    """The folders that were read in this command, or in the last one, and may come from anybody."""
    return list(_unsealed)


def refuse_input(path: Path) -> None:
    """Raise if a path is that of an input under another name or its own, or of a folder that holds one."""
    if not _active or not path.exists():
        return
    status, whole = path.stat(), path.resolve()
    for noted in _active:
        inside = path.is_dir() and any(whole in one.parents for one in noted.values())
        if (status.st_dev, status.st_ino) in noted or inside:
            raise InputError(
                f"{path} is an input of this command" if not inside else f"{path} holds an input of this command",
                expected="another file to write to: an input is never overwritten",
                remedy=f"another name than {os.fspath(path.name)}",
            )
