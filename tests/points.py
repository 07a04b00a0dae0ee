"""Points for tests: those of a saved front (the rest of its file says when and how long), and dominance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.base.arrays import Floats


def points_in(folder: Path) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = json.loads((folder / "front.json").read_text("utf-8"))["points"]
    return points


def dominates(left: Floats, right: Floats) -> bool:
    """Return whether the left point is no worse in all objectives and better in one."""
    return bool(np.all(left <= right) and np.any(left < right))
