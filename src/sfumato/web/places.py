"""Where things stand: the folder that may be read, and the workspace inside it that survives a restart."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from pathlib import Path
from typing import Any

from sfumato.errors import DataError, InputError
from sfumato.runtime.atomic import write_text
from sfumato.runtime.json_files import read_json as read_checked
from sfumato.runtime.scratch import sweep
from sfumato.sources.labelled.extra import ENDINGS
from sfumato.sources.opening import matching_files
from sfumato.web.keys import FOLDER as KEYS

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
        """A path of the allowed folder; links that lead out of it and `..` are refused."""
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
        """A path to read rows from: a file, a folder of parts or a pattern, with every match in the allowed folder."""
        resolved = self.allowed(path)
        try:
            files = matching_files(resolved)
        except DataError:  # nothing there: whoever reads it says so
            return resolved
        except ValueError:  # no pattern
            raise self._outside(path) from None
        if not all(file.resolve().is_relative_to(self.root) for file in files):
            raise self._outside(path)
        return resolved

    def shown(self, path: str | Path) -> str:
        """A path as the page calls it: relative to the allowed folder."""
        resolved = Path(path).resolve()
        return str(resolved.relative_to(self.root)) if resolved.is_relative_to(self.root) else resolved.name

    def listed(self, folder: str = "") -> dict[str, Any]:
        """The contents of a folder: folders, tables and run files."""
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
        """The folder of a study."""
        return self._inside(self.studies, name, "study")

    def job(self, study: str, name: str) -> Path:
        """The folder of a job."""
        return self._inside(self.study(study) / "jobs", name, "job")

    def release(self, study: str, name: str) -> Path:
        """The folder of a release."""
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
    """Whether a file name can be shown: it may be any bytes."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def version_of(folder: Path) -> str:
    """What tells one state of a study from any other: a digest of everything that is declared."""
    digest = hashlib.sha256()
    for name in ("run.toml", "study.json"):
        content = (folder / name).read_bytes() if (folder / name).is_file() else b""
        digest.update(b"%d " % len(content) + content)
    return digest.hexdigest()[:32]


def new_id(stem: str) -> str:
    """An id that a path and an address can hold, and that no other will have.

    >>> new_id("My Table (2024).csv")[:-33]
    'my-table-2024'
    """
    words = re.sub(r"[^a-z0-9]+", "-", stem.lower().split(".")[0]).strip("-")[:30].rstrip("-") or "study"
    return f"{words}-{secrets.token_hex(16)}"


def read_json(path: Path) -> dict[str, Any]:
    """A small file of the workspace; what cannot be read is empty."""
    try:
        content = read_checked(path, noted=False)
    except InputError:
        return {}
    return content if isinstance(content, dict) else {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a small file of the workspace, whole or not at all."""
    write_text(path, json.dumps(content, ensure_ascii=False, allow_nan=False), overwrite=True, private=True)
