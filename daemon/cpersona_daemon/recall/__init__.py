"""From a query to ranked rows: pure functions on (rid, score) pairs, text only at the end."""
