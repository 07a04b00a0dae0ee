"""The methods that protect a table, one folder each, and the code that they share."""
