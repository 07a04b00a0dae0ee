"""A source as a frequency table: distinct tuples with counts."""
