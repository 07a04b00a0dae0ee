"""Write a file whole or not at all."""

from __future__ import annotations

import secrets
from pathlib import Path

from sfumato.errors import InputError


def write_text(path: str | Path, text: str, *, overwrite: bool = False) -> Path:
    """Write text under a temporary name, then rename it."""
    path = Path(path)
    refuse_existing(path, overwrite=overwrite)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}", expected="a folder that can be written to"
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return path


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Raise unless a file may be written at a path."""
    if not path.parent.is_dir():
        raise InputError(
            f"there is no folder {path.parent}", expected="an existing folder to write to", remedy="make it, or use -o"
        )
    plain = path.is_file() and not path.is_symlink()
    if path.is_symlink() or (path.exists() and not (plain and overwrite)):
        kind = "there already" if plain else "no plain file"
        raise InputError(f"{path} is {kind}", expected="a new file", remedy="another name with -o, or --force")
