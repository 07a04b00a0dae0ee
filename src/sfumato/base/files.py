"""Atomic writing of files and folders, and temporary folders.

A file or folder is written under a temporary name, flushed to the disk and renamed. Temporary folders are private and
locked while they are used. Those that a killed process left are removed later.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from sfumato.base.trust import refuse_input
from sfumato.errors import InputError, reason_of

try:
    import fcntl
except ImportError:  # not on this system: nothing is locked, so nothing is swept
    fcntl = None  # type: ignore[assignment]

PREFIX = "sfumato-"
UNLOCKED = ".sfumato-unlocked"  # the ending of a folder's name until it is locked
BEFORE = "before"  # the earlier file or folder of the target's name


def temporary_folder() -> str:
    """Return the system's folder for temporary files. Python tests it with a file, which remains after a kill."""
    if tempfile.tempdir is None:
        named = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
        usable = (
            folder for folder in (*named, "/tmp") if Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)
        )
        if (folder := next(usable, None)) is not None:
            tempfile.tempdir = str(Path(folder).absolute())
    return tempfile.gettempdir()


class Scratch:
    """A private folder (0700) that is removed when it is closed.

    It is locked as long as the process lives, so that `sweep` recognizes the folders of killed processes. The lock file
    holds the name of the `target`, if the folder is made next to one.
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
        # Also after a signal before it could be closed, and at the end of the process.
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
    """Make a folder with its lock file. It gets its name after it is locked, so that no process sweeps it before.

    If the process is killed in between, the folder holds only that file and is recognized by its name.
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
    except BaseException:  # after a signal in the middle, the rest is removed too
        _clear(path)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def _clear(folder: Path) -> None:
    """Remove a folder as far as possible. The lock file is the last, because `sweep` needs it."""
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
    """Remove the folders in `parent` that killed processes of this user left, as far as possible."""
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


UNFINISHED = "new"  # the name of a folder until it is complete
NAME_CHARACTERS = 40  # the part of the target's name in a temporary one, within the limit of file systems
UNSYNCED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # file systems that cannot flush a directory


