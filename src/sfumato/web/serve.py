"""Start the server on this machine alone, and let one browser in."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import threading
import webbrowser
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from sfumato.errors import InputError
from sfumato.web.access import new_key
from sfumato.web.app import Options, guarded, make_app
from sfumato.web.workspace import FolderLock, Places, running

PORT = 8377


class Server(uvicorn.Server):
    """A server that ends its streams when it is asked to stop, and stops without a word about what it cut off."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._app.state.jobs.closing = True
        super().handle_exit(sig, frame)


def serve(
    folder: Path, *, host: str = "127.0.0.1", port: int = PORT, browser: bool = True, options: Options | None = None
) -> None:
    """Serve a folder until Ctrl-C, on a loopback address."""
    if not _loopback(host):
        raise InputError(
            f"{host} is not a loopback address",
            expected="a loopback address such as 127.0.0.1: the server does not encrypt what it sends",
            remedy="from another machine, ssh -L 8377:127.0.0.1:8377 HOST, and open http://127.0.0.1:8377/ there",
        )
    places = Places(folder)
    places.prepare()
    with contextlib.closing(FolderLock(places.work)) as lock, contextlib.closing(_socket(host, port)) as sock:
        port = sock.getsockname()[1]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        app = make_app(places, options)
        app.state.keys.clear()
        lock.describe(address)
        settings = uvicorn.Config(
            guarded(app, hosts_of(host, port)),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        _let_in(places, address, browser, wait=0.8)
        print(f"folder: {places.root}. Ctrl-C stops it; --link prints another key.", flush=True)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(Server(settings, app).serve(sockets=[sock]))
        finally:
            app.state.keys.clear()


def link(folder: Path, *, browser: bool = True) -> None:
    """Another key for the server that serves a folder: for another browser, or a tab that was closed."""
    places = Places(folder)
    owner = running(places.work)
    if owner is None or not owner.get("address"):
        raise InputError(
            f"no workbench serves {places.root}",
            expected="a folder that is being served",
            remedy="start one: sfumato serve FOLDER",
        )
    _let_in(places, str(owner["address"]), browser)


def hosts_of(host: str, port: int) -> set[str]:
    """Return the Host headers a server answers to: against names that others point at this machine."""
    names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
    return {f"{name}:{port}" for name in names} | (names if port == 80 else set())


def _let_in(places: Places, address: str, browser: bool, wait: float = 0.0) -> None:
    """Print a new key, and open the file that hands it to the browser. The name of the file does not hold the key."""
    key = new_key(places.work, address)
    print(f"workbench: {address}\nkey (can be used once): {key.text}", flush=True)
    if browser and wait:
        timer = threading.Timer(wait, webbrowser.open, [key.page.as_uri()])
        timer.daemon = True
        timer.start()
    elif browser:
        webbrowser.open(key.page.as_uri())


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _socket(host: str, port: int) -> socket.socket:
    """Return a bound socket; where the port is taken, the next free one unless it was asked for."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for tried in (port, 0) if port == PORT else (port,):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, tried))
            sock.listen(128)  # a browser that opens the address as soon as it is printed waits instead of being refused
        except OSError as error:
            sock.close()
            reason = error.strerror
            continue
        return sock
    raise InputError(
        f"cannot listen on {host}:{port}: {reason}", expected="a free port", remedy="port = 0 chooses a free one"
    )
