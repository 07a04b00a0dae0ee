"""Earlier releases of the same people: the ledger, and what two releases tell together."""
