"""Local recoding: classes of at least k records, each with a box of its own, and a floor under every recoding."""
