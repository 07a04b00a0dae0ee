"""Figures and pages for readers: self-contained, without network access, and printable."""
