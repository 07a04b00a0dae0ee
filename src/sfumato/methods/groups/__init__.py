"""The groups method: find the areas in which a group stands out, and hide them with the fewest swaps."""
