"""Being asked to end (SIGTERM, or a terminal that goes away) is Ctrl-C under another name."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_received: list[int] = []


@contextmanager
def ended_as_stopped() -> Iterator[None]:
    """Treat those signals as Ctrl-C while a command runs: the same clean end, the same best so far."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received.clear()
    # What is ignored stays so: a command that was started with nohup outlives its terminal.
    before = {one: signal.signal(one, _end) for one in ENDS if signal.getsignal(one) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def exit_code(code: int) -> int:
    """130 for Ctrl-C; a command that another signal stopped ends with 128 and its number: 143 for SIGTERM."""
    return 128 + _received[0] if code == 130 and _received else code


def _end(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # Ctrl-C is ignored, as it is in the background of some shells
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)
