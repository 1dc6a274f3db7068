"""How a text becomes terms, for indexing and for asking alike. Pure functions of texts."""
