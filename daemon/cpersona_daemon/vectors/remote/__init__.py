"""A service beside the embedder that ranks rows by meaning: the memory protocol's remote vector search."""
