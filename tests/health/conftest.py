import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "portability"))

import pytest  # noqa: E402
from house_kit import House  # noqa: E402


@pytest.fixture
def make_house(tmp_path):
    """Open houses, each in a directory of its own, with environment variables."""
    opened = []

    def make(name="one", **environ):
        root = tmp_path / name
        root.mkdir()
        opened.append(House(root, **environ))
        return opened[-1]

    yield make
    for house in opened:
        house.close()


@pytest.fixture
def house(make_house):
    return make_house()
