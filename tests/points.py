"""The points of a saved front, for tests that compare two: everything else in its file says when and how long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def points_in(folder: Path) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = json.loads((folder / "front.json").read_text("utf-8"))["points"]
    return points
