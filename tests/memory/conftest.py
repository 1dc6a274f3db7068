"""The fixtures of portability's kit: a daemon in this process for each test."""

from house_kit import house, make_house  # noqa: F401
