"""The cpersona daemon: one database, one vector index, one socket. Contract: house.layers."""

__version__ = "0.1.0"
