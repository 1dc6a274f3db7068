"""One handler per method: validation, access, pause, preview tier."""
