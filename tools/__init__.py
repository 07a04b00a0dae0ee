"""What builds the documentation and the release; not part of the package."""
