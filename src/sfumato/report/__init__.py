"""Pictures and pages for people: self-contained, no network, fit to print."""
