"""The cpersona command line: parse, ask the daemon, print."""
