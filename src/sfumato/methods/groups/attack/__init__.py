"""How somebody with an auxiliary file finds a group."""
