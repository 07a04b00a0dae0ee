"""Attacks with an auxiliary file that find where a group is."""
