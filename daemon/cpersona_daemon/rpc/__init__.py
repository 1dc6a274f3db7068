"""From a request to its answer: dispatch, access, pauses, the shape of what leaves the daemon."""
