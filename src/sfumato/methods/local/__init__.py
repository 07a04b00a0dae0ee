"""Local recoding: each class of at least k records has its own labels; a lower bound states the least loss."""
