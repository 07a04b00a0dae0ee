"""Write a file or a folder whole or not at all: under a temporary name, flushed to the disk, then renamed."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sfumato.errors import InputError, reason_of
from sfumato.runtime.inputs import refuse_input
from sfumato.runtime.scratch import BEFORE, Scratch, sweep

UNFINISHED = "new"  # what a folder is called until it is complete
NAME_CHARACTERS = 40  # of the target's name in a temporary one, so that it stays within what a file system allows
UNSYNCED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # file systems that cannot flush a directory


@contextmanager
def new_folder(path: str | Path, *, private: bool = True, replace: bool = False) -> Iterator[Path]:
    """Yield an empty folder that gets the name `path` when the block ends; after any exception nothing is left.

    A private folder and everything in it can be read by its owner alone (0700 and 0600), whatever the umask.
    With `replace` an existing folder gives way to the new one once that is complete.
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
    """A temporary folder beside a path, on its file system; what killed processes left there is removed first."""
    sweep(path.parent, ".")
    with Scratch(f".{path.name[:NAME_CHARACTERS]}-", path.parent, path.name) as scratch:
        yield scratch.path


def unfinished(folder: str | Path) -> bool:
    """Whether a folder was left behind by a process that ended before the folder got its name."""
    folder = Path(folder).absolute()
    return folder.name == UNFINISHED and folder.parent.name.startswith(".")


def _rename(inside: Path, folder: Path, before: Path) -> None:
    """Give a folder its name; an earlier one of that name is put aside, and back if this fails."""
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
    """Yield a path to write to; what is written gets the name `path` when the block ends, or is removed.

    A private file can be read by its owner alone (0600), whatever the umask.
    """
    with new_files([path], overwrite=overwrite, private=private) as parts:
        yield parts[0]


@contextmanager
def new_files(
    paths: Sequence[str | Path], *, overwrite: bool = False, private: bool = False
) -> Iterator[tuple[Path, ...]]:
    """Yield paths to write to; what is written gets its names together when the block ends.

    After any exception, and where one of them cannot get its name, all the earlier files are as they were. They are
    named in the order they are given; a kill in between leaves the later ones as they were.
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
    """Give files their names; earlier files of these names are kept beside the new ones until all is done."""
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
    """A second name for a file; a copy where the file system has no second names."""
    try:
        other.hardlink_to(path)
    except OSError:
        shutil.copy2(path, other)


def write_text(path: str | Path, text: str, *, overwrite: bool = False, private: bool = False) -> Path:
    """Write a file of UTF-8 text, whole or not at all."""
    return write_bytes(path, text.encode("utf-8"), overwrite=overwrite, private=private)


def write_bytes(path: str | Path, content: bytes, *, overwrite: bool = False, private: bool = False) -> Path:
    """Write a file, whole or not at all."""
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
    """Raise unless a new folder can be made at a path; with `replace` it may take the place of an earlier one."""
    if folder.is_symlink() or (folder.exists() and not (replace and folder.is_dir())):
        raise InputError(f"{folder} already exists", expected="a new folder", remedy="another name")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}", expected="an existing folder to write to")
    if replace:
        refuse_input(folder)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's errors while something is written into ours, with its path and the reason."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {reason_of(error)}", expected="a folder that can be written to, with free space"
        ) from error


def make_private(root: Path) -> None:
    """Take all permissions on a folder and everything in it from everybody but the owner."""
    for folder, _, files in os.walk(root):
        Path(folder).chmod(0o700)
        for name in files:
            file = Path(folder, name)
            if not file.is_symlink():
                file.chmod(0o600)


def flush(root: Path) -> None:
    """Put everything in a folder, and the folders themselves, on the disk."""
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            file = Path(folder, name)
            if not file.is_symlink():
                sync(file)
        sync(Path(folder))


def sync(path: Path) -> None:
    """Put a file, or the entries of a folder, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSYNCED or not path.is_dir():
            raise
    finally:
        os.close(handle)
