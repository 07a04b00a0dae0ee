"""Plans: small, symbolic descriptions of how a table is recoded."""
