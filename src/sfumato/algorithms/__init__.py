"""Search algorithms over arrays and a callable. They know nothing of privacy."""
