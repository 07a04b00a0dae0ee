"""Searches for matrices: certified, square, OptRR."""
