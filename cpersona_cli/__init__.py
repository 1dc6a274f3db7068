"""The cpersona command line: parse, ask the daemon, print. Contract: house.layers, speed.client."""
