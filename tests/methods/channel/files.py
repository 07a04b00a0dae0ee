"""Run files for the tests of the channel system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def channel_run(folder: Path, data: Path | str | None = None, name: str = "channel.toml", **settings: Any) -> Path:
    """A run file that declares nothing but a table, if there is one, and a channel."""
    lines = ["version = 1"] + ([] if data is None else ["[data]", f"path = {json.dumps(str(data))}"])
    lines += ["[channel]", *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]
    (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
    return folder / name
