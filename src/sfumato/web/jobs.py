"""Jobs: searches and releases, a process each, a few at a time. Their folders hold their state, after a restart too."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.runtime.atomic import new_folder, write_text
from sfumato.web.desk import command
from sfumato.web.places import Places, new_id, read_json, write_json

ENDED = ("done", "stopped", "failed", "killed", "interrupted")


class Jobs:
    """The queue. `limit` jobs run at once; the rest wait in order."""

    def __init__(self, places: Places, gigabytes: float, limit: int) -> None:
        self.places, self.gigabytes, self.limit = places, gigabytes, limit
        self._queue: list[Path] = []
        self._running: dict[Path, asyncio.subprocess.Process] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.closing = False

    def recover(self) -> None:
        """After a restart: what ran was interrupted, what was queued still is."""
        for folder in sorted(self.places.studies.glob("*/jobs/*")):
            about = read_json(folder / "job.json")
            if about.get("status") == "running" and not (folder / "done.json").exists():
                self._mark(folder, "interrupted", _interrupted())
            elif about.get("status") == "running":
                self._ended(folder, 0)
            elif about.get("status") == "queued":
                self._queue.append(folder)

    def add(self, study: str, kind: str, given: dict[str, Any], run: str = "", **more: Any) -> dict[str, Any]:
        """Put a new job into the queue. `run` is the text of its run file, where it has one of its own."""
        folder = self.places.study(study) / "jobs" / new_id(kind)
        about = {"id": folder.name, "study": study, "kind": kind, "with": given, "status": "queued"}
        with new_folder(folder) as inside:
            write_json(inside / "job.json", about | {"added": time.time()} | more)
            if run:
                write_text(inside / "run.toml", run)
        self._queue.append(folder)
        self.start_waiting()
        return self.describe(folder)

    def again(self, study: str, job: str) -> dict[str, Any]:
        """Run a job that did not end well again: a search over cuts from where it was, others from the start."""
        folder = self.places.job(study, job)
        about = read_json(folder / "job.json")
        if about.get("status") not in ENDED or about["status"] == "done":
            raise InputError(f"the job is {about.get('status')}", expected="a job that was stopped or interrupted")
        for name in ("stop", "done.json", "progress.json"):
            (folder / name).unlink(missing_ok=True)
        write_json(folder / "job.json", {**about, "status": "queued", "error": None})
        self._queue.append(folder)
        self.start_waiting()
        return self.describe(folder)

    def stop(self, study: str, job: str) -> dict[str, Any]:
        """Stop a job and keep the best so far."""
        folder = self.places.job(study, job)
        if folder in self._queue:
            self._queue.remove(folder)
            self._mark(folder, "stopped", None)
        elif read_json(folder / "job.json").get("status") == "running":
            (folder / "stop").touch()
        return self.describe(folder)

    def take_out(self, study: str, job: str) -> Path:
        """The folder of a job that is not running, to be deleted with its front."""
        folder = self.places.job(study, job)
        if folder in self._running:
            raise InputError("the job is running", expected="a job that has ended", remedy="stop it first")
        if folder in self._queue:
            self._queue.remove(folder)
        return folder

    def of(self, study: str | None = None) -> list[dict[str, Any]]:
        """Every job, the oldest first."""
        folders = self.places.studies.glob(f"{study or '*'}/jobs/*/job.json")
        described = [self.describe(path.parent) for path in folders]
        return sorted(described, key=lambda job: float(job.get("added", 0.0)))

    def describe(self, folder: Path) -> dict[str, Any]:
        """The state of a job: its status, its progress, what it has found so far."""
        about = read_json(folder / "job.json")
        if about.get("status") == "running" and folder not in self._running:  # its end could not be written down
            about |= {"status": "interrupted", "error": _interrupted()} | read_json(folder / "done.json")
        if about.get("status") in ("running", *ENDED):
            about["progress"] = read_json(folder / "progress.json") or None
        about["found"] = read_json(folder / "done.json").get("found")
        about["front"] = any((folder / name).is_dir() for name in ("front", "channel", "groups"))
        about["ahead"] = self._queue.index(folder) if folder in self._queue else None
        return about

    def live(self, folder: Path) -> dict[str, Any]:
        """The front so far of a running search."""
        return read_json(folder / "live.json")

    def start_waiting(self) -> None:
        """Start queued jobs while fewer than `limit` run."""
        while self._queue and len(self._tasks) < self.limit and not self.closing:
            task = asyncio.get_running_loop().create_task(self._run(self._queue.pop(0)))
            self._tasks.add(task)
            task.add_done_callback(self._freed)

    async def close(self) -> None:
        """End every job: they are interrupted, and say so when the server is back."""
        self.closing = True
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _freed(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.start_waiting()

    async def _run(self, folder: Path) -> None:
        process = await asyncio.create_subprocess_exec(
            *command("job", self.places, self.gigabytes, str(folder)),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the server, which ends its jobs
        )
        self._running[folder] = process
        about = read_json(folder / "job.json")
        self._write(folder, {**about, "status": "running", "process": process.pid, "started": time.time()})
        try:
            code = await process.wait()
        finally:
            self._running.pop(folder, None)
        if self.closing and not (folder / "done.json").exists():
            self._mark(folder, "interrupted", _interrupted())
        else:
            self._ended(folder, code)

    def _ended(self, folder: Path, code: int) -> None:
        done = read_json(folder / "done.json")
        if done:
            self._mark(folder, str(done["status"]), done.get("error"))
            return
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self._mark(folder, "killed", _killed(name))

    def _mark(self, folder: Path, status: str, error: dict[str, str] | None) -> None:
        about = read_json(folder / "job.json")
        if about and os.access(folder, os.W_OK):
            self._write(folder, {**about, "status": status, "error": error, "ended": time.time()})

    def _write(self, folder: Path, about: dict[str, Any]) -> None:
        """Write the state of a job. On a full disk it stays as it was written last, and the queue continues."""
        with contextlib.suppress(InputError):
            write_json(folder / "job.json", about)


def _killed(how: str) -> dict[str, str]:
    return {
        "what": f"the worker of this job was killed ({how}), probably out of memory",
        "expected": "a job that completes; the other jobs are not affected",
        "try": "run it again, with fewer columns or more memory (sfumato serve --memory 16)",
    }


def _interrupted() -> dict[str, str]:
    return {
        "what": "the server stopped while this job ran",
        "expected": "a job that completes",
        "try": "run it again; a search over cuts continues from where it was",
    }
