"""What a person reads and types: output, tables, the recall view, times, refs."""
