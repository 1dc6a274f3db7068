"""The way to a daemon: dial, launch, ask, stop, and the spool for when there is none."""
