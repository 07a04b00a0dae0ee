"""Trust in folders, protection of input files, and whether the process is our own.

A folder that this user made on this machine has a seal: a keyed digest of its files, with a key that never leaves the
user's state folder. So the paths, engines and addresses in a sealed folder were chosen by this user. A folder without a
valid seal may come from an attacker: it is read as data, and nothing that it names is opened.

A command reads only regular files, and never overwrites its inputs. The process is our own in the command line and
belongs to the caller in a library.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import InputError

NAME = "seal"
KEY = "seal.key"
BYTES = 32
MAX_BYTES = 1 << 20  # of the seal itself, which may come from an attacker


def state_folder(given: str | Path | None = None) -> Path:
    """Return the user's state folder: as given, else $SFUMATO_STATE, else the default of the system."""
    if given is not None:
        return Path(given)
    if chosen := os.environ.get("SFUMATO_STATE"):
        return Path(chosen)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "sfumato"


def seal(folder: Path) -> None:
    """Seal a folder whose files are complete. Without a writable state folder there is no seal."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    try:
        key = _key(create=True)
    except OSError:
        return
    if key is not None:
        lines = [f"{(folder / name).stat().st_size} {name}" for name in names]
        (folder / NAME).write_text("\n".join([_digest(folder, names, key), *lines]) + "\n", encoding="utf-8")


def sealed(path: str | Path) -> bool:
    """Return whether a file is in a folder that this user sealed, with all sealed files unchanged.

    The seal does not cover files that were added later, such as pictures.
    """
    path = Path(path)
    if not (path.parent / NAME).is_file():  # a pipe would never end
        return False
    try:
        key = _key(create=False)
        with (path.parent / NAME).open("rb") as stream:
            written, *lines = stream.read(MAX_BYTES).decode("utf-8").splitlines()
        sizes = {name: int(size) for size, name in (line.split(" ", 1) for line in lines)}
        names = list(sizes)
        if key is None or path.name not in names or len(names) != len(lines):
            return False
        if any((path.parent / name).lstat().st_size != size for name, size in sizes.items()):
            return False  # known without reading large files
        return hmac.compare_digest(written, _digest(path.parent, names, key))
    except (OSError, ValueError):
        return False


def signature(text: str) -> str:
    """Return a keyed digest of a text that only this user can make; empty without a state folder to write to."""
    try:
        key = _key(create=True)
    except OSError:
        return ""
    return "" if key is None else _signed(text, key)


def signed(text: str, given: object) -> bool:
    """Return whether a keyed digest of a text was made by this user on this machine."""
    key = _key(create=False)
    return (
        key is not None and isinstance(given, str) and hmac.compare_digest(given.encode(), _signed(text, key).encode())
    )


def _signed(text: str, key: bytes) -> str:
    # The prefix keeps these digests apart from those of sealed folders, which are made with the same key.
    return hmac.new(key, f"text:{text}".encode(), hashlib.sha256).hexdigest()


def _digest(folder: Path, names: Sequence[str], key: bytes) -> str:
    """Return a keyed digest of the names and contents of files of a folder."""
    whole = hmac.new(key, digestmod=hashlib.sha256)
    for name in names:
        path = folder / name
        if path.is_symlink() or not path.is_file() or ".." in Path(name).parts or Path(name).is_absolute():
            raise ValueError("not a plain file of the folder")
        content = hashlib.sha256()
        with path.open("rb") as stream:
            while block := stream.read(1 << 22):
                content.update(block)
        whole.update(f"{len(name)}:{name}:{content.hexdigest()}\n".encode())
    return whole.hexdigest()


def _key(*, create: bool) -> bytes | None:
    """Return the user's key, which is made at the first use. A key that others could read or write is not used."""
    path = state_folder() / KEY
    if create and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:  # another process was quicker
            pass
        else:
            with os.fdopen(handle, "wb") as stream:
                stream.write(secrets.token_bytes(BYTES))
    try:
        status = path.stat()
        key = path.read_bytes()
    except OSError:
        return None
    mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return key if mine and not status.st_mode & 0o077 and len(key) == BYTES else None


_active: list[dict[tuple[int, int], Path]] = []  # what has been read under each guard: device and number, and the path


_unsealed: list[Path] = []  # folders without a seal that were read since the outermost guard began


@contextmanager
def kept_inputs() -> Iterator[None]:
    """Protect the files that are read in the block, which is one command, from being overwritten in it."""
    if not _active:
        _unsealed.clear()
    _active.append({})
    try:
        yield
    finally:
        _active.pop()


def note_input(path: Path) -> Path:
    """Record that a file is an input. Pipes and devices, which may never end, are refused."""
    try:
        status = path.stat()
    except OSError:
        return path  # opening it raises the error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a regular file", expected="a file on a disk", remedy="copy it to a file first")
    for noted in _active:
        noted[status.st_dev, status.st_ino] = path.resolve()
    return path


def note_unsealed(folder: Path) -> None:
    """Record that a folder without this user's seal is read. Errors in it are then not reported as internal."""
    _unsealed.append(folder)


def unsealed_inputs() -> list[Path]:
    """Return the folders without a seal that were read in this command, or in the last one."""
    return list(_unsealed)


def refuse_input(path: Path) -> None:
    """Raise if a path is that of an input, under its own or another name, or of a folder that holds one."""
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


ours = False  # set by the command line before anything else is imported
