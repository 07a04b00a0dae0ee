"""The ledger: a private folder with every release, written before a release is named and confirmed after.

The folder `ledger` of the state folder holds `releases.jsonl` with one line per event, the key of the row hashes, and
for each release a file with its description and one with the hashes of its rows. Only the user may read these files.
"""

from __future__ import annotations

import errno
import io
import json
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from sfumato.base.files import sync, write_bytes, write_text
from sfumato.base.formats import parse_json, read_json
from sfumato.base.trust import state_folder
from sfumato.errors import InputError, nearest
from sfumato.release.history.description import Description
from sfumato.release.history.people import HashedRows, Sketch
from sfumato.study.sections import REASON_EXPECTED, reason_given

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]


FOLDER = "ledger"
LINES = "releases.jsonl"
KEY = "key"
FORMAT = 2
LOCK = "lock"
INTENDED, RELEASED, WITHDRAWN = "intended", "released", "withdrawn"
REQUIRED = {INTENDED: {"id", "folder", "source", "time"}, RELEASED: {"id"}, WITHDRAWN: {"id"}}
SKETCHES = TypeAdapter(dict[str, Sketch])


@dataclass(frozen=True)
class Entry:
    """A release in the ledger: its time, its folder, its source, and what it shows."""

    id: str
    time: str
    folder: Path
    source: str
    description: Description
    rows: tuple[HashedRows, ...]
    sketches: Mapping[str, Sketch] = field(default_factory=dict)

    @property
    def day(self) -> str:
        return self.time.partition("T")[0]


@dataclass(frozen=True)
class Reading:
    """The entries of a ledger, releases that were neither confirmed nor withdrawn, and the number of unreadable lines.

    `ids` are all releases that were entered, with any outcome.
    """

    entries: tuple[Entry, ...]
    interrupted: tuple[tuple[str, Path], ...]
    unreadable: int
    ids: frozenset[str]


