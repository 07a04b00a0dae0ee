"""The ledger of earlier releases of the same people, and what two releases reveal together."""
