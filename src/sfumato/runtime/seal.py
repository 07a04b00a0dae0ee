"""Folders that this user made on this machine are told from folders that came from elsewhere.

A folder of ours carries a seal: a keyed digest of its files under a key that never leaves the user's state folder.
What a sealed folder says of paths, engines and addresses is what this user said before. A folder without a valid seal
may come from anybody: it is read as data, and nothing that it names is opened.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

NAME = "seal"
KEY = "seal.key"
BYTES = 32
MAX_BYTES = 1 << 20  # of the seal itself, which may come from anybody


def state_folder(given: str | Path | None = None) -> Path:
    """Where what is the user's own is kept: as given, else $SFUMATO_STATE, else the user's state folder."""
    if given is not None:
        return Path(given)
    if chosen := os.environ.get("SFUMATO_STATE"):
        return Path(chosen)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "sfumato"


def seal(folder: Path) -> None:
    """Seal a folder whose files are complete. Without a state folder that can be written there is no seal."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    try:
        key = _key(create=True)
    except OSError:
        return
    if key is not None:
        lines = [f"{(folder / name).stat().st_size} {name}" for name in names]
        (folder / NAME).write_text("\n".join([_digest(folder, names, key), *lines]) + "\n", encoding="utf-8")


def sealed(path: str | Path) -> bool:
    """Whether a file stands in a folder that this user sealed, and everything that was sealed is unchanged.

    Files that were added later, such as pictures, are not under the seal.
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
            return False  # known without reading them, however large they are
        return hmac.compare_digest(written, _digest(path.parent, names, key))
    except (OSError, ValueError):
        return False


def _digest(folder: Path, names: Sequence[str], key: bytes) -> str:
    """The names and contents of files of a folder under a key."""
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
    """The user's own key; made at the first use. One that others could have read or written is not used."""
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
