"""The ground floor: kinds and refs of rows, who sees them, what a commit changed, instants. Values, and no work."""
