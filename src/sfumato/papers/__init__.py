"""Reproductions of the papers' tables and figures, and recodings by other methods as baselines."""
