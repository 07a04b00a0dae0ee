"""The run of a search: progress, a request to stop, the best front so far, and its state on disk.

The state is written every few seconds, so an interrupted search can be resumed and ends with the same result.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sfumato.base.files import new_file
from sfumato.base.progress import Progress
from sfumato.errors import InputError, SfumatoWarning
from sfumato.front import Front
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable
from sfumato.version import __version__

EVERY = 1.0  # least number of seconds between two saves
SHARE = 20  # saving takes at most one part in this many of the time, because a state may hold millions of candidates
UNCOUNTED = {"threads", "evaluations"}  # settings that may change where a search ends, but not what it finds

Parts = Mapping[str, Any]  # arrays by name


class Checkpoint:
    """The file with the state of a search. It is valid for one study, one table and one version only."""

    def __init__(self, path: Path, study: Study, fingerprint: str, every: float = EVERY) -> None:
        self.path, self.every = path, every
        settings = study.model_dump(mode="json")
        settings["search"] = {n: v for n, v in settings["search"].items() if n not in UNCOUNTED}
        said = json.dumps([settings, fingerprint, __version__], sort_keys=True, ensure_ascii=False)
        self._key = hashlib.sha256(said.encode()).hexdigest()
        self._next = time.monotonic() + every
        self._failed = False

    def save(self, state: Callable[[], Parts], now: bool = False) -> None:
        """Write the state atomically if enough time has passed.

        If that fails, the search continues with a warning.
        """
        began = time.monotonic()
        if not now and began < self._next:
            return
        try:
            with new_file(self.path, overwrite=True, private=True) as part, part.open("wb") as stream:
                np.savez(stream, key=np.array(self._key), **state())
        except InputError as error:  # a full disk
            if not self._failed:
                text = "the state of the search cannot be written; if it is killed, it cannot be resumed"
                warnings.warn(f"{text} ({error.what})", SfumatoWarning, stacklevel=2)
            self._failed = True
        ended = time.monotonic()
        self._next = ended + (max(self.every, SHARE * (ended - began)) if self.every else 0.0)

    def load(self) -> Parts | None:
        """Return the saved state, or None if there is none."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                parts = {name: arrays[name] for name in arrays.files}
            if str(parts.pop("key")) == self._key:
                return parts
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{self.path} cannot be read", expected="the state of a search", remedy="delete it and start again"
            ) from error
        raise InputError(
            f"{self.path} is the state of another search",
            expected="the same run file, table and version as before the interruption",
            remedy="start again instead of resuming",
        )

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


class State(Protocol):
    """The interface of a saved state: a whole file, or a part of one."""

    def save(self, state: Callable[[], Parts], now: bool = False) -> None: ...
    def load(self) -> Parts | None: ...
    def remove(self) -> None: ...


class Series:
    """The states of several searches within a larger one, all in the file of the larger one."""

    def __init__(self, whole: State, resume: bool) -> None:
        self.whole = whole
        self.parts: dict[str, object] = dict((whole.load() or {}) if resume else {})
        self._count = 0

    def next(self) -> State:
        """Return the state of the next search, as it was before the interruption if it had begun."""
        self._count += 1
        return _Member(self, f"{self._count}_")


class _Member:
    def __init__(self, series: Series, prefix: str) -> None:
        self._series, self._prefix = series, prefix
        self._state: Callable[[], Parts] = dict

    def save(self, state: Callable[[], Parts], now: bool = False) -> None:
        self._state = state
        self._series.whole.save(lambda: {**self._series.parts, **self._named()}, now)

    def load(self) -> Parts | None:
        start = len(self._prefix)
        own = {name[start:]: part for name, part in self._series.parts.items() if name.startswith(self._prefix)}
        return own or None

    def remove(self) -> None:
        """Record the end of the search: its result is kept until the larger one ends."""
        self._series.parts.update(self._named())

    def _named(self) -> dict[str, object]:
        return {self._prefix + name: part for name, part in self._state().items()}


Live = Callable[[Callable[[], Front]], None]  # receives a function that builds the best front so far, if called
Searcher = Callable[[Study, FrequencyTable, "Run"], Front]


@dataclass
class Run:
    """The conditions of one search: how it is watched and resumed; `stopped` states if it was interrupted."""

    progress: Progress | None = None
    live: Live | None = None
    checkpoint: Path | None = None
    resume: bool = False
    stopped: bool = False
    series: Series | None = None  # the states of the searches within this one
    table: FrequencyTable | None = None  # the table searched, if the system uses one

    def tell(self, done: int, total: int) -> bool:
        """Report the progress; return True if the caller requests a stop."""
        asked = self.progress is not None and bool(self.progress(done, total))
        self.stopped = self.stopped or asked
        return asked

    def show(self, front: Callable[[], Front]) -> None:
        """Pass a function that builds the best front so far to the listener, if there is one."""
        if self.live is not None:
            left_out = 0 if self.table is None else self.table.left_out
            self.live(lambda: front().with_left_out(left_out))

    def kept(self, study: Study, fingerprint: str) -> State | None:
        """Return the state of the search on disk, if one is kept."""
        if self.series is not None:
            return self.series.next()
        return None if self.checkpoint is None else Checkpoint(self.checkpoint, study, fingerprint)

    def require_state(self) -> None:
        """Raise if a resumed search has no saved state."""
        if self.resume and self.checkpoint is None:
            raise InputError("nothing to resume", expected="a search with a checkpoint", remedy="start it again")
        if self.resume and self.checkpoint is not None and not self.checkpoint.exists():
            raise InputError(
                f"there is no unfinished search at {self.checkpoint}",
                expected="the state of an interrupted search",
                remedy="start it again",
            )
