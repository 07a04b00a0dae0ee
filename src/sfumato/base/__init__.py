"""Atomic files, trusted folders, limits on untrusted files, progress, compiled loops, notebooks."""
