"""The method lattice: global recoding by levels of hierarchies."""
