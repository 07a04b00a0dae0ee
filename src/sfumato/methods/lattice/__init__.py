"""Every non-dominated node of the lattice of hierarchies."""
