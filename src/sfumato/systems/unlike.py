"""What was saved against what was worked out again: the first thing in which they differ."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

CLOSE = 1e-9
NOTHING = 1e-13  # errors of large tables are small, and none of them may be lost


def first_unlike(one: Any, two: Any, unchecked: Collection[str] = (), name: str = "") -> tuple[str, Any, Any] | None:
    """The first entry in which two records differ by more than rounding: its name and both values.

    >>> first_unlike({"a": [1, 2.0]}, {"a": [1, 2.5]}), first_unlike({"a": 1.0}, {"a": 1.0 + 1e-12})
    (('a.1', 2.0, 2.5), None)
    """
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for key in dict.fromkeys([*two, *one]):
            if key in unchecked:
                continue
            inner = f"{name}.{key}" if name else str(key)
            path = first_unlike(one.get(key), two.get(key), unchecked, inner)
            if path is not None:
                return path
        return None
    if isinstance(one, list | tuple) and isinstance(two, list | tuple) and len(one) == len(two):
        pairs = enumerate(zip(one, two, strict=True))
        return next((f for i, (a, b) in pairs if (f := first_unlike(a, b, unchecked, f"{name}.{i}")) is not None), None)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, two))
    same = math.isclose(one, two, rel_tol=CLOSE, abs_tol=NOTHING) if numbers else type(one) is type(two) and one == two
    return None if same else (name, one, two)


def shown(value: Any) -> str:
    """A value in a message, not too long."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:80]
