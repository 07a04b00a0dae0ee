"""The types of JSON objects. What one must contain is checked where it is read, or by the class that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
JsonRead = Mapping[str, Any]  # an object that is not changed
