"""The default embedder: two small models on this machine, and what they need."""
