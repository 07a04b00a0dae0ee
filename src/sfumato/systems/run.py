"""A search while it runs: it says how far it is, is asked to stop, shows its best so far, and keeps its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InputError
from sfumato.front import Front
from sfumato.runtime.stages import Progress
from sfumato.study import Study
from sfumato.systems.checkpoint import Checkpoint, Series, State
from sfumato.tables.frequency import FrequencyTable

Live = Callable[[Callable[[], Front]], None]  # handed a way to have the best so far, which costs only if it is used
Searcher = Callable[[Study, FrequencyTable, "Run"], Front]


@dataclass
class Run:
    """How one search is watched. `stopped` says afterwards whether it was asked to stop."""

    progress: Progress | None = None
    live: Live | None = None
    checkpoint: Path | None = None
    resume: bool = False
    stopped: bool = False
    series: Series | None = None  # where the searches within this one keep their states
    table: FrequencyTable | None = None  # what was searched, where the system works on one

    def tell(self, done: int, total: int) -> bool:
        """Say how far the search is; True asks it to stop."""
        asked = self.progress is not None and bool(self.progress(done, total))
        self.stopped = self.stopped or asked
        return asked

    def show(self, front: Callable[[], Front]) -> None:
        """Offer the best so far."""
        if self.live is not None:
            left_out = 0 if self.table is None else self.table.left_out
            self.live(lambda: front().with_left_out(left_out))

    def kept(self, study: Study, fingerprint: str) -> State | None:
        """The state of the search on disk, if it is to be kept."""
        if self.series is not None:
            return self.series.next()
        return None if self.checkpoint is None else Checkpoint(self.checkpoint, study, fingerprint)

    def require_state(self) -> None:
        """Raise if the search is to go on from a state that is not there."""
        if self.resume and self.checkpoint is None:
            raise InputError("nothing to resume", expected="a search with a checkpoint", remedy="start it again")
        if self.resume and self.checkpoint is not None and not self.checkpoint.exists():
            raise InputError(
                f"there is no unfinished search at {self.checkpoint}",
                expected="the state of an interrupted search",
                remedy="start it again",
            )
