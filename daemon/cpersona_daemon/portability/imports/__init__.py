"""Taking a file in: surveyed whole, then read again and written."""
