"""Reproductions of the papers' tables and figures, and recodings of others to compare with."""
