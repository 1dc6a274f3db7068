"""What a row is worth: pure functions of ranks, scores, texts and times. Nothing here reads the store."""
