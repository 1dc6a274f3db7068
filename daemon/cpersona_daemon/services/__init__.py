"""Services that are asked over HTTP: where they are, what opens them, and how one request goes."""
