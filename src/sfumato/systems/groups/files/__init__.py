"""Census files as common attributes."""
