"""A signal at a certain moment of a process: when it touches the files below a folder for the n-th time.

Python imports this by itself when the folder is on PYTHONPATH. What is to be done stands in the file that
SFUMATO_MOMENT names, as JSON: `below` (the folder), `signal` (0 for none), `at` (the number of the moment), `count`
(a file to write the number of moments to), `only` (a word of the command line), `parent` (the signal goes there).
"""

import atexit
import json
import os
import sys
from pathlib import Path

EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.chmod", "os.truncate", "os.listdir")


def _arranged() -> None:
    try:
        asked = json.loads(Path(os.environ["SFUMATO_MOMENT"]).read_text("utf-8"))
    except (KeyError, OSError, ValueError):
        return
    if asked.get("only") and asked["only"] not in sys.orig_argv:
        return
    seen = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event not in EVENTS or not any(asked["below"] in _text(one) for one in arguments[:2]):
            return
        if not asked.get("only") and not hasattr(sys.modules.get("sfumato.cli"), "main"):
            return  # Python itself is starting
        saved = sys.modules.get("sfumato.methods.run")
        if saved is not None and hasattr(saved, "Checkpoint"):
            saved.Checkpoint.__init__.__defaults__ = (0.0,)  # the state of a search at every turn, so that some exist
        seen += 1
        if seen == asked["at"] and asked["signal"]:
            os.kill(os.getppid() if asked.get("parent") else os.getpid(), asked["signal"])

    def write_count() -> None:
        Path(asked["count"]).write_text(str(seen), "utf-8")

    if asked.get("count"):
        atexit.register(write_count)
    sys.addaudithook(hook)


def _text(value: object) -> str:
    try:
        return os.fsdecode(value)  # type: ignore[arg-type]
    except TypeError:
        return ""


_arranged()
