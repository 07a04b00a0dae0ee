"""Where things stand: the folder that may be read, and the workspace inside it that survives a restart.

One server for each folder. The lock names its owner and is released by the system when its process ends.

What was deleted, for a while: a deletion can be undone until the trash is emptied.

Uploads: each is kept as it came, under the SHA-256 of its bytes, and never changed or replaced afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from sfumato.base.files import sweep, write_text
from sfumato.base.formats import read_json as read_checked
from sfumato.base.json_types import Json
from sfumato.data.settings import ENDINGS
from sfumato.errors import DataError, InputError
from sfumato.web.access import FOLDER as KEYS

WORK = "workbench"
PART = ".part"  # the ending of an upload that has not arrived whole
ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}$")
DATABASES = (".sqlite", ".sqlite3", ".db")
TABLES = (".csv", ".tsv", ".txt", ".data", ".gz", ".parquet", ".pq", *ENDINGS)


class AbsentError(InputError):
    """Something was asked for that is not there."""


class ConflictError(InputError):
    """What was asked does not fit what has happened in the meantime."""


class UnversionedError(InputError):
    """A change that does not say what it changes."""


class TooLargeError(InputError):
    """A request has more bytes than the server takes."""


class Places:
    """The allowed folder and the workspace in it: `uploads/`, `studies/ID/{run.toml, study.json, jobs, releases}`."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).resolve()
        self.work = self.root / WORK

    def prepare(self) -> None:
        """Make the workspace. Only its owner may read it, whatever the umask and however it was made before."""
        if not self.root.is_dir():
            raise InputError(f"there is no folder {self.root}", expected="the folder of your tables")
        for folder in (self.work, self.uploads, self.studies, self.work / KEYS):
            if folder.is_symlink():
                raise InputError(f"{folder} is a link", expected="a folder of the workbench's own")
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)

    def clear_unfinished(self) -> None:
        """Delete what a server that was killed has left unfinished: parts of uploads, unnamed studies and jobs."""
        for part in self.uploads.glob(f"*{PART}"):
            part.unlink(missing_ok=True)
        for folder in (self.studies, *self.studies.glob("*/jobs"), *self.studies.glob("*/jobs/*")):
            sweep(folder, ".")

    @property
    def uploads(self) -> Path:
        return self.work / "uploads"

    @property
    def studies(self) -> Path:
        return self.work / "studies"

    def allowed(self, path: str) -> Path:
        """Return a path of the allowed folder; links that lead out of it and `..` are refused."""
        plain = Path(path)
        if "\0" in path or ".." in plain.parts:
            raise self._outside(path)
        try:
            resolved = (self.root / plain).resolve()
            resolved.exists()  # a name that is too long says so here
        except (OSError, RuntimeError):
            raise self._outside(path) from None
        if not resolved.is_relative_to(self.root):
            raise self._outside(path)
        return resolved

    def table(self, path: str) -> Path:
        """Return a path to read rows from: a file, a folder of parts or a pattern, all within the allowed folder."""
        from sfumato.data.open import matching_files  # the compiler comes with it, and the server needs none

        resolved = self.allowed(path)
        try:
            files = matching_files(resolved)
        except DataError:  # no file there: the reader reports it
            return resolved
        except ValueError:  # no pattern
            raise self._outside(path) from None
        if not all(file.resolve().is_relative_to(self.root) for file in files):
            raise self._outside(path)
        return resolved

    def shown(self, path: str | Path) -> str:
        """Return a path as the page calls it: relative to the allowed folder."""
        resolved = Path(path).resolve()
        return str(resolved.relative_to(self.root)) if resolved.is_relative_to(self.root) else resolved.name

    def listed(self, folder: str = "") -> Json:
        """Return the contents of a folder: folders, tables and run files."""
        here = self.allowed(folder)
        if not here.is_dir():
            raise AbsentError(f'there is no folder "{folder}"', expected="a folder of the workbench's folder")
        folders, files = [], []
        for path in sorted(here.iterdir(), key=lambda path: path.name.lower()):
            if path.name.startswith(".") or path == self.work or not _is_text(path.name):
                continue
            if not path.resolve().is_relative_to(self.root):
                continue
            if path.is_dir():
                folders.append(path.name)
            elif path.suffix.lower() in (*TABLES, *DATABASES, ".toml"):
                kind = "run file" if path.suffix == ".toml" else "table"
                kind = "database" if path.suffix.lower() in DATABASES else kind
                files.append({"name": path.name, "path": self.shown(path), "kind": kind, "bytes": path.stat().st_size})
        return {"folder": self.shown(here) if here != self.root else "", "folders": folders, "files": files}

    def study(self, name: str) -> Path:
        """Return the folder of a study."""
        return self._inside(self.studies, name, "study")

    def job(self, study: str, name: str) -> Path:
        """Return the folder of a job."""
        return self._inside(self.study(study) / "jobs", name, "job")

    def release(self, study: str, name: str) -> Path:
        """Return the folder of a release."""
        return self._inside(self.study(study) / "releases", name, "release")

    def _inside(self, folder: Path, name: str, kind: str) -> Path:
        if not ID.match(name) or not (folder / name).is_dir() or (folder / name).is_symlink():
            known = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
            raise AbsentError(
                f'there is no {kind} "{name[:64]}"',
                expected=f"a {kind} of this workbench",
                remedy=f"one of: {', '.join(known[:6])}" if known else "open a table first",
            )
        return folder / name

    def _outside(self, path: str) -> InputError:
        return InputError(
            f'"{path[:120]}" is not in the folder of the workbench',
            expected=f"a path inside {self.root.name or self.root}",
            remedy="upload the file, or start sfumato serve with its folder",
        )


