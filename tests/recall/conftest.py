import pytest
from house_kit import make_house  # noqa: F401
from words_kit import WordStore


@pytest.fixture
def words(tmp_path):
    store = WordStore(tmp_path)
    yield store
    store.close()
