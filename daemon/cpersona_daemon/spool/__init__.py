"""What was queued while no daemon could be reached, and how it gets into the database."""
