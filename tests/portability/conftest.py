"""A daemon in this process for each test: the fixtures of the kit."""

from house_kit import house, make_house  # noqa: F401
