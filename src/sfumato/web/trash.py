"""What was deleted, for a while: a deletion can be undone until the trash is emptied."""

from __future__ import annotations

import secrets
import shutil
import time
from pathlib import Path

from sfumato.errors import InputError
from sfumato.web.places import ID, AbsentError, Places, read_json, write_json
from sfumato.web.uploads import forget_unused

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
