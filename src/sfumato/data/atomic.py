"""Write a file whole or not at all."""

from __future__ import annotations

from pathlib import Path

from sfumato.errors import InputError


def write_text(path: str | Path, text: str, *, overwrite: bool = False) -> Path:
    """Write text under a temporary name, then rename it."""
    path = Path(path)
    refuse_existing(path, overwrite=overwrite)
    part = path.with_name(path.name + ".part")
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
        raise InputError(f"there is no folder {path.parent}", expected="an existing folder to write to")
    if path.is_dir() or (path.exists() and not overwrite):
        kind = "a folder" if path.is_dir() else "there already"
        raise InputError(f"{path} is {kind}", expected="a new file", remedy="another name with -o, or --force")
