"""Uploads: each is kept as it came, under the SHA-256 of its bytes, and never changed or replaced afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InputError
from sfumato.web.places import PART, TABLES, Places, TooLargeError


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
    """The error of an upload beyond the limit."""
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