def _is_text(name: str) -> bool:
    """Return whether a file name can be shown: it may be any bytes."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def version_of(folder: Path) -> str:
    """Return the digest of everything that is declared: the version of a study."""
    digest = hashlib.sha256()
    for name in ("run.toml", "study.json"):
        content = (folder / name).read_bytes() if (folder / name).is_file() else b""
        digest.update(b"%d " % len(content) + content)
    return digest.hexdigest()[:32]


def new_id(stem: str) -> str:
    """Return an id that a path and an address can hold, and that no other will have.

    >>> new_id("My Table (2024).csv")[:-33]
    'my-table-2024'
    """
    words = re.sub(r"[^a-z0-9]+", "-", stem.lower().split(".")[0]).strip("-")[:30].rstrip("-") or "study"
    return f"{words}-{secrets.token_hex(16)}"


def read_json(path: Path) -> Json:
    """Return a small file of the workspace; what cannot be read is empty."""
    try:
        content = read_checked(path, noted=False)
    except InputError:
        return {}
    return content if isinstance(content, dict) else {}


def write_json(path: Path, content: Json) -> None:
    """Write a small file of the workspace, whole or not at all."""
    write_text(path, json.dumps(content, ensure_ascii=False, allow_nan=False), overwrite=True, private=True)


FILE = "server.json"


class FolderLock:
    """The right to serve a workspace, for as long as this process lives or until it is closed."""

    def __init__(self, work: Path) -> None:
        self._descriptor = _opened(work / FILE)
        if not _locked(self._descriptor):
            owner = _read(self._descriptor)
            os.close(self._descriptor)
            raise _taken(owner)

    def describe(self, address: str) -> None:
        """Write who holds the lock and at which address."""
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time(), "address": address}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(owner).encode(), 0)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def running(work: Path) -> Json | None:
    """Return which process serves a workspace: pid, host, since, address. None if it is not served."""
    if not (work / FILE).is_file():
        return None
    descriptor = _opened(work / FILE)
    try:
        return None if _locked(descriptor) else _read(descriptor)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", expected="a folder that you can write to") from error


def _locked(descriptor: int) -> bool:
    """Try to lock an open file. Where the system has no such locks, every attempt succeeds."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> Json:
    try:
        owner = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:  # the other process has the lock and has not written its name yet
        return {}
    return owner if isinstance(owner, dict) else {}


def _taken(owner: Json) -> InputError:
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(float(owner.get("since", time.time()))))
    who = f"process {owner.get('pid', '?')} on {owner.get('host', '?')} since {since}"
    return InputError(
        f"another workbench serves this folder: {who}",
        expected="one server for each folder",
        remedy=f"use {owner.get('address') or 'that one'}, or end it first",
    )


@dataclass(frozen=True)
class Upload:
    """A file that was uploaded: `uploads/SHA256/NAME`."""

    path: Path
    size: int
    sha256: str


