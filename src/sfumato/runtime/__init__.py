"""What everything else stands on: arrays, folders written whole or not at all, compiled loops, progress."""
