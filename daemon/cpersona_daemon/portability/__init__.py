"""Export, import and merge."""
