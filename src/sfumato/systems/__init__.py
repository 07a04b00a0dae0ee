"""The systems: short compositions of the rooms on the left, and their reproduction of the papers."""
