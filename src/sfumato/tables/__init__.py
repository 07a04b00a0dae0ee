"""Frequency tables, which hold the distinct tuples of a source with counts, and dependences between columns."""
