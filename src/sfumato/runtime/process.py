"""Whose process this is: the command line has one to itself, a library lives in its caller's."""

from __future__ import annotations

ours = False  # set by the command line before anything else is imported
