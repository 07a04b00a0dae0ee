"""Other recodings of the same table: Mondrian, Datafly, the best node."""
