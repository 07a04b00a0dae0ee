"""Projects of other tools, read into run files."""
