"""Measures of information loss, one file for each family."""
