"""Releases whose labels differ from class to class: how they are named, written, read back and verified."""
