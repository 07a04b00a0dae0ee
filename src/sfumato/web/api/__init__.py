"""What the page can ask of a study: one function for each question."""
