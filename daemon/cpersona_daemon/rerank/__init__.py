"""A service that reads a question beside each of a few rows, by choice."""
