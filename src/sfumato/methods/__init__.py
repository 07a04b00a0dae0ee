"""The methods that protect a table, one folder each, and what they share."""
