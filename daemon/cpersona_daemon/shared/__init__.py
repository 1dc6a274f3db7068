"""What the client reads too: names and limits of the wire, settings, paths, files. Standard library only."""
