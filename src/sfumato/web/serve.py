"""Start the server: on loopback, with a key in the address that is printed."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import socket
import sys
import threading
import webbrowser
from pathlib import Path

import uvicorn

from sfumato.errors import InputError
from sfumato.web.app import Options, guarded, make_app
from sfumato.web.lock import FolderLock
from sfumato.web.places import Places

PORT = 8377


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    anywhere: bool = False,
    browser: bool = True,
    options: Options | None = None,
) -> None:
    """Serve a folder until Ctrl-C. Another address than loopback needs `anywhere`."""
    if not _loopback(host):
        if not anywhere:
            raise InputError(
                f"--host {host} is not this machine alone",
                expected="a loopback address such as 127.0.0.1",
                remedy="--allow-remote if others shall reach it; then use it only behind a proxy that encrypts",
            )
        print(
            f"warning: the workbench listens on {host}: whoever reaches it and has the key can read the tables, "
            "and nothing on the way is encrypted",
            file=sys.stderr,
        )
    places = Places(folder)
    places.prepare()
    lock = FolderLock(places.work)
    sock = _socket(host, port)
    port = sock.getsockname()[1]
    token = secrets.token_urlsafe(24)
    app = make_app(places, options)
    whole = guarded(app, token, hosts_of(host, port), f"sfumato-{port}")
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/?token={token}"
    lock.describe(f"http://{shown}:{port}/")
    print(f"workbench: {address}\nfolder: {Path(folder).resolve()}. Ctrl-C ends it.", flush=True)
    settings = uvicorn.Config(
        whole, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    if browser:
        threading.Timer(0.8, webbrowser.open, [address]).start()
    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(sock), contextlib.closing(lock):
        asyncio.run(uvicorn.Server(settings).serve(sockets=[sock]))


def hosts_of(host: str, port: int) -> set[str]:
    """The Host headers a server answers to: against names that others point at this machine."""
    names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
    return {f"{name}:{port}" for name in names} | (names if port == 80 else set())


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _socket(host: str, port: int) -> socket.socket:
    """A bound socket; where the port is taken, the next free one unless it was asked for."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for tried in (port, 0) if port == PORT else (port,):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, tried))
            sock.listen(128)  # whoever opens the address as soon as it is printed waits instead of being refused
        except OSError as error:
            sock.close()
            reason = error.strerror
            continue
        return sock
    raise InputError(f"cannot listen on {host}:{port}: {reason}", expected="a free port", remedy="--port 0 takes any")
