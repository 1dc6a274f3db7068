"""What is kept of commits, and the hook files that keep it."""
