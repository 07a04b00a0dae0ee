"""Tables to try with: UCI Adult, and a synthetic census of any size."""
