"""The cpersona daemon: one database, one vector index, one socket."""

__version__ = "0.1.0"
