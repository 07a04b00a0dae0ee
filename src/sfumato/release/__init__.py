"""Releases: recoded rows are written, read back and measured, with reports, a manifest and later verification."""
