"""One verified file with everything of a store, and the way back from it."""
