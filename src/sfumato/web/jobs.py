"""Jobs: searches and releases, a process each, a few at a time. Their folders hold their state, after a restart too.

The worker pool answers quick questions. A worker that dies is replaced, and its question is answered by an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from sfumato.base.files import new_folder, write_text
from sfumato.base.json_types import Json
from sfumato.errors import InputError
from sfumato.web.access import RefusedError
from sfumato.web.workspace import Places, new_id, read_json, write_json

LINE = 1 << 28  # the longest answer, in bytes
PATIENCE = 300.0  # seconds until a question is given up
IDLE = 180.0  # seconds after which an idle worker is stopped


GONE = {
    "what": "the worker stopped unexpectedly",
    "expected": "an answer; a new worker is available",
    "try": "try again; if it fails again, the table may need more memory: sfumato serve --memory 16",
}
SLOW = {"what": f"no answer within {PATIENCE:.0f} seconds", "expected": "a quick answer", "try": "a smaller table"}
INTERRUPTED = {
    "what": "the server stopped while this job ran",
    "expected": "a job that completes",
    "try": "run it again; a search that recodes the table or suppresses cells continues from where it was",
}


class Worker:
    """One worker process, and one question at a time."""

    def __init__(self, places: Places, gigabytes: float) -> None:
        self.places, self.gigabytes = places, gigabytes
        self.lock = asyncio.Lock()
        self.used = time.monotonic()
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, call: str, given: Json) -> Any:
        """Ask, and wait for the answer."""
        async with self.lock:
            try:
                answer = await asyncio.wait_for(self._exchange(call, given), PATIENCE)
            except TimeoutError:
                await self.close()
                raise RefusedError(504, SLOW) from None
            except BaseException:  # a client that goes away must not leave its answer to the next one
                await self.close()
                raise
            finally:
                self.used = time.monotonic()
            if int(answer.get("status", 200)) >= 500:  # out of memory, or at fault: not a worker to ask again
                await self.close()
        if "error" in answer:
            raise RefusedError(int(answer["status"]), answer["error"])
        return answer["found"]

    async def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _exchange(self, call: str, given: Json) -> Json:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *command("worker", self.places, self.gigabytes),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LINE,
                start_new_session=True,  # Ctrl-C is for the server, which ends its workers
            )
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise RefusedError(500, GONE)
        try:
            process.stdin.write(json.dumps({"call": call, "with": given}).encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        except (ConnectionError, ValueError):
            line = b""
        if not line:
            await self.close()
            raise RefusedError(500, GONE)
        answer: Json = json.loads(line)
        return answer


class WorkerPool:
    """A few workers: a free one is asked, and idle workers are stopped."""

    def __init__(self, places: Places, gigabytes: float, limit: int = 2) -> None:
        self._all = [Worker(places, gigabytes) for _ in range(limit)]

    async def ask(self, call: str, **given: Any) -> Any:
        free = [worker for worker in self._all if not worker.lock.locked()]
        # The warmest first: it knows the table already.
        worker = max(free, key=lambda worker: worker.used) if free else min(self._all, key=lambda worker: worker.used)
        return await worker.ask(call, given)

    async def close_idle(self) -> None:
        """Close the workers that were idle for a while."""
        for worker in self._all:
            if not worker.lock.locked() and time.monotonic() - worker.used > IDLE:
                await worker.close()

    async def close(self) -> None:
        for worker in self._all:
            await worker.close()


def command(kind: str, places: Places, gigabytes: float, *more: str) -> list[str]:
    """Return the command line of a worker."""
    return [sys.executable, "-m", "sfumato.web.worker", kind, str(places.root), str(gigabytes), *more]


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
        """Restore the jobs after a restart. Those that ran are interrupted, those in the queue remain there."""
        for folder in sorted(self.places.studies.glob("*/jobs/*")):
            about = read_json(folder / "job.json")
            if about.get("status") == "running" and not (folder / "done.json").exists():
                self._mark(folder, "interrupted", INTERRUPTED)
            elif about.get("status") == "running":
                self._ended(folder, 0)
            elif about.get("status") == "queued":
                self._queue.append(folder)

    def add(self, study: str, kind: str, given: Json, run: str = "", **more: Any) -> Json:
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

    def again(self, study: str, job: str) -> Json:
        """Run a job that did not end well again: from where it was if its search keeps a state, else from the start."""
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

    def stop(self, study: str, job: str) -> Json:
        """Stop a job and keep the best so far."""
        folder = self.places.job(study, job)
        if folder in self._queue:
            self._queue.remove(folder)
            self._mark(folder, "stopped", None)
        elif read_json(folder / "job.json").get("status") == "running":
            (folder / "stop").touch()
        return self.describe(folder)

    def take_out(self, study: str, job: str) -> Path:
        """Return the folder of a job that is not running, to be deleted with its front."""
        folder = self.places.job(study, job)
        if folder in self._running:
            raise InputError("the job is running", expected="a job that has ended", remedy="stop it first")
        if folder in self._queue:
            self._queue.remove(folder)
        return folder

    def of(self, study: str | None = None) -> list[Json]:
        """Return every job, the oldest first."""
        folders = self.places.studies.glob(f"{study or '*'}/jobs/*/job.json")
        described = [self.describe(path.parent) for path in folders]
        return sorted(described, key=lambda job: float(job.get("added", 0.0)))

    def describe(self, folder: Path) -> Json:
        """Return the state of a job: its status, its progress, what it has found so far."""
        about = read_json(folder / "job.json")
        if about.get("status") == "running" and folder not in self._running:  # its end could not be written down
            about |= {"status": "interrupted", "error": INTERRUPTED} | read_json(folder / "done.json")
        if about.get("status") in ("running", *ENDED):
            about["progress"] = read_json(folder / "progress.json") or None
        about["found"] = read_json(folder / "done.json").get("found")
        about["front"] = any((folder / name).is_dir() for name in ("front", "channel", "groups"))
        about["ahead"] = self._queue.index(folder) if folder in self._queue else None
        return about

    def live(self, folder: Path) -> Json:
        """Return the front so far of a running search."""
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
            self._mark(folder, "interrupted", INTERRUPTED)
        else:
            self._ended(folder, code)

    def _ended(self, folder: Path, code: int) -> None:
        done = read_json(folder / "done.json")
        if done:
            self._mark(folder, str(done["status"]), done.get("error"))
            return
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        error = {
            "what": f"the worker of this job was killed ({name}), probably out of memory",
            "expected": "a job that completes; the other jobs are not affected",
            "try": "run it again, with fewer columns or more memory (sfumato serve --memory 16)",
        }
        self._mark(folder, "killed", error)

    def _mark(self, folder: Path, status: str, error: dict[str, str] | None) -> None:
        about = read_json(folder / "job.json")
        if about and os.access(folder, os.W_OK):
            self._write(folder, {**about, "status": status, "error": error, "ended": time.time()})

    def _write(self, folder: Path, about: Json) -> None:
        """Write the state of a job. On a full disk it stays as it was written last, and the queue continues."""
        with contextlib.suppress(InputError):
            write_json(folder / "job.json", about)
