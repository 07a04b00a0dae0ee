"""Atomic files, trusted folders, limits on foreign files, progress, compiled loops, notebooks."""
