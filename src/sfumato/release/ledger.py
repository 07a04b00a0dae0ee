"""What was published from which source: two different releases of one table tell more together than either alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NAME = "ledger.jsonl"


def state_folder(given: str | Path | None = None) -> Path:
    """Where the ledger is kept: as given, else $SFUMATO_STATE, else the user's state folder."""
    if given is not None:
        return Path(given)
    if chosen := os.environ.get("SFUMATO_STATE"):
        return Path(chosen)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "sfumato"


def released_before(fingerprint: str, state: str | Path | None = None) -> list[dict[str, Any]]:
    """The ledger's lines about a source. A line that cannot be read is passed over."""
    try:
        text = (state_folder(state) / NAME).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("source") == fingerprint:
            found.append(entry)
    return found


def warnings_for(fingerprint: str, release: Mapping[str, Any], state: str | Path | None = None) -> list[str]:
    """A warning if the source was released before, and differently."""
    earlier = [entry for entry in released_before(fingerprint, state) if entry.get("release") != dict(release)]
    if not earlier:
        return []
    last = earlier[-1]
    return [
        f"this source was released differently before ({len(earlier)} in the ledger; the last on "
        f"{last.get('time', 'an unknown day')}, {last.get('folder', 'somewhere')}): who holds both releases may tell "
        "apart more than either allows."
    ]


def record(fingerprint: str, release: Mapping[str, Any], folder: Path, state: str | Path | None = None) -> list[str]:
    """Add a release to the ledger. A ledger that cannot be written is a warning: the release stands already."""
    line = {
        "source": fingerprint,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "folder": str(folder),
        "release": dict(release),
    }
    try:
        _append(state_folder(state), json.dumps(line, ensure_ascii=False))
    except OSError as error:
        return [f"the ledger could not be written ({error.strerror}); later releases will not be compared with this."]
    return []


def _append(folder: Path, line: str) -> None:
    """One write of one whole line: two that publish at once do not mix theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    torn = False
    if path.exists() and path.stat().st_size:
        with path.open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            torn = stream.read(1) != b"\n"
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, (("\n" if torn else "") + line + "\n").encode("utf-8"))
    finally:
        os.close(handle)
