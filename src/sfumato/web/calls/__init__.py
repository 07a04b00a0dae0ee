"""What the workers do: plain functions from the places and plain values to plain values."""
