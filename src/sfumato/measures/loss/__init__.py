"""Loss metrics: one file each."""
