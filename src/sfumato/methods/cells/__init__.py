"""Cell suppression: single cells of a table are blanked."""
