"""Reading a source, roles, hierarchies, the engines, the frequency table."""
