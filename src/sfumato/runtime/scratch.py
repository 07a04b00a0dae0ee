"""Temporary folders of our own: private, locked while they are used, and removed later if their process was killed."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

try:
    import fcntl
except ImportError:  # not on this system: nothing is locked, so nothing is swept
    fcntl = None  # type: ignore[assignment]

PREFIX = "sfumato-"
UNLOCKED = ".sfumato-unlocked"  # how the name of a folder ends until it is locked
BEFORE = "before"  # in a folder beside a target: what had the target's name


def temporary_folder() -> str:
    """The system's folder for temporary files. Python tries it out by writing a file, which a kill leaves behind."""
    if tempfile.tempdir is None:
        named = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
        usable = (
            folder for folder in (*named, "/tmp") if Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)
        )
        if (folder := next(usable, None)) is not None:
            tempfile.tempdir = str(Path(folder).absolute())
    return tempfile.gettempdir()


class Scratch:
    """A folder that only its owner can look into (0700), and that is removed when it is closed.

    It holds a lock for as long as the process lives, by which `sweep` tells what a killed process has left. The
    file of the lock keeps the name of the `target` that the folder stands beside, if it does.
    """

    LOCK = ".sfumato-owner"

    def __init__(self, prefix: str = PREFIX, parent: str | Path | None = None, target: str = "") -> None:
        folder = Path(parent or temporary_folder())
        for last in (False, False, True):
            self.path = folder / f"{prefix}{secrets.token_hex(8)}"
            try:
                handle = _made(self.path, self.LOCK, target)
            except FileNotFoundError:
                if last or not folder.is_dir():
                    raise
                continue  # another process swept it before it was locked
            break
        # Also at a signal before anybody could close it, and at the end of the process.
        self._end = weakref.finalize(self, _remove, self.path, handle, os.getpid())

    def close(self) -> None:
        """Remove the folder."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _made(path: Path, lock: str, text: str) -> int | None:
    """Make a folder with the file of its lock. It gets its name when that is locked, so that nobody sweeps it before.

    What a kill leaves in between is empty but for that file, and known by its name.
    """
    new = path.with_name(path.name + UNLOCKED)
    handle = None
    try:
        new.mkdir(0o700)
        if fcntl is not None:
            handle = os.open(new / lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(handle, os.fsencode(text))
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # a file system without locks: its folders are not swept
                (new / lock).unlink()
        new.rename(path)
    except BaseException:  # a full disk, a signal
        for folder in (new, path):
            shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)
        raise
    return handle


def _remove(path: Path, handle: int | None, process: int) -> None:
    if process != os.getpid():  # a copy of the process that made it
        return
    try:
        _clear(path)
    except BaseException:  # a signal in the middle: the rest goes too
        _clear(path)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def _clear(folder: Path) -> None:
    """Remove a folder with all that can be removed; last the file of its lock, without which nobody would sweep it."""
    ending = folder.with_name(folder.name + UNLOCKED)
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != Scratch.LOCK:
                Path(entry.path).unlink()
        folder.rename(ending)
    for left in (folder, ending):
        shutil.rmtree(left, ignore_errors=True)


def sweep(parent: str | Path | None = None, prefix: str = PREFIX) -> None:
    """Remove the folders in `parent` that killed processes of this user left; what cannot be removed stays."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent or temporary_folder()):
            if entry.name.startswith(prefix):
                with contextlib.suppress(OSError):
                    _sweep_one(Path(entry.path))


def _sweep_one(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    if folder.name.endswith(UNLOCKED):
        (folder / Scratch.LOCK).unlink(missing_ok=True)
        folder.rmdir()
        return
    handle = os.open(folder / Scratch.LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
        target = os.fsdecode(os.read(handle, 4096))
        named = target and os.sep not in target and not os.path.lexists(folder.parent / target)
        if named and (folder / BEFORE).is_dir():
            (folder / BEFORE).rename(folder.parent / target)
        _clear(folder)
    finally:
        os.close(handle)
