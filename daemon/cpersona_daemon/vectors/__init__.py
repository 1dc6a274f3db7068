"""The vector index, derived from the database and checked against it, and exact top-k over it."""
