"""The groups system: find where a group stands out, and hide it with the fewest changes."""