@contextmanager
def new_folder(path: str | Path, *, private: bool = True, replace: bool = False) -> Iterator[Path]:
    """Yield an empty folder that gets the name `path` when the block ends. It is removed after an exception.

    Only its owner can read a private folder and everything in it (0700 and 0600), whatever the umask is.
    With `replace`, an existing folder is replaced as soon as the new one is complete.
    """
    folder = Path(path).absolute()
    refuse_existing_folder(folder, replace=replace)
    with explained(folder), _beside(folder) as part:
        inside = part / UNFINISHED
        inside.mkdir()
        yield inside
        if private:
            make_private(inside)
        flush(inside)
        refuse_existing_folder(folder, replace=replace)
        _rename(inside, folder, part / BEFORE)
        sync(folder.parent)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Make a temporary folder next to a path, after removing what killed processes left there."""
    sweep(path.parent, ".")
    with Scratch(f".{path.name[:NAME_CHARACTERS]}-", path.parent, path.name) as scratch:
        yield scratch.path


def unfinished(folder: str | Path) -> bool:
    """Return whether a folder is incomplete because its process ended before the folder got its name."""
    folder = Path(folder).absolute()
    return folder.name == UNFINISHED and folder.parent.name.startswith(".")


def _rename(inside: Path, folder: Path, before: Path) -> None:
    """Give a folder its name. An earlier folder of that name is moved, and moved back if this fails."""
    if not folder.exists():
        inside.rename(folder)
        return
    folder.rename(before)
    try:
        inside.rename(folder)
    except BaseException:
        before.rename(folder)
        raise


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False, private: bool = False) -> Iterator[Path]:
    """Yield a path to write to. The file gets the name `path` when the block ends, and is removed after an exception.

    Only its owner can read a private file (0600), whatever the umask is.
    """
    with new_files([path], overwrite=overwrite, private=private) as parts:
        yield parts[0]


@contextmanager
def new_files(
    paths: Sequence[str | Path], *, overwrite: bool = False, private: bool = False
) -> Iterator[tuple[Path, ...]]:
    """Yield paths to write to. The files get their names together when the block ends.

    After an exception, or if one of them cannot get its name, all earlier files are restored. The files are named in
    the order of `paths`. If the process is killed in between, the later ones are unchanged.
    """
    targets = [Path(path) for path in paths]
    for path in targets:
        refuse_existing(path, overwrite=overwrite)
    with explained(targets[0]), ExitStack() as stack:
        folders = [stack.enter_context(_beside(path.absolute())) for path in targets]
        parts = tuple(folder / f"new{path.suffix}" for folder, path in zip(folders, targets, strict=True))
        yield parts
        for path, part in zip(targets, parts, strict=True):
            refuse_existing(path, overwrite=overwrite)
            if private:
                part.chmod(0o600)
            sync(part)
        _replace_all(targets, parts)
        for folder in {path.absolute().parent for path in targets}:
            sync(folder)


def _replace_all(targets: Sequence[Path], parts: Sequence[Path]) -> None:
    """Give files their names. Earlier files of these names are kept until all are named."""
    kept = {path: part.with_name("earlier") for path, part in zip(targets, parts, strict=True) if path.exists()}
    done: list[Path] = []
    try:
        if len(targets) > 1:
            for path, before in kept.items():
                _link(path, before)
        for path, part in zip(targets, parts, strict=True):
            part.replace(path)
            done.append(path)
    except BaseException:
        for path in done:
            if path in kept:
                kept[path].replace(path)
            else:
                path.unlink(missing_ok=True)
        raise


def _link(path: Path, other: Path) -> None:
    """Make a hard link to a file, or a copy where the file system has no hard links."""
    try:
        other.hardlink_to(path)
    except OSError:
        shutil.copy2(path, other)


def write_text(path: str | Path, text: str, *, overwrite: bool = False, private: bool = False) -> Path:
    """Write a file of UTF-8 text atomically."""
    return write_bytes(path, text.encode("utf-8"), overwrite=overwrite, private=private)


def write_bytes(path: str | Path, content: bytes, *, overwrite: bool = False, private: bool = False) -> Path:
    """Write a file atomically."""
    with new_file(path, overwrite=overwrite, private=private) as part:
        part.write_bytes(content)
    return Path(path)


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Raise unless a file may be written at a path."""
    if not path.parent.is_dir():
        raise InputError(
            f"there is no folder {path.parent}",
            expected="an existing folder to write to",
            remedy="create it, or choose another path",
        )
    if overwrite:
        refuse_input(path)
    plain = path.is_file() and not path.is_symlink()
    if path.is_symlink() or (path.exists() and not (plain and overwrite)):
        what = f"{path} already exists" if plain else f"{path} is not a regular file"
        raise InputError(what, expected="a new file", remedy="another name, or overwrite = True")


def refuse_existing_folder(folder: Path, *, replace: bool = False) -> None:
    """Raise unless a new folder can be made at a path. With `replace` it may replace an earlier one."""
    if folder.is_symlink() or (folder.exists() and not (replace and folder.is_dir())):
        raise InputError(f"{folder} already exists", expected="a new folder", remedy="another name")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}", expected="an existing folder to write to")
    if replace:
        refuse_input(folder)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into errors of this package, with the path and the reason."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {reason_of(error)}", expected="a folder that can be written to, with free space"
        ) from error


def make_private(root: Path) -> None:
    """Remove all permissions of other users on a folder and everything in it."""
    for folder, _, files in os.walk(root):
        Path(folder).chmod(0o700)
        for name in files:
            file = Path(folder, name)
            if not file.is_symlink():
                file.chmod(0o600)


def flush(root: Path) -> None:
    """Flush everything in a folder, and the folders themselves, to the disk."""
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            file = Path(folder, name)
            if not file.is_symlink():
                sync(file)
        sync(Path(folder))


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSYNCED or not path.is_dir():
            raise
    finally:
        os.close(handle)
