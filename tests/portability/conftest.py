"""A daemon in this process for each test: the fixtures of the kit."""

from backup_kit import backed_up, place, rebuilt  # noqa: F401
from house_kit import house, make_house  # noqa: F401
