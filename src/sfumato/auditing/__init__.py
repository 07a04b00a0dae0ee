"""What a table looks like before anything is done to it: its figures, its risk, roles to suggest."""
