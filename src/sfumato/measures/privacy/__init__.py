"""Privacy measures, one file for each family."""