class Ledger:
    """The ledger in a state folder. Nothing is written to it before a release is entered."""

    def __init__(self, state: str | Path | None = None) -> None:
        self.folder = state_folder(state).absolute() / FOLDER

    @cached_property
    def key(self) -> str:
        """The key of the row hashes, the same for all releases. It is drawn at the first one and stored with them."""
        kept = self._kept_key()
        return secrets.token_hex(32) if kept is None else kept

    def _kept_key(self) -> str | None:
        path = self.folder / KEY
        if not path.exists():
            return None
        with _explained(self.folder):
            text = path.read_text(encoding="ascii", errors="replace").strip()
        if len(text) != 64:
            raise InputError(
                f"the key of the ledger in {self.folder} cannot be used",
                expected="the file as it was written",
                remedy="restore it; without it, earlier sources are recognized only if they are unchanged",
            )
        return text

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the ledger: no other process can enter a release. The system unlocks it when a process ends."""
        with _explained(self.folder):
            _private_folder(self.folder)
            handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def changed(self, known: Collection[str], key: str) -> bool:
        """Return whether a release was entered since `known` was read, or the key has changed."""
        kept = self._kept_key()
        return not {str(event["id"]) for event in self._events()[0]} <= set(known) or kept not in (None, key)

    def _keep_key(self) -> None:
        """Store the key if there is none. If another process stored one first, the hashes made here are invalid."""
        part = self.folder / f".{secrets.token_hex(8)}.part"
        write_bytes(part, self.key.encode("ascii"), private=True)
        with suppress(FileExistsError):
            os.link(part, self.folder / KEY)
        part.unlink()
        if self._kept_key() != self.key:
            raise at_the_same_time()

    def read(self) -> Reading:
        """Return every known release. Unreadable lines are skipped and counted."""
        events, unreadable = self._events()
        ended = {str(event["id"]): str(event["event"]) for event in events if event["event"] != INTENDED}
        entries, interrupted = [], []
        for event in events:
            outcome = ended.get(str(event["id"]))
            if event["event"] != INTENDED or outcome == WITHDRAWN:
                continue
            if outcome is None and not Path(str(event["folder"])).exists():
                interrupted.append((str(event["source"]), Path(str(event["folder"]))))
                continue
            try:
                entries.append(self._entry(event))
            except (OSError, KeyError, ValueError, TypeError, AttributeError, InputError):
                unreadable += 1
        ids = frozenset(str(event["id"]) for event in events)
        return Reading(tuple(entries), tuple(interrupted), unreadable, ids)

    def intend(self, entry: Entry) -> None:
        """Record a release that is about to receive its name."""
        packed = io.BytesIO()
        arrays = {f"{part}{n}": getattr(r, part) for n, r in enumerate(entry.rows) for part in ("hashes", "counts")}
        np.savez(packed, **arrays)
        about = [{"columns": r.columns, "rows": r.rows, "distinct": r.distinct, "limit": r.limit} for r in entry.rows]
        content = {
            "format": FORMAT,
            "sketches": SKETCHES.dump_python(dict(entry.sketches)),
            "description": entry.description.as_dict(),
            "rows": about,
        }
        with _explained(self.folder):
            _private_folder(self.folder)
            self._keep_key()
            write_bytes(self.folder / f"{entry.id}.npz", packed.getvalue(), private=True)
            write_text(self.folder / f"{entry.id}.json", json.dumps(content, ensure_ascii=False), private=True)
            line = {"event": INTENDED, "id": entry.id, "time": entry.time, "folder": str(entry.folder)}
            self._append(line | {"system": entry.description.system, "source": entry.source})

    def end(self, entry: Entry, event: str, reason: str = "") -> None:
        """Record the outcome: released, or withdrawn because nothing was written or published."""
        self._append({"event": event, "id": entry.id, "time": now(), "reason": reason})
        if event == WITHDRAWN:
            for suffix in (".json", ".npz"):
                (self.folder / f"{entry.id}{suffix}").unlink(missing_ok=True)

    def withdraw(self, name: str, reason: str) -> Entry:
        """Exclude a release that was never handed out from comparisons. Its line remains, with the reason."""
        entries = {entry.id: entry for entry in self.read().entries}
        if name not in entries:
            raise InputError(
                f'the ledger has no release "{name}"', expected="the id of a release", remedy=nearest(name, entries)
            )
        if not reason_given(reason):
            raise InputError(
                "a release is withdrawn without a reason",
                expected=f"why it was never handed out; {REASON_EXPECTED}",
            )
        with _explained(self.folder):
            self.end(entries[name], WITHDRAWN, reason)
        return entries[name]

    def _events(self) -> tuple[list[dict[str, object]], int]:
        path = self.folder / LINES
        if not path.exists():
            return [], 0
        with _explained(self.folder):
            text = path.read_text(encoding="utf-8", errors="replace")
        events, unreadable = [], 0
        for line in text.splitlines():
            try:
                event = parse_json(line, LINES)
                if not REQUIRED[event["event"]] <= set(event):
                    raise ValueError
            except (InputError, ValueError, TypeError, KeyError):
                unreadable += 1
                continue
            events.append(event)
        return events, unreadable

    def _entry(self, event: Mapping[str, object]) -> Entry:
        name = str(event["id"])
        if not name.isalnum():
            raise ValueError("no name of an entry")
        content = read_json(self.folder / f"{name}.json")
        if content["format"] != FORMAT:  # written by a version that recognized rows in another way
            raise ValueError("another format")
        with np.load(self.folder / f"{name}.npz", allow_pickle=False) as arrays:
            rows = tuple(
                HashedRows(
                    tuple(map(str, about["columns"])),
                    int(about["rows"]),
                    int(about["distinct"]),
                    arrays[f"hashes{number}"].astype(np.uint64),
                    arrays[f"counts{number}"].astype(np.int64),
                    int(about["limit"]),
                )
                for number, about in enumerate(content["rows"])
            )
        description = Description.from_dict(content["description"])
        seen = SKETCHES.validate_python(content["sketches"])
        time, folder, source = (str(event[key]) for key in ("time", "folder", "source"))
        return Entry(name, time, Path(folder), source, description, rows, seen)

    def _append(self, event: Mapping[str, object]) -> None:
        """Write one whole line in one call, so that lines of two processes do not mix."""
        path = self.folder / LINES
        torn = False
        if path.exists() and path.stat().st_size:
            with path.open("rb") as stream:
                stream.seek(-1, os.SEEK_END)
                torn = stream.read(1) != b"\n"
        line = (("\n" if torn else "") + json.dumps(dict(event), ensure_ascii=False) + "\n").encode("utf-8")
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.fchmod(handle, 0o600)
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(handle)
        finally:
            os.close(handle)
        sync(self.folder)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def at_the_same_time() -> InputError:
    return InputError(
        "another release was entered in the ledger at the same time",
        expected="one release at a time, so that each is compared with those before it",
        remedy="publish again",
    )


def _private_folder(folder: Path) -> None:
    """Make a folder, and missing parents, for the user alone. An existing folder becomes private as well."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            path.chmod(0o700)
    folder.chmod(0o700)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"the ledger in {folder} could not be used ({error.strerror}), so nothing was released",
            expected="a state folder that you can write to: later releases are compared with its contents",
            remedy="set SFUMATO_STATE to another folder",
        ) from error
