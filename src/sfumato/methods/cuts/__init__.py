"""Finer recodings: groups of neighbouring values."""
