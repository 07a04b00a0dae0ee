"""Debian's PostgreSQL on loopback, started in a folder of its own and stopped always."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.scale.cluster import free_port

PASSWORD = "correct horse"


class Server:
    """Passwords are asked for (scram), nothing is synced, and only this machine can reach it."""

    def __init__(self) -> None:
        # A folder of its own beside pytest's, which nobody else may look into: PostgreSQL refuses to run as root.
        self.folder, self.port = Path(tempfile.mkdtemp(prefix="sfumato-pg-")), free_port()
        debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        self.bin = Path(shutil.which("initdb") or debian[-1]).resolve().parent
        self.as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []

    @property
    def address(self) -> str:
        return f"postgresql://127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        (self.folder / "password").write_text(PASSWORD)
        if self.as_user:
            for path in (self.folder, self.folder / "password"):
                shutil.chown(path, "postgres")
        self._run(
            "initdb", "-U", "keeper", "--auth=scram-sha-256", f"--pwfile={self.folder / 'password'}", "-E", "UTF8",
            "--locale=C", "--no-sync",
        )  # fmt: skip
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off"
        self._run("pg_ctl", "-w", "-o", options, "-l", str(self.folder / "log"), "start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run("pg_ctl", "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, *statements: str) -> None:
        """As the keeper of the server, who may write."""
        given = {"PGUSER": "keeper", "PGPASSWORD": PASSWORD}
        told = [part for sql in statements for part in ("-c", sql)]
        subprocess.run(
            [str(self.bin / "psql"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "postgres", *told],
            env=os.environ | given,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def _run(self, program: str, *arguments: str) -> None:
        command: list[Any] = [*self.as_user, self.bin / program, "-D", self.folder / "data", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")
