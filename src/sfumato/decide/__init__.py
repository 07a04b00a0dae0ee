"""The choice of a release from a front, and the answers to a publisher's questions."""
