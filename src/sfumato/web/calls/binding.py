"""Which table a study is of: the SHA-256 of its files when it was opened, and whether they are still those."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.sources.address import SQLITE
from sfumato.sources.opening import matching_files, open_source
from sfumato.sources.settings import DataSettings
from sfumato.study import Study
from sfumato.web.places import ConflictError

_digests: dict[tuple[Any, ...], str] = {}


def table_of_now(study: Study) -> dict[str, Any]:
    """The table as it is now: its digest, and what tells without reading it that nobody has touched it."""
    return {"sha256": _digest(study), "files": _files(study)}


def is_changed(study: Study, about: dict[str, Any]) -> bool:
    """Whether the table differs from the one that the study was declared for."""
    known = about.get("table")
    if not known:
        return False
    return bool(_files(study) != known["files"] and _digest(study) != known["sha256"])


def refuse_changed(study: Study, about: dict[str, Any]) -> None:
    """Raise if the table is no longer the one that the study was declared for."""
    if is_changed(study, about):
        raise ConflictError(
            f"{about.get('name', 'the table')} has changed since this study was declared",
            expected="the table that the roles and hierarchies were declared for",
            remedy="accept the table as it is now and check the roles again, or open it as a new study",
        )


def table_path(settings: DataSettings, folder: Path) -> Path:
    """Where the rows of a table are read from: a file, a folder of parts, a pattern, or the file of a database."""
    return folder / settings.path.removeprefix(SQLITE)


def _files(study: Study) -> list[list[Any]]:
    try:
        files = matching_files(table_path(study.data, study.folder))
        states = [(file, file.stat()) for file in files]
    except (InputError, OSError):
        return []
    return [[file.name, state.st_size, state.st_mtime_ns, state.st_ctime_ns] for file, state in states]


def _digest(study: Study) -> str:
    files = (study.data.model_dump_json(), *map(tuple, _files(study)))
    if files not in _digests:
        try:
            _digests[files] = open_source(study.data, study.folder).fingerprint
        except (InputError, OSError):  # gone, or no table any more
            return ""
    return _digests[files]
