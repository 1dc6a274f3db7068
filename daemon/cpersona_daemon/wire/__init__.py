"""The wire: one table of names and limits that imports nothing, and the Structs built on it."""
