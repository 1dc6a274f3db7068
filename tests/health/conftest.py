"""The fixtures of portability's kit: a daemon in this process for each test."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "portability"))

from house_kit import house, make_house  # noqa: F401
