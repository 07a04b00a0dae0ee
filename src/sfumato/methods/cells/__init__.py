"""Local suppression: the fewest single cells blanked so that the file is k-anonymous, in one of two readings."""
