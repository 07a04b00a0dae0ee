"""A Spark standalone cluster on loopback: one master, two workers, each a process of its own that can be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

# Short lives: the second compiler of the Java machine costs more than it brings.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Cluster:
    """Use it as a context manager: leaving it stops every process, whatever happened."""

    def __init__(self, folder: Path, memory: str = "1g", split: str = "128k") -> None:
        self.folder, self.port = folder, free_port()
        self.memory, self.split = memory, split  # of an executor; of a file, for one task
        self.processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, object]:
        """The [engine_options] that run on it."""
        conf = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": self.memory,
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.files.maxPartitionBytes": self.split,
            "spark.sql.files.openCostInBytes": "0",
        }
        return {"master": self.master, "temp_folder": str(self.folder), "conf": conf}

    def __enter__(self) -> Self:
        self._start("org.apache.spark.deploy.master.Master", "--port", str(self.port), "--webui-port", str(free_port()))
        self._wait(lambda: self._answers(self.port), "the master does not answer")
        for _ in range(2):
            self.start_worker()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from sfumato.data.spark import stop

        try:
            stop()
        finally:
            for process in reversed(self.processes):
                _kill(process)

    def start_worker(self) -> None:
        """One more worker with one core; ready when the master has it."""
        number = len(self.processes)
        log = self.folder / f"process-{number}.log"
        work = ("--work-dir", str(self.folder / f"work-{number}"), "--webui-port", str(free_port()))
        limits = ("--cores", "1", "--memory", self.memory)
        self.workers.append(self._start("org.apache.spark.deploy.worker.Worker", *limits, *work, self.master))
        ready = "Successfully registered with master"
        self._wait(lambda: ready in log.read_text(errors="replace"), "a worker does not start")

    def kill_worker(self) -> None:
        """A machine goes down: the worker and its executor at once."""
        _kill(self.workers.pop(0))

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        import pyspark

        home = Path(pyspark.__file__).parent
        log = (self.folder / f"process-{len(self.processes)}.log").open("wb")
        given = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": QUICK}
        given |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_DIRS": str(self.folder)}
        with log:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), name, "--host", "127.0.0.1", *arguments],
                env=os.environ | given,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process

    @staticmethod
    def _answers(port: int) -> bool:
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", port)) == 0

    def _wait(self, ready: Callable[[], bool], why: str, most: float = 120) -> None:
        """Wait until the last process is ready; an error if it ends before, or not within so many seconds."""
        end = time.monotonic() + most
        while not ready():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.processes[-1].wait(0.1)
                raise RuntimeError(f"{why}: it ended")
            if time.monotonic() > end:
                raise TimeoutError(why)


def _children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if int(text[text.rindex(")") + 2 :].split()[1]) == pid:
            found.append(int(path.parent.name))
    return found


def _kill(process: subprocess.Popen[bytes]) -> None:
    """A process and what it started. It cannot start more in between: it is stopped first."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGSTOP)
        for child in [c for first in _children(process.pid) for c in (first, *_children(first))]:
            os.kill(child, signal.SIGKILL)
        process.kill()
    process.wait()
