"""Temporary folders of our own: private, locked while they are used, and removed later if their process was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

try:
    import fcntl
except ImportError:  # not on this system: nothing is locked, so nothing is swept
    fcntl = None  # type: ignore[assignment]

PREFIX = "sfumato-"
BEFORE = "before"  # in a folder beside a target: what had the target's name


class Scratch:
    """A folder that only its owner can look into (0700), and that is removed when it is closed.

    It holds a lock for as long as the process lives, by which `sweep` tells what a killed process has left. The
    file of the lock keeps the name of the `target` that the folder stands beside, if it does.
    """

    LOCK = ".sfumato-owner"

    def __init__(self, prefix: str = PREFIX, parent: str | Path | None = None, target: str = "") -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._handle: int | None = None
        try:
            self._handle = _locked(self.path, self.LOCK, target)
        except BaseException:  # a full disk
            self.close()
            raise

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _locked(folder: Path, name: str, text: str) -> int | None:
    """Make the file of the lock: it gets its name when it is locked, so that nobody takes it for a dead one."""
    if fcntl is None:
        return None
    part = folder / f"{name}.part"
    handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, os.fsencode(text))
    except OSError:
        os.close(handle)
        raise
    with contextlib.suppress(OSError):  # a file system without locks: its folders are not swept
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.rename(folder / name)
    return handle


def sweep(parent: str | Path | None = None, prefix: str = PREFIX) -> None:
    """Remove the folders in `parent` that killed processes of this user left; what cannot be removed stays."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent or tempfile.gettempdir()):
            if entry.name.startswith(prefix):
                with contextlib.suppress(OSError):
                    _sweep_one(Path(entry.path))


def _sweep_one(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    handle = os.open(folder / Scratch.LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
        target = os.fsdecode(os.read(handle, 4096))
        named = target and os.sep not in target and not os.path.lexists(folder.parent / target)
        if named and (folder / BEFORE).is_dir():
            (folder / BEFORE).rename(folder.parent / target)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