async def store(places: Places, name: str, blocks: AsyncIterator[bytes], limit: int) -> Upload:
    """Write an upload under a name of its own, then put it where its digest says; whole or not at all."""
    _check_name(name)
    part = places.uploads / f"{secrets.token_hex(16)}{PART}"
    digest, size = hashlib.sha256(), 0
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            async for block in blocks:
                size += len(block)
                if size > limit:
                    raise too_large(limit)
                digest.update(block)
                stream.write(block)
            stream.flush()
            os.fsync(stream.fileno())
        if not size:
            raise InputError("the upload is empty", expected="a file with rows")
        return Upload(_kept(places, part, name, digest.hexdigest()), size, digest.hexdigest())
    finally:
        part.unlink(missing_ok=True)


def forget_unused(places: Places, text: str) -> None:
    """Delete the uploads that a run file's text names, unless another study names them too."""
    kept = (*places.studies.glob("*/**/run.toml"), *(places.work / "trash").glob("**/run.toml"))
    others = "".join(path.read_text("utf-8", "replace") for path in kept)
    for folder in places.uploads.iterdir():
        if folder.name in text and folder.name not in others:
            shutil.rmtree(folder)


def too_large(limit: int) -> TooLargeError:
    """Return the error of an upload beyond the limit."""
    return TooLargeError(
        f"the upload is larger than {limit / (1 << 30):.3g} GB",
        expected="a smaller file",
        remedy="put the file into the folder of the workbench, or start the workbench with a higher upload limit",
    )


def _kept(places: Places, part: Path, name: str, digest: str) -> Path:
    folder = places.uploads / digest
    target = folder / name
    made = False
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            made = True
        part.chmod(0o400)
        part.replace(target)  # where it exists already, it has the same bytes
    except OSError:
        if made:
            folder.rmdir()
        raise
    return target


def _check_name(name: str) -> None:
    plain = name.replace("\\", "/").rsplit("/", 1)[-1].strip()
    if plain != name or plain.startswith(".") or not plain or "\0" in plain or len(plain.encode()) > 200:
        raise InputError("the name of an upload", expected="a plain file name", remedy="table.csv")
    if not plain.lower().endswith((*TABLES, ".toml")):
        raise InputError(f'"{plain[:80]}" is not a supported file type', expected="one of: " + ", ".join(TABLES))


KEPT_SECONDS = 600.0
ABOUT = "about.json"


class Trash:
    """Folders that were deleted, each under a name of its own with where it came from. It is emptied at a restart."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._folder = places.work / "trash"
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def put(self, *paths: Path) -> str:
        """Move files and folders of the workspace into the trash; returns the name that brings them back."""
        name = secrets.token_hex(16)
        inside = self._folder / name
        inside.mkdir(mode=0o700)
        present = [path for path in paths if path.exists()]
        origins = [str(path.relative_to(self._places.work)) for path in present]
        write_json(inside / ABOUT, {"origins": origins, "deleted": time.time()})
        for position, path in enumerate(present):
            path.rename(inside / str(position))
        return name

    def restore(self, name: str) -> list[Path]:
        """Put everything back where it was, unless something else is there by now."""
        inside = self._held(name)
        origins = [self._places.work / origin for origin in read_json(inside / ABOUT)["origins"]]
        for origin in origins:
            if origin.exists() or not origin.parent.is_dir():
                raise InputError(
                    "what was deleted cannot be put back: its folder is gone, or something else has its name",
                    expected="the workspace as it was",
                )
        for position, origin in enumerate(origins):
            (inside / str(position)).rename(origin)
        shutil.rmtree(inside)
        return origins

    def empty(self, name: str | None = None, *, older: float = 0.0) -> None:
        """Delete for good: one deletion, or all of at least `older` seconds ago. Uploads go with their last study."""
        chosen = [self._held(name)] if name is not None else [path for path in self._folder.iterdir() if path.is_dir()]
        for inside in chosen:
            if time.time() - float(read_json(inside / ABOUT).get("deleted", 0.0)) < older:
                continue
            named = "".join(path.read_text("utf-8", "replace") for path in inside.rglob("run.toml"))
            shutil.rmtree(inside)
            forget_unused(self._places, named)

    def _held(self, name: str) -> Path:
        path = self._folder / name
        if not ID.match(name) or not path.is_dir():
            raise AbsentError("this deletion can no longer be undone", expected="something that was deleted just now")
        return path
