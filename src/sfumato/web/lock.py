"""One server for each folder. The lock names its owner and is released by the system when its process ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from sfumato.errors import InputError

FILE = "server.json"


class FolderLock:
    """The right to serve a workspace, for as long as this process lives or until it is closed."""

    def __init__(self, work: Path) -> None:
        self._descriptor = _opened(work / FILE)
        if not _locked(self._descriptor):
            owner = _read(self._descriptor)
            os.close(self._descriptor)
            raise _taken(owner)

    def describe(self, address: str) -> None:
        """Write who holds the lock and at which address."""
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time(), "address": address}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(owner).encode(), 0)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def running(work: Path) -> dict[str, Any] | None:
    """Who serves a workspace now: pid, host, since, address. None if nobody does."""
    if not (work / FILE).is_file():
        return None
    descriptor = _opened(work / FILE)
    try:
        return None if _locked(descriptor) else _read(descriptor)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", expected="a folder that you can write to") from error


def _locked(descriptor: int) -> bool:
    """Try to lock an open file. Where the system has no such locks, every attempt succeeds."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> dict[str, Any]:
    try:
        owner = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:  # the other process has the lock and has not written its name yet
        return {}
    return owner if isinstance(owner, dict) else {}


def _taken(owner: dict[str, Any]) -> InputError:
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(float(owner.get("since", time.time()))))
    who = f"process {owner.get('pid', '?')} on {owner.get('host', '?')} since {since}"
    return InputError(
        f"another workbench serves this folder: {who}",
        expected="one server for each folder",
        remedy=f"use {owner.get('address') or 'that one'}, or end it first",
    )
